"""A checkpoint is taken before the first side effect; paths that undo cannot restore are reported then, once."""

import asyncio

import msgspec
import pytest
from tests.session.no_undo import NoUndo

from ostler.backends.scripted import ScriptedBackend
from ostler.core.events import Notice, ToolCalled, Waiting
from ostler.core.tools import ToolCall
from ostler.journal.memory_journal import MemoryJournal
from ostler.session import checkpointing
from ostler.session.checkpointing import Checkpointer
from ostler.session.session import LocalSession
from ostler.testing.fake_tool import FakeTool
from ostler.testing.session_fixture import ALLOW_ALL, make_prompt
from ostler.tools.host import LocalToolHost
from ostler.workspace.local_workspace import LocalWorkspace

pytestmark = pytest.mark.req("EN-13")


class PartialUndo(NoUndo):
    """An undo with some uncovered paths."""

    def __init__(self) -> None:
        self.paths = ["node_modules"]

    async def begin(self, turn_id, *, files_only=False):
        return list(self.paths)


async def test_uncovered_path_is_reported_once_per_session():
    undo = PartialUndo()
    checkpointer = Checkpointer(undo, "s/")
    await checkpointer.start("1").finish()  # no side effect, nothing reported
    second = checkpointer.start("2")
    assert list(await second.wait_ready()) == ["node_modules"]
    assert list(await second.wait_ready()) == []
    await second.finish()
    undo.paths.append("dist")
    third = checkpointer.start("3")
    assert list(await third.wait_ready()) == ["dist"]
    await third.finish()


class BlockingUndo(PartialUndo):
    """An undo that records its calls; a checkpoint with a scan never ends."""

    def __init__(self):
        super().__init__()
        self.calls = []

    async def begin(self, turn_id, *, files_only=False):
        self.calls.append("save files" if files_only else "scan")
        if not files_only:
            await asyncio.Event().wait()
        return ()

    def progress(self):
        return "7 files found"

    async def finish(self, turn_id):
        self.calls.append("finish")
        return ["big.bin (too large)"]

    async def discard(self, turn_id):
        self.calls.append("discard")


@pytest.mark.invariant("W1")
async def test_turn_without_side_effect_takes_no_checkpoint():
    undo = BlockingUndo()
    await Checkpointer(undo, "s/").start("1").finish()
    assert undo.calls == []


@pytest.mark.invariant("W1")
async def test_file_tools_wait_for_no_scan_and_a_command_does():
    undo = BlockingUndo()
    checkpoint = Checkpointer(undo, "s/").start("1")
    for _ in range(2):
        await checkpoint.wait_ready(files_only=True)
    waiting = asyncio.create_task(checkpoint.wait_ready())
    while "scan" not in undo.calls:
        await asyncio.sleep(0)
    assert not waiting.done()
    assert await checkpoint.finish() == ["big.bin (too large)"]
    assert await waiting == ()
    assert undo.calls == ["save files", "scan", "finish"]


@pytest.fixture
def workspace(tmp_path):
    return LocalWorkspace(str(tmp_path))


async def open_session(undo, workspace, tool):
    """Open a session with a model that calls the tool once in each turn."""

    async def call_tool(context, prompt):
        context.emit(ToolCalled(call := ToolCall("1", tool.spec.name, {})))
        await context.run_tool(call)

    session = LocalSession(
        backend=ScriptedBackend([call_tool]),
        tools=LocalToolHost([tool], workspace),
        journal=MemoryJournal("s"),
        policy=ALLOW_ALL,
        cwd=workspace.root,
        undo=undo,
    )
    await session.open(version="t", backend="t", options={})
    return session


async def test_slow_checkpoint_shows_progress_and_can_be_cancelled(workspace, monkeypatch):
    monkeypatch.setattr(checkpointing, "PROGRESS_SECONDS", 0.01)
    undo = BlockingUndo()
    session = await open_session(undo, workspace, FakeTool("probe"))
    events = session.subscribe()
    turn = session.start(make_prompt("go"))
    async for envelope in events:
        if isinstance(envelope.event, Waiting):
            break
    assert envelope.event.reason == "saving the workspace for undo, 7 files found"
    turn.cancel()
    assert (await turn.wait()).reason == "cancelled"
    assert undo.calls == ["scan", "discard"]
    await session.aclose()


class SlowlyFinishingUndo(PartialUndo):
    """An undo whose scan at the end of a turn waits until it is released."""

    def __init__(self):
        super().__init__()
        self.released = asyncio.Event()

    def progress(self):
        return "3 of 9 files saved"

    async def finish(self, turn_id):
        await self.released.wait()
        return ()


async def test_slow_end_of_a_turn_shows_progress(workspace, monkeypatch):
    monkeypatch.setattr(checkpointing, "PROGRESS_SECONDS", 0.01)
    undo = SlowlyFinishingUndo()
    session = await open_session(undo, workspace, FakeTool("probe"))
    events = session.subscribe()
    turn = session.start(make_prompt("go"))
    async for envelope in events:
        if isinstance(envelope.event, Waiting):
            break
    assert envelope.event.reason == "saving the workspace for undo, 3 of 9 files saved"
    undo.released.set()
    assert (await turn.wait()).reason == "done"
    await session.aclose()


@pytest.mark.parametrize(
    ("reach", "commands_write", "expected"),
    [
        ("files", True, "save files"),
        ("commands", False, "save files"),
        ("commands", True, "scan"),
        ("anything", False, "scan"),
    ],
)
@pytest.mark.invariant("W2")
async def test_workspace_is_scanned_only_if_more_than_its_files_can_change(
    workspace, monkeypatch, reach, commands_write, expected
):
    async def can_commands_write():
        return commands_write

    monkeypatch.setattr(workspace, "can_commands_write", can_commands_write)
    undo, tool = BlockingUndo(), FakeTool("probe")
    tool.spec = msgspec.structs.replace(tool.spec, reach=reach)
    session = await open_session(undo, workspace, tool)
    turn = session.start(make_prompt("go"))
    if expected == "scan":
        while not undo.calls:
            await asyncio.sleep(0)
        turn.cancel()
    await turn.wait()
    assert undo.calls[0] == expected
    warnings = [event.text for event in session.events() if isinstance(event, Notice)]
    assert warnings == ([] if expected == "scan" else ["undo cannot restore: big.bin (too large)"])
    await session.aclose()
