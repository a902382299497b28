"""A journal that cannot be written ends the turn; the session continues once it is writable again."""

import asyncio

import pytest

from ostler.backends.scripted import ScriptedBackend
from ostler.core.errors import JournalError
from ostler.core.events import MessageDone, ToolCalled, ToolFinished, TurnEnded, TurnStarted
from ostler.core.message import Message
from ostler.core.prompt import TextContent
from ostler.core.tools import ToolCall
from ostler.journal.memory_journal import MemoryJournal
from ostler.testing.fake_tool import FakeTool
from ostler.testing.session_fixture import make_prompt, open_test_session, run_turn
from ostler.workspace.local_workspace import LocalWorkspace

pytestmark = pytest.mark.req("SE-1")

MESSAGE = MessageDone(Message("m", (TextContent("x"),)))
NO_SPACE = "cannot write the journal: no space left"


class FullJournal(MemoryJournal):
    """A journal that rejects records while it is full, and cannot sync while `unsynced` is set."""

    def __init__(self):
        super().__init__("s")
        self.full = False
        self.unsynced = False

    def append(self, envelope):
        if self.full:
            raise JournalError(NO_SPACE)
        super().append(envelope)

    def sync(self):
        if self.unsynced:
            raise JournalError(NO_SPACE)


@pytest.fixture
def journal():
    return FullJournal()


@pytest.fixture
def workspace(tmp_path):
    return LocalWorkspace(str(tmp_path))


async def run_to_end(session):
    async with asyncio.timeout(60):
        return await session.start(make_prompt("go")).wait()


@pytest.mark.invariant("J4")
async def test_full_disk_ends_turn_with_one_error(workspace, journal):
    async def act(context, prompt):
        journal.full = True
        context.emit(MESSAGE)

    session = await open_test_session(ScriptedBackend([act]), [], workspace, journal=journal)
    subscription = session.subscribe(since=2**62)
    ended = await run_to_end(session)
    assert (ended.reason, ended.fault.message) == ("failed", NO_SPACE)
    subscription.close()
    assert [envelope.event async for envelope in subscription if isinstance(envelope.event, TurnEnded)] == [ended]
    await session.aclose()


async def test_journal_error_in_another_task_ends_turn(workspace, journal):
    """Messages of a remote agent arrive in a reader task, which cannot end the waiting turn itself."""
    errors = []

    async def act(context, prompt):
        def receive():
            journal.full = True
            try:
                context.emit(MESSAGE)
            except JournalError as error:
                errors.append(error)

        asyncio.get_running_loop().call_soon(receive)
        await asyncio.Event().wait()

    session = await open_test_session(ScriptedBackend([act]), [], workspace, journal=journal)
    ended = await run_to_end(session)
    assert (ended.reason, ended.fault.message) == ("failed", NO_SPACE)
    assert len(errors) == 1
    await session.aclose()


async def test_journal_error_is_reported_even_if_backend_raises_another(workspace, journal):
    async def act(context, prompt):
        journal.full = True
        try:
            context.emit(MESSAGE)
        except JournalError:
            raise ZeroDivisionError("a bug of its own") from None

    session = await open_test_session(ScriptedBackend([act]), [], workspace, journal=journal)
    assert (await run_to_end(session)).fault.message == NO_SPACE
    await session.aclose()


async def test_turn_ends_if_start_record_cannot_be_synced(workspace, journal):
    tool = FakeTool("probe")

    async def act(context, prompt):
        journal.unsynced = True
        call = ToolCall("1", "probe", {})
        context.emit(ToolCalled(call))
        await asyncio.gather(context.run_tool(call), return_exceptions=True)
        await asyncio.Event().wait()

    session = await open_test_session(ScriptedBackend([act]), [tool], workspace, journal=journal)
    ended = await run_to_end(session)
    assert (ended.reason, ended.fault.message, tool.runs) == ("failed", NO_SPACE, [])
    journal.unsynced = False
    await session.aclose()


@pytest.mark.invariant("J4")
async def test_next_turn_first_writes_missing_closing_events(workspace, journal):
    async def break_journal(context, prompt):
        context.emit(ToolCalled(ToolCall("1", "probe", {})))
        journal.full = True
        context.emit(MESSAGE)

    async def succeed(context, prompt):
        return None

    session = await open_test_session(ScriptedBackend([break_journal, succeed]), [], workspace, journal=journal)
    await run_to_end(session)
    journal.full = False
    _, ended = await run_turn(session, "again")
    assert ended.reason == "done"
    kinds = (TurnStarted, ToolFinished, TurnEnded)
    names = [type(event).__name__ for event in session.events() if isinstance(event, kinds)]
    assert names == ["TurnStarted", "ToolFinished", "TurnEnded", "TurnStarted", "TurnEnded"]
    await session.aclose()
