"""Opens a session for tests: any backend, the real tool host and policy, an in-memory journal."""

from collections.abc import Sequence
from typing import Any

from ostler.app.composition import compose
from ostler.app.project import Project
from ostler.core.events import Event, TurnEnded
from ostler.core.permission import Rule
from ostler.core.prompt import Prompt, TextContent
from ostler.core.protocols import Backend, Journal, Tool, ToolRunner, Workspace
from ostler.core.sessions import OpenSessionRequest, SessionQuery, SessionSummary
from ostler.journal.memory_journal import MemoryJournal
from ostler.policy.verdict import Policy
from ostler.session.access import SessionAccess
from ostler.session.masking import mask_nothing
from ostler.session.session import LocalSession
from ostler.tools.host import LocalToolHost

ALLOW_ALL = Policy(rules=(Rule("*", "*", "allow", "test"),))
ASK_ALL = Policy(rules=(Rule("*", "*", "ask", "test"),))


def make_prompt(text: str, prompt_id: str = "prompt-1") -> Prompt:
    """Return a prompt of plain text."""
    return Prompt(prompt_id, (TextContent(text),))


async def open_test_session(
    backend: Backend,
    tools: Sequence[Tool[Any]],
    workspace: Workspace,
    *,
    policy: Policy | SessionAccess = ALLOW_ALL,
    journal: Journal | None = None,
    options: dict[str, str] | None = None,
    takeover: bool = False,
) -> LocalSession:
    """Open a session that is ready for a turn, or that continues the turn of the journal."""
    session = compose(
        Project.elsewhere(workspace.root),
        backend=backend,
        tools=LocalToolHost(tools, workspace),
        access=policy,
        mask=mask_nothing,
        journal=lambda: journal or MemoryJournal("session-1"),
    )
    await session.open(version="test", backend="test", options=options or {}, takeover=takeover)
    return session


async def run_turn(session: LocalSession, text: str) -> tuple[list[Event], TurnEnded]:
    """Run one turn. Return all events published meanwhile, and its end."""
    subscription = session.subscribe(since=2**62)
    turn = session.start(make_prompt(text, session.new_id("prompt")))
    ended = await turn.wait()
    subscription.close()
    return [envelope.event async for envelope in subscription], ended


class SingleSessionManager:
    """A session manager with a single session."""

    def __init__(self, session: LocalSession) -> None:
        self._session = session

    async def open(
        self, request: OpenSessionRequest, *, tools: ToolRunner | None = None, workspace: Workspace | None = None
    ) -> LocalSession:
        return self._session

    async def list(self, query: SessionQuery) -> Sequence[SessionSummary]:
        return ()

    async def delete(self, session_id: str) -> None:
        """Do nothing."""
