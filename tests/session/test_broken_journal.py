"""A journal that cannot be written ends the turn, whoever finds it out; the session goes on when it can be again."""

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

WORDS = MessageDone(Message("m", (TextContent("x"),)))
NO_SPACE = "cannot write the journal: no space left"


class FullJournal(MemoryJournal):
    """Takes nothing while it is full, and cannot sync while the disk is broken."""

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


async def ending(session):
    async with asyncio.timeout(60):
        return await session.start(make_prompt("go")).wait()


async def test_a_full_disk_ends_the_turn_with_one_clear_error(workspace, journal):
    async def act(context, said):
        journal.full = True
        context.emit(WORDS)

    session = await open_test_session(ScriptedBackend([act]), [], workspace, journal=journal)
    reading = session.subscribe(since=2**62)
    ended = await ending(session)
    assert (ended.reason, ended.fault.message) == ("failed", NO_SPACE)
    reading.close()
    assert [envelope.event async for envelope in reading if isinstance(envelope.event, TurnEnded)] == [ended]
    await session.aclose()


async def test_it_ends_the_turn_also_where_another_task_heard_of_it(workspace, journal):
    """An agent's words arrive in the task that reads them, which cannot end the turn that waits."""
    heard = []

    async def act(context, said):
        def arrive():
            journal.full = True
            try:
                context.emit(WORDS)
            except JournalError as error:
                heard.append(error)

        asyncio.get_running_loop().call_soon(arrive)
        await asyncio.Event().wait()

    session = await open_test_session(ScriptedBackend([act]), [], workspace, journal=journal)
    ended = await ending(session)
    assert (ended.reason, ended.fault.message) == ("failed", NO_SPACE)
    assert len(heard) == 1
    await session.aclose()


async def test_it_is_told_also_where_the_backend_takes_it_for_something_else(workspace, journal):
    async def act(context, said):
        journal.full = True
        try:
            context.emit(WORDS)
        except JournalError:
            raise ZeroDivisionError("a bug of its own") from None

    session = await open_test_session(ScriptedBackend([act]), [], workspace, journal=journal)
    assert (await ending(session)).fault.message == NO_SPACE
    await session.aclose()


async def test_an_intent_that_is_not_on_disk_ends_the_turn(workspace, journal):
    tool = FakeTool("probe")

    async def act(context, said):
        journal.unsynced = True
        call = ToolCall("1", "probe", {})
        context.emit(ToolCalled(call))
        await asyncio.gather(context.run_tool(call), return_exceptions=True)
        await asyncio.Event().wait()

    session = await open_test_session(ScriptedBackend([act]), [tool], workspace, journal=journal)
    ended = await ending(session)
    assert (ended.reason, ended.fault.message, tool.runs) == ("failed", NO_SPACE, [])
    journal.unsynced = False
    await session.aclose()


async def test_the_next_turn_first_finishes_what_could_not_be_written(workspace, journal):
    async def breaking(context, said):
        context.emit(ToolCalled(ToolCall("1", "probe", {})))
        journal.full = True
        context.emit(WORDS)

    async def fine(context, said):
        return None

    session = await open_test_session(ScriptedBackend([breaking, fine]), [], workspace, journal=journal)
    await ending(session)
    journal.full = False
    _, ended = await run_turn(session, "again")
    assert ended.reason == "done"
    kinds = (TurnStarted, ToolFinished, TurnEnded)
    told = [type(event).__name__ for event in session.events() if isinstance(event, kinds)]
    assert told == ["TurnStarted", "ToolFinished", "TurnEnded", "TurnStarted", "TurnEnded"]
    await session.aclose()
