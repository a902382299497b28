"""Opening and closing sessions: failed openings leave nothing, closed sessions cannot be used."""

import asyncio
import gc
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

import ostler as package
from ostler.app.session_manager import LocalSessionManager
from ostler.backends.scripted import ScriptedBackend
from ostler.core.errors import JournalError, UsageError
from ostler.core.events import Envelope, Notice, TextDelta
from ostler.core.sessions import Rename, SessionQuery
from ostler.core.tools import ToolCall
from ostler.journal.file_journal import FileJournal
from ostler.journal.memory_journal import MemoryJournal
from ostler.settings.run_options import RunOptions
from ostler.testing.scripted_model import ScriptedLine, ScriptedModel
from ostler.testing.session_fixture import make_prompt, open_test_session
from ostler.workspace.local_workspace import LocalWorkspace


class CountingBackend(ScriptedBackend):
    """A backend that counts how often it was closed."""

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


def open_files(root):
    """Return the files below a folder that this process has open, after garbage collection."""
    gc.collect()
    links = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
    found = [os.readlink(link) for link in links if os.path.lexists(link)]
    return sorted(path for path in found if path.startswith(str(root)))


async def open_and_run(work, **options):
    async with package.open_session(str(work), model=ScriptedModel([ScriptedLine("hi")]), **options) as conversation:
        await conversation.run("hello")
    return conversation.id


@pytest.mark.req("SE-1")
@pytest.mark.invariant("S7")
async def test_failed_opening_releases_the_session(work):
    loop, executor = asyncio.get_running_loop(), ThreadPoolExecutor()
    loop.set_default_executor(executor)
    session_id = await open_and_run(work)
    before = open_files(work.parent)
    for _ in range(3):
        with pytest.raises(UsageError, match="unknown agent 'nope'"):
            await open_and_run(work, resume=session_id, agent="nope")
    executor.shutdown()  # its threads refer to what they closed until they end
    loop.set_default_executor(ThreadPoolExecutor())
    assert set(open_files(work.parent)) <= set(before)
    assert await open_and_run(work, resume=session_id) == session_id


@pytest.mark.invariant("S7")
async def test_failed_new_session_is_not_listed(work):
    with pytest.raises(UsageError, match="unknown agent 'nope'"):
        await open_and_run(work, agent="nope")
    manager = LocalSessionManager(RunOptions(str(work)), lambda message: None)
    assert not await manager.list(SessionQuery(str(work)))
    session_id = await open_and_run(work)
    with pytest.raises(UsageError, match="unknown agent 'nope'"):
        await open_and_run(work, resume=session_id, agent="nope")
    assert [session.id for session in await manager.list(SessionQuery(str(work)))] == [session_id]


@pytest.mark.parametrize(("fails", "closed"), [(UsageError("no"), 0), (None, 1)])
@pytest.mark.invariant("S7")
async def test_opened_backend_is_closed_on_failure(tmp_path, fails, closed):
    """The disk is full when the opened backend is recorded."""
    journal = FileJournal(tmp_path / "s", "s")
    append = journal.append

    def full(envelope):
        if type(envelope.event).__name__ == "InfoChanged":
            raise JournalError("full")
        append(envelope)

    journal.append = full
    backend = CountingBackend(fails)
    with pytest.raises((UsageError, JournalError), match=r"no|full"):
        await open_test_session(backend, [], LocalWorkspace(str(tmp_path)), journal=journal)
    assert backend.closed == closed
    assert not (tmp_path / "s").exists()


async def test_waiting_turn_does_not_start_after_close(tmp_path):
    started = asyncio.Event()

    async def act(context, prompt):
        context.remote_turn_started(make_prompt("from afar", "woken"))
        started.set()
        await asyncio.Event().wait()

    journal = MemoryJournal("s")
    session = await open_test_session(ScriptedBackend([act, act]), [], LocalWorkspace(str(tmp_path)), journal=journal)
    turn = session.start(make_prompt("go"))
    await started.wait()
    await session.aclose()
    assert (await turn.wait()).reason == "cancelled"
    assert [type(envelope.event).__name__ for envelope in journal.envelopes].count("TurnStarted") == 1


@pytest.mark.parametrize("storage", ["file", "memory"])
async def test_closed_session_raises(tmp_path, storage):
    journal = FileJournal(tmp_path / "s", "s") if storage == "file" else MemoryJournal("s")
    backend = CountingBackend()
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


def test_closed_journal_raises_and_close_is_idempotent(tmp_path):
    journal = FileJournal(tmp_path / "s", "s")
    journal.close()
    journal.close()
    for act in (lambda: journal.append(Envelope(1, 0.0, Notice("info", "late"))), journal.sync):
        with pytest.raises(JournalError):
            act()
