"""Calls by hand: one by itself, or several in one session, through the same door and policy as a model's."""

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from ostler.app.options import RunOptions
from ostler.session.session import Session
from ostler.tools.host import LocalToolHost, failed
from ostler.vocabulary.errors import ToolFailure
from ostler.vocabulary.seams import Ground
from ostler.vocabulary.tools import ToolCall, ToolResult

Say = Callable[[str], None]
# What would be lost with the only call of a session.
_LOST: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "bash": ("a background job", lambda params: params.background and params.action == "run"),
    "write_chunk": (
        "a piece that waits for the final one",
        lambda params: params.mode == "gather" and not params.final,
    ),
}


class Hand:
    """A session without a model, for whoever makes the calls."""

    def __init__(self, session: Session, host: LocalToolHost, ground: Ground) -> None:
        self._session = session
        self._host = host
        self._ground = ground

    async def call(self, call: ToolCall) -> ToolResult:
        """One of several calls: what one reads, plans or starts is there for the next."""
        return await self._session.call(call)

    async def call_alone(self, call: ToolCall) -> ToolResult:
        """The only call of its session.

        A file it writes counts as read, for whoever makes the call has the last word on it. What only a later call
        could use is refused: there will be none.
        """
        with contextlib.suppress(ToolFailure):  # the door says it better
            understood = await self._host.understood(call)
            name, params = understood.tool.spec.name, understood.params
            what, leaves = _LOST.get(name, ("", lambda params: False))
            if leaves(params):
                return failed(call.id, _nobody_comes_after(what))
            if name in ("write", "write_chunk") and self._ground.place(params.path).exists:
                await self._ground.read_text(params.path)
        return _outliving(await self._session.call(call))


def _outliving(result: ToolResult) -> ToolResult:
    """The result without the name of the file with the whole output, which goes with the session."""
    spill = result.data.get("spill") if isinstance(result.data, dict) else ""
    if not spill:
        return result
    told = result.for_model.replace(spill, "gone with this call; send it to a file of your own to keep it")
    return msgspec.structs.replace(result, for_model=told, data={**result.data, "spill": ""})


def _nobody_comes_after(what: str) -> ToolFailure:
    said = f"this call would leave {what} for later calls, and it is the only one of its session"
    return ToolFailure(said, code="alone", hint="give several calls, one a line, to `ostler tool calls`")


@contextlib.asynccontextmanager
async def by_hand(options: RunOptions, *, say: Say) -> AsyncIterator[Hand]:
    """The settings, ground, door and policy of a run that nobody attends."""
    from ostler import __version__
    from ostler.app.grounds import make_ground
    from ostler.app.house import workspace
    from ostler.app.policies import make_policy
    from ostler.app.tools import make_tools
    from ostler.app.trusting import load_settings
    from ostler.backends.scripted import ScriptedBackend
    from ostler.journal.memory import MemoryJournal

    cwd = workspace(options.cwd)
    settings = load_settings(cwd, trust=options.trust)
    for note in (*settings.notes, *map(str, settings.problems)):
        say(note)
    ground = make_ground(cwd, settings, options, attended=False)
    host = make_tools(ground, settings)
    session = Session(
        backend=ScriptedBackend([]),
        tools=host,
        journal=MemoryJournal("tool-call"),
        policy=make_policy(settings, options, attended=False),
        cwd=str(cwd),
    )
    await session.open(version=__version__, backend="none", options={})
    try:
        yield Hand(session, host, ground)
    finally:
        await session.aclose()
