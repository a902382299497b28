"""A session put together for tests: any backend, the real door, the real policy, a journal in memory."""

from collections.abc import Sequence
from typing import Any

from ostler.journal.memory import MemoryJournal
from ostler.policy.verdict import Policy
from ostler.session.session import Session
from ostler.tools.host import LocalToolHost
from ostler.vocabulary.events import Event, TurnEnded
from ostler.vocabulary.permission import Rule
from ostler.vocabulary.prompt import Prompt, Text
from ostler.vocabulary.seams import Backend, Ground, Journal, Tool, ToolRunner
from ostler.vocabulary.sessions import Opening, Query, SessionSummary

ALLOW_ALL = Policy(rules=(Rule("*", "*", "allow", "test"),))
ASK_ALL = Policy(rules=(Rule("*", "*", "ask", "test"),))


def prompt(text: str, prompt_id: str = "prompt-1") -> Prompt:
    """A prompt of plain words."""
    return Prompt(prompt_id, (Text(text),))


async def open_session(
    backend: Backend,
    tools: Sequence[Tool[Any]],
    ground: Ground,
    *,
    policy: Policy = ALLOW_ALL,
    journal: Journal | None = None,
) -> Session:
    """A session that is open and ready for a turn."""
    session = Session(
        backend=backend,
        tools=LocalToolHost(tools, ground),
        journal=journal or MemoryJournal("session-1"),
        policy=policy,
        cwd=ground.root,
    )
    await session.open(version="test", backend="test", options={})
    return session


async def play(session: Session, text: str) -> tuple[list[Event], TurnEnded]:
    """One turn to its end, with all that was published on the way."""
    reading = session.subscribe(since=2**62)
    turn = session.start(prompt(text, session.new_id("prompt")))
    ended = await turn.wait()
    reading.close()
    return [envelope.event async for envelope in reading], ended


class OneSessionHouse:
    """A house that has one session to give."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def open(self, opening: Opening, *, tools: ToolRunner | None = None, ground: Ground | None = None) -> Session:
        return self._session

    async def list(self, query: Query) -> Sequence[SessionSummary]:
        return ()

    async def delete(self, session_id: str) -> None:
        """There is nothing to delete."""
