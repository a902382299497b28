"""A turn that uses only the file tools is undone without a scan of the workspace."""

import asyncio
import os
import random
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from tests.workspace.stored_changes import stored_changes

from ostler.core.protocols import FileChange
from ostler.workspace import checkpoint_store, content_capture, tree_scan, unchanged_folders
from ostler.workspace.checkpoints import Checkpoints
from ostler.workspace.local_workspace import LocalWorkspace

pytestmark = pytest.mark.req("EN-13")


def snapshot(root: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() else None for path in sorted(root.rglob("*"))
    }


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "work"
    (root / "src").mkdir(parents=True)
    for name in ("a.txt", "b.txt", "src/c.txt"):
        (root / name).write_text(f"{name} before\n")
    return root


@pytest.fixture
def scans(monkeypatch):
    scans = []
    real_scan = tree_scan.TreeScanner.scan

    def recording_scan(self):
        scans.append(self)
        real_scan(self)

    monkeypatch.setattr(tree_scan.TreeScanner, "scan", recording_scan)
    return scans


@pytest.fixture
def checkpoints(root, tmp_path):
    checkpoints = Checkpoints(str(root), str(tmp_path / "store"))
    yield checkpoints
    checkpoints.close()


@pytest.fixture
def workspace(root, checkpoints):
    workspace = LocalWorkspace(str(root))

    async def save_before(paths):
        assert await checkpoints.save_before(paths) == []

    workspace.before_change = save_before
    yield workspace
    workspace.close()


async def edit(workspace, path, text):
    await workspace.read_text(path)
    await workspace.write_text(path, text)


async def use_every_file_operation(workspace) -> None:
    await edit(workspace, "a.txt", "after\n")
    await workspace.write_text("deep/er/new.txt", "new\n")
    await workspace.read_text("deep/er/new.txt")
    await workspace.append_bytes("deep/er/new.txt", b"more\n")
    await workspace.make_directory("made/by/hand")
    await workspace.apply([FileChange("src/c.txt", new_path="moved/c.txt"), FileChange("b.txt", delete=True)])
    await workspace.apply([FileChange("deep/er/new.txt", new_path="er/new.txt")])


async def test_file_tools_are_undone_and_redone_without_a_scan(root, checkpoints, workspace, scans):
    before = snapshot(root)
    await checkpoints.begin("t", files_only=True)
    await use_every_file_operation(workspace)
    after = snapshot(root)
    await checkpoints.finish("t")
    assert await stored_changes(checkpoints, "t") == {
        "a.txt": "modified",
        "b.txt": "deleted",
        "deep": "created",
        "deep/er": "created",
        "er": "created",
        "er/new.txt": "created",
        "made": "created",
        "made/by": "created",
        "made/by/hand": "created",
        "moved": "created",
        "moved/c.txt": "created",
        "src/c.txt": "deleted",
    }
    for _ in range(2):
        assert (await checkpoints.undo(await checkpoints.plan("t", "undo"))).skipped == ()
        assert snapshot(root) == before
        assert (await checkpoints.undo(await checkpoints.plan("t", "redo"))).skipped == ()
        assert snapshot(root) == after
    assert scans == []


async def test_renamed_file_is_restored_with_its_mode(root, checkpoints, workspace):
    (root / "src/run.sh").write_text("x")
    (root / "src/run.sh").chmod(0o755)
    before = snapshot(root)
    await checkpoints.begin("t", files_only=True)
    await workspace.apply([FileChange("src/run.sh", new_path="new/place/run.sh")])
    await checkpoints.finish("t")
    assert (await checkpoints.undo(await checkpoints.plan("t", "undo"))).skipped == ()
    assert snapshot(root) == before
    assert os.stat(root / "src/run.sh").st_mode & 0o777 == 0o755


async def test_command_after_edits_is_undone_with_them(root, checkpoints, workspace, scans):
    before = snapshot(root)
    await checkpoints.begin("t", files_only=True)
    await edit(workspace, "a.txt", "edited\n")
    (root / "b.txt").write_text("by hand, before the command\n")
    before["b.txt"] = (root / "b.txt").read_bytes()
    await checkpoints.begin("t")
    subprocess.run(["sh", "-c", "echo x >> a.txt; rm src/c.txt; echo y > made"], cwd=root, check=True)
    await workspace.write_text("src/late.txt", "late\n")
    after = snapshot(root)
    await checkpoints.finish("t")
    assert list(await stored_changes(checkpoints, "t")) == ["a.txt", "made", "src/c.txt", "src/late.txt"]
    assert (await checkpoints.undo(await checkpoints.plan("t", "undo"))).skipped == ()
    assert snapshot(root) == before
    await checkpoints.undo(await checkpoints.plan("t", "redo"))
    assert snapshot(root) == after
    assert len(scans) == 2


