"""A session put together for tests: any backend, the real door, the real policy, a journal in memory."""

from collections.abc import Sequence
from typing import Any

from ostler.core.events import Event, TurnEnded
from ostler.core.permission import Rule
from ostler.core.prompt import Prompt, TextContent
from ostler.core.protocols import Backend, Journal, Tool, ToolRunner, Workspace
from ostler.core.sessions import OpenSessionRequest, SessionQuery, SessionSummary
from ostler.journal.memory_journal import MemoryJournal
from ostler.policy.verdict import Policy
from ostler.session.session import LocalSession
from ostler.tools.host import LocalToolHost

ALLOW_ALL = Policy(rules=(Rule("*", "*", "allow", "test"),))
ASK_ALL = Policy(rules=(Rule("*", "*", "ask", "test"),))


def make_prompt(text: str, prompt_id: str = "prompt-1") -> Prompt:
    """A prompt of plain words."""
    return Prompt(prompt_id, (TextContent(text),))


async def open_test_session(
    backend: Backend,
    tools: Sequence[Tool[Any]],
    workspace: Workspace,
    *,
    policy: Policy = ALLOW_ALL,
    journal: Journal | None = None,
) -> LocalSession:
    """A session that is open and ready for a turn."""
    session = LocalSession(
        backend=backend,
        tools=LocalToolHost(tools, workspace),
        journal=journal or MemoryJournal("session-1"),
        policy=policy,
        cwd=workspace.root,
    )
    await session.open(version="test", backend="test", options={})
    return session


async def run_turn(session: LocalSession, text: str) -> tuple[list[Event], TurnEnded]:
    """One turn to its end, with all that was published on the way."""
    reading = session.subscribe(since=2**62)
    turn = session.start(make_prompt(text, session.new_id("prompt")))
    ended = await turn.wait()
    reading.close()
    return [envelope.event async for envelope in reading], ended


class SingleSessionManager:
    """A house that has one session to give."""

    def __init__(self, session: LocalSession) -> None:
        self._session = session

    async def open(
        self, request: OpenSessionRequest, *, tools: ToolRunner | None = None, workspace: Workspace | None = None
    ) -> LocalSession:
        return self._session

    async def list(self, query: SessionQuery) -> Sequence[SessionSummary]:
        return ()

    async def delete(self, session_id: str) -> None:
        """There is nothing to delete."""
