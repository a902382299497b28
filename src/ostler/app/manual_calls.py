"""Runs tool calls without a model, for `ostler tool call` and `ostler tool calls`."""

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

import msgspec

from ostler import __version__
from ostler.access.active_agent import ActiveAgent
from ostler.access.session_policy import make_policy
from ostler.app.composition import compose
from ostler.app.project import Project
from ostler.app.tool_host import make_mcp_source, make_tool_host
from ostler.app.workspace import make_workspace
from ostler.backends.none import NoBackend
from ostler.core.errors import ToolError, UsageError
from ostler.core.protocols import Workspace
from ostler.core.tools import ToolCall, ToolResult
from ostler.journal.memory_journal import MemoryJournal
from ostler.session.session import LocalSession
from ostler.settings.run_options import RunOptions
from ostler.tools.host import LocalToolHost, failed_result

if TYPE_CHECKING:
    from ostler.access.explanation import Explanation

Notify = Callable[[str], None]
# Calls whose effect would be lost when a session of one call ends.
_LOST_WITH_SESSION: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "bash": ("a background command", lambda params: params.background and params.action == "run"),
    "write_chunk": (
        "an unfinished file",
        lambda params: params.mode == "gather" and not params.final,
    ),
}


class ManualCalls:
    """A session without a model; the caller makes the tool calls."""

    def __init__(self, session: LocalSession, host: LocalToolHost, workspace: Workspace) -> None:
        self.session = session
        self._host = host
        self._workspace = workspace

    async def call(self, call: ToolCall) -> ToolResult:
        """Make one of several calls, which share what they read, plan and start."""
        return await self.session.call(call)

    async def call_once(self, call: ToolCall) -> ToolResult:
        """Make the only call of the session.

        It may overwrite a file that was not read before. A call whose effect only a later call could use fails.
        """
        with contextlib.suppress(ToolError):  # the tool host reports the error
            resolved = await self._host.resolve(call)
            name, params = resolved.tool.spec.name, resolved.params
            what, is_lost = _LOST_WITH_SESSION.get(name, ("", lambda params: False))
            if is_lost(params):
                return failed_result(call.id, _no_later_call_error(what))
            if name in ("write", "write_chunk") and self._workspace.resolve(params.path).exists:
                await self._workspace.read_text(params.path)
        return _without_output_file(await self.session.call(call))


def _without_output_file(result: ToolResult) -> ToolResult:
    """Remove the path of the file with the full output, which is deleted with the session."""
    output_file = result.data.get("spill") if isinstance(result.data, dict) else ""
    if not output_file:
        return result
    text = result.for_model.replace(output_file, "deleted after this call; redirect the output to a file to keep it")
    return msgspec.structs.replace(result, for_model=text, data={**result.data, "spill": ""})


def _no_later_call_error(what: str) -> ToolError:
    message = f"this call starts {what}, which only a later call of the same session could use"
    return ToolError(message, code="alone", hint="use `ostler tool calls` with one call per line")


@contextlib.asynccontextmanager
async def open_manual_calls(
    options: RunOptions, *, notify: Notify, with_mcp: bool = True, interactive: bool = False
) -> AsyncIterator[ManualCalls]:
    """Open a session with the settings, workspace, tool host and policy of a run without a model.

    With `interactive` the caller answers approval requests and questions.
    """
    project = Project.load(options.cwd, trust=options.trust)
    for note in (*project.settings.notes, *map(str, project.settings.problems)):
        notify(note)
    workspace = make_workspace(project, options, interactive=interactive)
    mcp = make_mcp_source(project, interactive=interactive) if with_mcp else None
    host = make_tool_host(project, workspace, mcp=mcp)
    session = compose(
        project,
        backend=NoBackend(),
        tools=host,
        access=make_policy(project.settings, options, interactive=interactive),
        standing_rules=project.grants(),
        journal=lambda: MemoryJournal("tool-call"),
    )
    await session.open(version=__version__, backend="none", options={})
    try:
        yield ManualCalls(session, host, workspace)
    finally:
        await session.aclose()


async def explain_call(options: RunOptions, call: ToolCall, *, interactive: bool) -> "Explanation":
    """Explain what the policy of a session decides about a call, without running it."""
    from ostler.access.explanation import explain, find_danger_source

    project = Project.load(options.cwd, trust=options.trust)
    workspace = make_workspace(project, options, interactive=interactive)
    policy = make_policy(project.settings, options, interactive=interactive)
    try:
        access = ActiveAgent(project.agents, policy, options, workspace.shell)
        access.set_option("agent", options.agent)
        permission = await make_tool_host(project, workspace).permission(call)
        if not access.allows_tool(call.tool):
            raise UsageError(f"agent {options.agent or options.mode} does not have the tool {call.tool}")
    finally:
        await workspace.aclose()
    command = str(call.arguments.get("command", "")) if call.tool == "bash" else ""
    source = find_danger_source(command, project.root, project.settings.config.security)
    return explain(permission, access.policy(), tuple(project.grants().rules()), danger_source=source)