async def test_manual_edits_around_the_turn_stay(root, checkpoints, workspace, tmp_path):
    await checkpoints.begin("scanned")
    await checkpoints.finish("scanned")
    (root / "b.txt").write_text("by hand, between turns\n")
    await checkpoints.begin("t", files_only=True)
    await edit(workspace, "a.txt", "edited\n")
    (root / "src/c.txt").write_text("by hand, during the turn\n")
    await checkpoints.finish("t")
    (root / "mine").write_text("by hand, after the turn\n")
    await checkpoints.undo(await checkpoints.plan("t", "undo"))
    assert snapshot(root) == {
        "a.txt": b"a.txt before\n",
        "b.txt": b"by hand, between turns\n",
        "mine": b"by hand, after the turn\n",
        "src": None,
        "src/c.txt": b"by hand, during the turn\n",
    }


KILLED_TURN = """
import asyncio, os, subprocess, sys
from ostler.workspace.checkpoints import Checkpoints
from ostler.workspace.local_workspace import LocalWorkspace
async def main():
    checkpoints = Checkpoints(sys.argv[1], sys.argv[2])
    workspace = LocalWorkspace(sys.argv[1])
    workspace.before_change = checkpoints.save_before
    await checkpoints.begin("killed", files_only=True)
    checkpoints.heartbeat("killed")
    await workspace.read_text("a.txt")
    await workspace.write_text("a.txt", "edited")
    await workspace.write_text("new/file.txt", "new")
    if sys.argv[3] == "command":
        await checkpoints.begin("killed")
        subprocess.run(["rm", "src/c.txt"], cwd=sys.argv[1])
    checkpoints.heartbeat("killed")
    await checkpoints.save_before(["b.txt"])
    os.kill(os.getpid(), 9)
asyncio.run(main())
"""


@pytest.mark.parametrize("last", ["edit", "command"])
def test_killed_turn_is_undone_and_later_edits_stay(root, tmp_path, scans, last):
    async def scan_before() -> None:  # an outdated scan, against which nothing must be compared
        checkpoints = Checkpoints(str(root), str(tmp_path / "store"))
        await checkpoints.begin("earlier")
        await checkpoints.finish("earlier")
        checkpoints.close()

    asyncio.run(scan_before())
    scans.clear()
    (root / "mine").write_text("by hand, before the turn")
    before = snapshot(root)
    script = [sys.executable, "-c", KILLED_TURN, str(root), str(tmp_path / "store"), last]
    assert subprocess.run(script, check=False).returncode == -9
    assert (root / "a.txt").read_text() == "edited"
    (root / "b.txt").write_text("by hand, after the crash")
    before["b.txt"] = (root / "b.txt").read_bytes()

    async def recover() -> None:
        checkpoints = Checkpoints(str(root), str(tmp_path / "store"))
        assert await checkpoints.turns() == ["earlier", "killed"]
        plan = await checkpoints.plan("killed", "undo")
        assert [gap.path for gap in plan.conflicts] == ["b.txt"]
        await checkpoints.undo(plan)
        checkpoints.close()

    asyncio.run(recover())
    assert snapshot(root) == before
    assert len(scans) == (1 if last == "command" else 0)


async def test_new_turn_closes_a_killed_one_before_it_changes_the_same_file(root, tmp_path, checkpoints, workspace):
    before = snapshot(root)
    script = [sys.executable, "-c", KILLED_TURN, str(root), str(tmp_path / "store"), "edit"]
    await asyncio.to_thread(subprocess.run, script, check=False)
    await checkpoints.begin("next", files_only=True)
    await edit(workspace, "a.txt", "edited again")
    await checkpoints.finish("next")
    for turn in ("next", "killed"):
        assert (await checkpoints.undo(await checkpoints.plan(turn, "undo"))).skipped == ()
    assert snapshot(root) == before


