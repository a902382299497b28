"""Opening a session is all or nothing, and closing it is for good."""

import asyncio
import gc
import os

import pytest

import ostler as package
from ostler.app.run_options import RunOptions
from ostler.app.session_manager import LocalSessionManager
from ostler.backends.scripted import ScriptedBackend
from ostler.core.errors import JournalError, UsageError
from ostler.core.events import Envelope, Notice, TextDelta
from ostler.core.sessions import Rename, SessionQuery
from ostler.core.tools import ToolCall
from ostler.journal.file_journal import FileJournal
from ostler.journal.memory_journal import MemoryJournal
from ostler.testing.scripted_model import ScriptedLine, ScriptedModel
from ostler.testing.session_fixture import make_prompt, open_test_session
from ostler.workspace.local_workspace import LocalWorkspace


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("OSTLER_HOME", raising=False)
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


class Closed(ScriptedBackend):
    """Counts how often it was closed."""

    def __init__(self, fails=None):
        super().__init__([])
        self.fails = fails
        self.closed = 0

    async def open(self, start, context):
        if self.fails:
            raise self.fails
        return await super().open(start, context)

    async def aclose(self):
        self.closed += 1


def held(root):
    """What this process has open below a folder; a past is let go with its last reader."""
    gc.collect()
    places = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
    found = [os.readlink(place) for place in places if os.path.lexists(place)]
    return sorted(path for path in found if path.startswith(str(root)))


async def opened(work, **how):
    async with package.open_session(str(work), model=ScriptedModel([ScriptedLine("hi")]), **how) as conversation:
        await conversation.run("hello")
    return conversation.id


@pytest.mark.req("SE-1")
async def test_a_session_that_could_not_be_opened_is_free_for_the_next(work):
    session_id = await opened(work)
    before = held(work.parent)
    for _ in range(3):
        with pytest.raises(UsageError, match="no agent 'nope'"):
            await opened(work, resume=session_id, agent="nope")
    assert held(work.parent) == before
    assert await opened(work, resume=session_id) == session_id


async def test_a_new_session_that_could_not_be_opened_is_in_no_list(work):
    with pytest.raises(UsageError, match="no agent 'nope'"):
        await opened(work, agent="nope")
    manager = LocalSessionManager(RunOptions(str(work)), lambda told: None)
    assert not await manager.list(SessionQuery(str(work)))
    session_id = await opened(work)
    with pytest.raises(UsageError, match="no agent 'nope'"):
        await opened(work, resume=session_id, agent="nope")
    assert [listed.id for listed in await manager.list(SessionQuery(str(work)))] == [session_id]


@pytest.mark.parametrize(("fails", "closed"), [(UsageError("no"), 0), (None, 1)])
async def test_a_backend_is_closed_if_it_was_opened(tmp_path, fails, closed):
    """The disk fills between the backend's opening and the record of it."""
    journal = FileJournal(tmp_path / "s", "s")
    append = journal.append

    def full(envelope):
        if type(envelope.event).__name__ == "InfoChanged":
            raise JournalError("full")
        append(envelope)

    journal.append = full
    backend = Closed(fails)
    with pytest.raises((UsageError, JournalError), match=r"no|full"):
        await open_test_session(backend, [], LocalWorkspace(str(tmp_path)), journal=journal)
    assert backend.closed == closed
    assert not (tmp_path / "s").exists()


async def test_a_turn_that_waits_while_a_session_is_closed_does_not_begin(tmp_path):
    begun = asyncio.Event()

    async def act(context, said):
        context.remote_turn_started(make_prompt("from afar", "woken"))
        begun.set()
        await asyncio.Event().wait()

    journal = MemoryJournal("s")
    session = await open_test_session(ScriptedBackend([act, act]), [], LocalWorkspace(str(tmp_path)), journal=journal)
    turn = session.start(make_prompt("go"))
    await begun.wait()
    await session.aclose()
    assert (await turn.wait()).reason == "cancelled"
    assert [type(kept.event).__name__ for kept in journal.envelopes].count("TurnStarted") == 1


@pytest.mark.parametrize("kept_in", ["file", "memory"])
async def test_what_is_closed_says_so(tmp_path, kept_in):
    journal = FileJournal(tmp_path / "s", "s") if kept_in == "file" else MemoryJournal("s")
    backend = Closed()
    session = await open_test_session(backend, [], LocalWorkspace(str(tmp_path)), journal=journal)
    await session.aclose()
    await session.aclose()
    assert backend.closed == 1
    with pytest.raises(UsageError, match="closed"):
        session.start(make_prompt("more"))
    with pytest.raises(UsageError, match="closed"):
        await session.call(ToolCall("1", "probe", {}))
    with pytest.raises(UsageError, match="closed"):
        await session.apply(Rename("more"))
    with pytest.raises(JournalError, match="closed"):
        session.emit(Notice("info", "late"))
    session.emit(TextDelta("m", "nobody reads this"))
    session.remote_turn_started(make_prompt("more"))


def test_a_closed_journal_says_so_and_may_be_closed_again(tmp_path):
    journal = FileJournal(tmp_path / "s", "s")
    journal.close()
    journal.close()
    for act in (lambda: journal.append(Envelope(1, 0.0, Notice("info", "late"))), journal.sync):
        with pytest.raises(JournalError):
            act()
