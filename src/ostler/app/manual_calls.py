"""Calls by hand: one by itself, or several in one session, through the same door and policy as a model's."""

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from ostler.app.run_options import RunOptions
from ostler.core.errors import ToolError
from ostler.core.protocols import Workspace
from ostler.core.tools import ToolCall, ToolResult
from ostler.session.session import LocalSession
from ostler.tools.host import LocalToolHost, failed_result

Notify = Callable[[str], None]
# What would be lost with the only call of a session.
_LOST_WITH_SESSION: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "bash": ("a background job", lambda params: params.background and params.action == "run"),
    "write_chunk": (
        "a piece that waits for the final one",
        lambda params: params.mode == "gather" and not params.final,
    ),
}


class ManualCalls:
    """A session without a model, for whoever makes the calls."""

    def __init__(self, session: LocalSession, host: LocalToolHost, workspace: Workspace) -> None:
        self._session = session
        self._host = host
        self._workspace = workspace

    async def call(self, call: ToolCall) -> ToolResult:
        """One of several calls: what one reads, plans or starts is there for the next."""
        return await self._session.call(call)

    async def call_once(self, call: ToolCall) -> ToolResult:
        """The only call of its session.

        A file it writes counts as read, for whoever makes the call has the last word on it. What only a later call
        could use is refused: there will be none.
        """
        with contextlib.suppress(ToolError):  # the door says it better
            understood = await self._host.resolve(call)
            name, params = understood.tool.spec.name, understood.params
            what, leaves = _LOST_WITH_SESSION.get(name, ("", lambda params: False))
            if leaves(params):
                return failed_result(call.id, _no_later_call_error(what))
            if name in ("write", "write_chunk") and self._workspace.resolve(params.path).exists:
                await self._workspace.read_text(params.path)
        return _without_output_file(await self._session.call(call))


def _without_output_file(result: ToolResult) -> ToolResult:
    """The result without the name of the file with the whole output, which goes with the session."""
    spill = result.data.get("spill") if isinstance(result.data, dict) else ""
    if not spill:
        return result
    told = result.for_model.replace(spill, "gone with this call; send it to a file of your own to keep it")
    return msgspec.structs.replace(result, for_model=told, data={**result.data, "spill": ""})


def _no_later_call_error(what: str) -> ToolError:
    said = f"this call would leave {what} for later calls, and it is the only one of its session"
    return ToolError(said, code="alone", hint="give several calls, one a line, to `ostler tool calls`")


@contextlib.asynccontextmanager
async def open_manual_calls(options: RunOptions, *, notify: Notify) -> AsyncIterator[ManualCalls]:
    """The settings, ground, door and policy of a run that nobody attends."""
    from ostler import __version__
    from ostler.app.session_manager import workspace_path
    from ostler.app.session_policy import make_policy
    from ostler.app.session_workspace import make_workspace
    from ostler.app.tool_host import make_tool_host
    from ostler.app.trusted_settings import load_settings
    from ostler.backends.scripted import ScriptedBackend
    from ostler.journal.memory_journal import MemoryJournal

    cwd = workspace_path(options.cwd)
    settings = load_settings(cwd, trust=options.trust)
    for note in (*settings.notes, *map(str, settings.problems)):
        notify(note)
    workspace = make_workspace(cwd, settings, options, interactive=False)
    host = make_tool_host(workspace, settings)
    session = LocalSession(
        backend=ScriptedBackend([]),
        tools=host,
        journal=MemoryJournal("tool-call"),
        policy=make_policy(settings, options, interactive=False),
        cwd=str(cwd),
    )
    await session.open(version=__version__, backend="none", options={})
    try:
        yield ManualCalls(session, host, workspace)
    finally:
        await session.aclose()