async def test_hard_links_stay_linked(root, checkpoints, workspace, scans):
    os.link(root / "a.txt", root / "src/same.txt")
    await checkpoints.begin("t", files_only=True)
    await edit(workspace, "a.txt", "edited\n")
    subprocess.run(["sh", "-c", "rm a.txt; echo other > a.txt"], cwd=root, check=True)
    await checkpoints.finish("t")
    assert len(scans) == 2, "a change of a linked file appears under other paths too"
    await checkpoints.undo(await checkpoints.plan("t", "undo"))
    assert (root / "a.txt").read_text() == (root / "src/same.txt").read_text() == "a.txt before\n"


async def test_edit_through_a_symlink_restores_its_target(root, checkpoints, workspace):
    (root / "link").symlink_to("src/c.txt")
    await checkpoints.begin("t", files_only=True)
    await edit(workspace, "link", "edited\n")
    await checkpoints.finish("t")
    assert list(await stored_changes(checkpoints, "t")) == ["src/c.txt"]
    await checkpoints.undo(await checkpoints.plan("t", "undo"))
    assert (root / "src/c.txt").read_text() == "src/c.txt before\n"
    assert (root / "link").is_symlink()


async def test_files_that_cannot_be_saved_are_reported(root, checkpoints, monkeypatch):
    for module in (checkpoint_store, content_capture, tree_scan):
        monkeypatch.setattr(module, "MAX_FILE_BYTES", 1000)
    (root / "huge").write_bytes(b"x" * 2000)
    (root / ".git").mkdir()
    await checkpoints.begin("t", files_only=True)
    uncovered = await checkpoints.save_before(["huge", "a.txt", ".git/config"])
    assert {gap.path for gap in uncovered} == {"huge", ".git/config"}


async def test_full_disk_is_reported_for_each_path(root, checkpoints, monkeypatch):
    await checkpoints.begin("t", files_only=True)

    def fail(*_):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(checkpoint_store.CheckpointStore, "save_before", fail)
    (gap,) = await checkpoints.save_before(["a.txt"])
    assert gap.path == "a.txt" and "disk is full" in gap.reason


async def test_cancelled_scan_leaves_the_edits_undoable(root, checkpoints, workspace, monkeypatch):
    before = snapshot(root)
    await checkpoints.begin("t", files_only=True)
    await edit(workspace, "a.txt", "edited\n")
    loop, scanning = asyncio.get_running_loop(), asyncio.Event()

    def endless_scan(self):
        loop.call_soon_threadsafe(scanning.set)
        while not self._is_stopped():
            pass
        raise unchanged_folders.ScanStopped

    with monkeypatch.context() as patch:
        patch.setattr(tree_scan.TreeScanner, "scan", endless_scan)
        begin = asyncio.create_task(checkpoints.begin("t"))
        await scanning.wait()
        assert checkpoints.progress() == "0 files found"
        begin.cancel()
        await asyncio.wait([begin])
    await checkpoints.finish("t")
    await checkpoints.undo(await checkpoints.plan("t", "undo"))
    assert snapshot(root) == before


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.sampled(every=5)
async def test_random_turns_are_undone_and_redone_in_order(root, checkpoints, workspace, seed):
    choice = random.Random(seed)
    states = [snapshot(root)]
    for turn in ("0", "1", "2"):
        await checkpoints.begin(turn, files_only=True)
        for _ in range(choice.randrange(1, 8)):
            await _change_something(choice, root, checkpoints, workspace, turn)
        await checkpoints.finish(turn)
        states.append(snapshot(root))
    for number in (2, 1, 0):
        assert (await checkpoints.undo(await checkpoints.plan(str(number), "undo"))).skipped == ()
        assert snapshot(root) == states[number]
    for number in (0, 1, 2):
        assert (await checkpoints.undo(await checkpoints.plan(str(number), "redo"))).skipped == ()
        assert snapshot(root) == states[number + 1]


async def _change_something(choice, root, checkpoints, workspace, turn) -> None:
    names = ["a.txt", "b.txt", "src/c.txt", "src/d.txt", "x/y/z.txt", "x/w.txt"]
    path, other = choice.sample(names, 2)
    match choice.randrange(6):
        case 0 | 1 | 2:
            if (root / path).exists():
                await workspace.read_text(path)
            await workspace.write_text(path, f"{choice.random()}\n")
        case 3 if (root / path).exists():
            await workspace.apply([FileChange(path, delete=True)])
        case 4 if (root / path).exists() and not (root / other).exists():
            await workspace.apply([FileChange(path, new_path=other)])
        case 5:
            await checkpoints.begin(turn)
            subprocess.run(
                ["sh", "-c", f"rm -rf {path} x/y; mkdir -p src; echo {turn} >> src/out"], cwd=root, check=True
            )
