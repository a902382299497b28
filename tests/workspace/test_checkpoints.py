"""A turn can be undone, no matter what made its changes; nothing else is touched."""

import asyncio
import hashlib
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from tests.workspace.stored_changes import stored_changes

from ostler.core.errors import OstlerError
from ostler.core.protocols import FileChange
from ostler.workspace import checkpoint_store, content_capture, content_store, tree_scan
from ostler.workspace import checkpoints as checkpoints_module
from ostler.workspace.checkpoints import Checkpoints
from ostler.workspace.local_workspace import LocalWorkspace
from ostler.workspace.undo_executor import UndoExecutor


def sh(script: str, cwd) -> None:
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    subprocess.run(["sh", "-euc", script], cwd=cwd, check=True, env=env, stdout=subprocess.DEVNULL)


def snapshot(root) -> dict[str, tuple[int, bytes]]:
    """Return every path with its mode and content, without `.git`."""
    found = {}
    for folder, folders, names in os.walk(root):
        if ".git" in folders:
            folders.remove(".git")
        for name in [*folders, *names]:
            path = os.path.join(folder, name)
            mode = os.lstat(path).st_mode
            if stat.S_ISLNK(mode):
                content = os.fsencode(os.readlink(path))
            else:
                content = Path(path).read_bytes() if stat.S_ISREG(mode) else b""
            found[os.path.relpath(path, root)] = (mode, content)
    return found


def git_state(root) -> str:
    digest = hashlib.sha256()
    for folder, folders, names in os.walk(root / ".git"):
        folders.sort()
        for name in sorted(names):
            digest.update(name.encode() + Path(folder, name).read_bytes())
    return digest.hexdigest()


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "work"
    root.mkdir()
    for path, data in {
        "src/main.py": b"print('one')\n",
        "src/other.py": b"other\n",
        "run.sh": b"#!/bin/sh\necho hi\n",
        "image.png": b"\x89PNG\r\n\x1a\n\0\xff",
        "docs/a/b.md": b"deep\r\n",
        "notes.txt": b"",
        "build/out.bin": bytes(range(256)),
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    (root / "run.sh").chmod(0o755)
    (root / "empty").mkdir()
    os.symlink("src/main.py", root / "link")
    os.symlink("nowhere", root / "dangling")
    os.symlink("docs", root / "dirlink")
    os.mkfifo(root / "pipe", 0o640)
    return root


@pytest.fixture
async def checkpoints(root, tmp_path):
    checkpoints = Checkpoints(str(root), str(tmp_path / "store"))
    yield checkpoints
    checkpoints.close()


REPOSITORIES = {
    "no git": "true",
    "tracked": "git init -q; git add -A; git -c user.name=a -c user.email=a@b commit -qm x",
    "staged and untracked": "git init -q; git add src run.sh; echo staged >> src/other.py; git add src/other.py",
    "ignored": "printf 'build/\\nsrc/\\n*.png\\n' > .gitignore; git init -q; git add .gitignore",
}
ACTIONS = {
    "sed": "sed -i s/one/two/ src/main.py",
    "in place": "printf more >> src/main.py; : > run.sh",
    "rm": "rm src/main.py image.png link",
    "rm -rf": "rm -rf docs src build empty",
    "rm all": "rm -rf ./* .gitignore",
    "mv": "mv src/main.py moved.py; mv docs papers",
    "swap": "mv src/main.py t; mv src/other.py src/main.py; mv t src/other.py",
    "new": "mkdir -p new/deep/er; echo x > new/deep/f; echo y > top; mkdir new/hollow",
    "chmod": "chmod -x run.sh; chmod 600 notes.txt; chmod 700 docs/a",
    "links": "ln -sfn src/other.py link; rm dangling; ln -s x fresh; rm dirlink; mkdir dirlink; echo 1 > dirlink/f",
    "kinds": "rm notes.txt; mkdir notes.txt; echo x > notes.txt/in; rm -r empty docs; echo f > empty; ln -s src docs",
    "binary": "printf '\\000\\001\\377' > image.png; head -c 3000000 /dev/zero > big.bin; cp big.bin build/out.bin",
    "odd names": "touch 'a b' 'new\nline' -- '-rf'; bad=$(printf 'bad\\377'); mkdir \"$bad\"; echo x > \"$bad/f\"",
    "same time": "touch -r src/main.py s; echo \"print('uno')\" > src/main.py; touch -r s src/main.py; rm s",
    "read-only folder": "echo x > docs/a/b.md; echo y > docs/a/new; chmod 555 docs/a",
    "pipes": "rm pipe; echo x > pipe; mkfifo docs/other",
    "pipe's mode": "chmod 600 pipe",
    "empty folder": "rmdir empty; mkdir -p other/empty",
}


@pytest.mark.req("EN-13")
@pytest.mark.parametrize("repository", REPOSITORIES)
@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.sampled
async def test_turn_is_undone_and_redone(root, checkpoints, repository, action):
    sh(REPOSITORIES[repository], root)
    before, git = snapshot(root), git_state(root)
    uncovered = await checkpoints.begin("t")
    assert {gap.path for gap in uncovered} <= {".git"}
    sh(ACTIONS[action], root)
    after = snapshot(root)
    assert after != before
    await checkpoints.finish("t")
    assert (await stored_changes(checkpoints, "t")).keys() >= {
        path for path in before if path.isprintable() and path not in after
    }
    plan = await checkpoints.plan("t", "undo")
    assert snapshot(root) == after
    assert (plan.conflicts, plan.uncovered) == ((), ())
    undone = await checkpoints.undo(plan)
    assert undone.skipped == ()
    assert snapshot(root) == before
    assert git_state(root) == git
    redone = await checkpoints.undo(await checkpoints.plan("t", "redo"))
    assert redone.skipped == ()
    assert snapshot(root) == after
    assert git_state(root) == git
    assert (await checkpoints.undo(await checkpoints.plan("t", "undo"))).skipped == ()
    assert snapshot(root) == before


@pytest.mark.req("EN-13")
async def test_workspace_changes_are_undone(root, checkpoints):
    before = snapshot(root)
    await checkpoints.begin("t")
    workspace = LocalWorkspace(str(root))
    await workspace.read_text("src/main.py")
    await workspace.write_text("src/main.py", "print('two')\n")
    await workspace.write_text("fresh/file.txt", "x")
    await workspace.apply([FileChange("notes.txt", new_path="noted.txt"), FileChange("image.png", delete=True)])
    await checkpoints.finish("t")
    assert list((await stored_changes(checkpoints, "t")).items()) == [
        ("fresh", "created"),
        ("fresh/file.txt", "created"),
        ("image.png", "deleted"),
        ("noted.txt", "created"),
        ("notes.txt", "deleted"),
        ("src/main.py", "modified"),
    ]
    plan = await checkpoints.plan("t", "undo")
    assert plan.restore == ("image.png", "notes.txt", "src/main.py")
    assert plan.delete == ("fresh", "fresh/file.txt", "noted.txt")
    await checkpoints.undo(plan)
    assert snapshot(root) == before


@pytest.mark.req("EN-13")
@pytest.mark.parametrize(
    "action", ["git commit -qam done", "git reset -q --hard", "git checkout -q -- .", "git stash -q", "git clean -qfdx"]
)
async def test_file_changes_by_git_are_undone(root, checkpoints, action):
    sh("git init -q; git config user.name a; git config user.email a@b; git add src run.sh; git commit -qm x", root)
    (root / "src/main.py").write_text("the user's own work\n")
    before = snapshot(root)
    await checkpoints.begin("t")
    sh(action, root)
    git = git_state(root)
    await checkpoints.finish("t")
    await checkpoints.undo(await checkpoints.plan("t", "undo"))
    assert snapshot(root) == before
    assert git_state(root) == git


@pytest.mark.req("EN-13")
async def test_user_changes_between_turns_are_not_undone(root, checkpoints):
    await checkpoints.begin("one")
    (root / "src/main.py").write_text("by turn one\n")
    await checkpoints.finish("one")
    (root / "src/other.py").write_text("by the user\n")
    (root / "mine.txt").write_text("by the user\n")
    await checkpoints.begin("two")
    (root / "run.sh").write_text("by turn two\n")
    await checkpoints.finish("two")
    plan = await checkpoints.plan("two", "undo")
    assert (plan.restore, plan.delete) == (("run.sh",), ())
    await checkpoints.undo(plan)
    await checkpoints.undo(await checkpoints.plan("one", "undo"))
    assert (root / "src/main.py").read_text() == "print('one')\n"
    assert (root / "src/other.py").read_text() == "by the user\n"
    assert (root / "mine.txt").read_text() == "by the user\n"


@pytest.mark.req("EN-13")
@pytest.mark.parametrize(
    ("turn", "user", "path", "reason"),
    [
        ("echo t > src/main.py", "echo p > src/main.py", "src/main.py", "changed"),
        ("echo t > src/main.py", "rm src/main.py", "src/main.py", "deleted"),
        ("echo t > src/main.py", "chmod 700 src/main.py", "src/main.py", "changed"),
        ("echo t > new", "echo p > new", "new", "changed"),
        ("rm run.sh", "echo p > run.sh", "run.sh", "created"),
        ("mkdir new; echo t > new/t", "echo p > new/p", "new", "contains files"),
        ("ln -sfn x link", "ln -sfn y link", "link", "changed"),
        ("echo t > docs/a/b.md", "mv docs away; ln -s away docs", "docs/a/b.md", "changed"),
    ],
)
async def test_later_changes_are_conflicts_and_stay(root, checkpoints, turn, user, path, reason):
    await checkpoints.begin("t")
    sh(turn, root)
    await checkpoints.finish("t")
    sh(user, root)
    user_state = snapshot(root)
    plan = await checkpoints.plan("t", "undo")
    assert [uncovered.path for uncovered in plan.conflicts] == [path]
    assert reason in plan.conflicts[0].reason
    await checkpoints.undo(plan)
    after = snapshot(root)
    assert {name: after.get(name) for name in user_state if name != "new/t"} == {
        name: content for name, content in user_state.items() if name != "new/t"
    }


@pytest.mark.req("EN-13")
async def test_change_after_planning_is_detected(root, checkpoints):
    await checkpoints.begin("t")
    sh("echo t > src/main.py; echo t > new; rm run.sh", root)
    await checkpoints.finish("t")
    plan = await checkpoints.plan("t", "undo")
    sh("echo p > src/main.py; echo p > new; echo p > run.sh", root)
    user_state = snapshot(root)
    undone = await checkpoints.undo(plan)
    assert {uncovered.path for uncovered in undone.skipped} == {"src/main.py", "new", "run.sh"}
    assert (undone.restored, undone.deleted) == ((), ())
    assert snapshot(root) == user_state


@pytest.mark.req("EN-13")
async def test_read_only_folder_of_turn_is_restored(root, checkpoints):
    (root / "was").mkdir(0o755)
    (root / "was" / "in").write_text("before")
    (root / "alias").symlink_to("nowhere")
    await checkpoints.begin("t")
    (root / "was" / "in").write_text("after")
    (root / "alias").unlink()
    (root / "alias").mkdir()
    (root / "alias" / "new").write_text("x")
    for folder in ("was", "alias"):
        os.chmod(root / folder, 0o500)
    await checkpoints.finish("t")
    undone = await checkpoints.undo(await checkpoints.plan("t", "undo"))
    assert undone.skipped == ()
    assert os.readlink(root / "alias") == "nowhere" and (root / "was").stat().st_mode & 0o777 == 0o755


@pytest.mark.req("EN-13")
def test_changes_in_read_only_folders_are_undone(root, tmp_path):
    (root / "module" / "deep").mkdir(parents=True)
    (root / "module" / "deep" / "in").write_text("before")
    for folder in ("module/deep", "module"):
        os.chmod(root / folder, 0o555)
    before = snapshot(root)
    script = """
import asyncio, os, subprocess, sys
from ostler.processes.sandbox_entry import enter_sandbox
from ostler.workspace.checkpoints import Checkpoints
if os.geteuid() == 0:
    enter_sandbox({"capabilities": 0})  # root could write everywhere
async def main():
    checkpoints = Checkpoints(sys.argv[1], sys.argv[2])
    await checkpoints.begin("t")
    work = "chmod -R u+w module; echo after > module/deep/in; echo x > module/new; chmod -R u-w module"
    subprocess.run(["sh", "-c", work], cwd=sys.argv[1], check=True)
    await checkpoints.finish("t")
    assert (await checkpoints.undo(await checkpoints.plan("t", "undo"))).skipped == ()
asyncio.run(main())
"""
    subprocess.run([sys.executable, "-c", script, str(root), str(tmp_path / "store")], check=True)
    assert snapshot(root) == before
    os.chmod(root / "module", 0o755)
    os.chmod(root / "module" / "deep", 0o755)


@pytest.mark.req("EN-13")
async def test_killed_undo_can_be_continued(root, checkpoints, monkeypatch):
    before = snapshot(root)
    await checkpoints.begin("t")
    sh("rm -rf src docs", root)
    await checkpoints.finish("t")
    with monkeypatch.context() as patched:
        patched.setattr(UndoExecutor, "_restore_modes", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            await checkpoints.undo(await checkpoints.plan("t", "undo"))
    plan = await checkpoints.plan("t", "undo")
    assert plan.conflicts == ()
    assert (await checkpoints.undo(plan)).skipped == ()
    assert snapshot(root) == before


@pytest.mark.req("EN-13")
async def test_only_planned_paths_are_restored(root, checkpoints):
    await checkpoints.begin("t")
    sh("echo t > src/main.py; echo t > src/other.py", root)
    await checkpoints.finish("t")
    plan = await checkpoints.plan("t", "undo")
    await checkpoints.undo(msgspec.structs.replace(plan, restore=("src/main.py",)))
    assert (root / "src/main.py").read_text() == "print('one')\n"
    assert (root / "src/other.py").read_text() == "t\n"


@pytest.mark.req("EN-13")
async def test_undo_does_not_follow_symlinks_outside(root, checkpoints, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "b.md").write_text("SECRET")
    await checkpoints.begin("t")
    sh("rm -r docs/a", root)
    await checkpoints.finish("t")
    os.symlink(outside, root / "docs/a")
    plan = await checkpoints.plan("t", "undo")
    (root / "docs/a").unlink()
    plan = await checkpoints.plan("t", "undo")
    os.symlink(outside, root / "docs/a")
    undone = await checkpoints.undo(plan)
    assert {uncovered.path for uncovered in undone.skipped} == {"docs/a", "docs/a/b.md"}
    assert (outside / "b.md").read_text() == "SECRET"


@pytest.mark.req("EN-13", "FS-2")
@pytest.mark.parametrize(
    "action",
    [
        "echo new > tool",
        "rm tool",
        "chmod 755 tool",
        "rm tool; mkdir tool",
        "rm tool; echo x > x; chmod 6755 x; mv x tool",
    ],
)
async def test_undo_and_redo_do_not_set_setuid_and_setgid(root, checkpoints, action):
    sh("echo old > tool; chmod 6755 tool; mkdir shared; chmod 2775 shared", root)
    await checkpoints.begin("t")
    sh(f"{action}; rmdir shared", root)
    await checkpoints.finish("t")
    for _ in range(2):
        undone = await checkpoints.undo(await checkpoints.plan("t", "undo"))
        assert undone.skipped == ()
        assert ((root / "tool").read_text(), (root / "tool").stat().st_mode & 0o7777) == ("old\n", 0o755)
        assert (root / "shared").stat().st_mode & 0o7777 == 0o2775  # new files there inherit the group
        assert (await checkpoints.undo(await checkpoints.plan("t", "redo"))).skipped == ()
        assert not (root / "tool").exists() or not (root / "tool").stat().st_mode & 0o4000


@pytest.mark.req("EN-13")
async def test_hard_links_stay_linked(root, checkpoints):
    os.link(root / "src/main.py", root / "twin.py")
    before = snapshot(root)
    await checkpoints.begin("t")
    sh("echo more >> twin.py", root)
    await checkpoints.finish("t")
    await checkpoints.undo(await checkpoints.plan("t", "undo"))
    assert snapshot(root) == before
    assert (root / "twin.py").stat().st_ino == (root / "src/main.py").stat().st_ino


@pytest.mark.req("EN-13")
async def test_new_hard_link_is_undone_without_changing_other_file(root, checkpoints):
    (root / "one").write_text("1")
    (root / "two").write_text("2")
    await checkpoints.begin("t")
    sh("ln -f one two", root)
    await checkpoints.finish("t")
    plan = await checkpoints.plan("t", "undo")
    assert plan.restore == ("two",)
    assert (await checkpoints.undo(plan)).skipped == ()
    assert ((root / "one").read_text(), (root / "two").read_text()) == ("1", "2")
    assert (await checkpoints.undo(await checkpoints.plan("t", "redo"))).skipped == ()
    assert ((root / "one").read_text(), (root / "two").read_text()) == ("1", "1")


@pytest.mark.req("EN-13")
async def test_change_with_same_size_and_time_in_same_tick_is_detected(root, checkpoints):
    for turn in range(10):
        path = root / "quick.txt"
        path.write_text("aaaa")
        await checkpoints.begin(f"t{turn}")
        path.write_text("bbbb")
        os.utime(path, (1, 1))
        await checkpoints.finish(f"t{turn}")
        assert list(await stored_changes(checkpoints, f"t{turn}")) == ["quick.txt"]
        path.unlink()


@pytest.mark.req("EN-13")
async def test_second_scan_reads_only_changed_files(root, checkpoints, monkeypatch):
    monkeypatch.setattr(content_capture, "_TICK_NS", -1)  # treat all files as old
    await checkpoints.begin("one")
    opened = []
    real = content_capture.os.open
    monkeypatch.setattr(
        content_capture.os, "open", lambda path, *args, **kwargs: opened.append(path) or real(path, *args, **kwargs)
    )
    await checkpoints.finish("one")
    assert "main.py" not in opened
    (root / "src/main.py").write_text("x")
    await checkpoints.begin("two")
    assert opened.count("main.py") == 1
    assert "other.py" not in opened


@pytest.mark.req("EN-13")
async def test_checkpoints_survive_process(root, checkpoints, tmp_path):
    before = snapshot(root)
    await checkpoints.begin("t")
    sh(ACTIONS["rm all"], root)
    await checkpoints.finish("t")
    checkpoints.close()
    reopened = Checkpoints(str(root), str(tmp_path / "store"))
    assert await reopened.turns() == ["t"]
    await reopened.undo(await reopened.plan("t", "undo"))
    assert snapshot(root) == before
    reopened.close()


@pytest.mark.req("EN-13")
def test_killed_turn_can_be_undone(root, tmp_path):
    before = snapshot(root)
    script = """
import asyncio, os, subprocess, sys
from ostler.workspace.checkpoints import Checkpoints
async def main():
    checkpoints = Checkpoints(sys.argv[1], sys.argv[2])
    await checkpoints.begin("killed")
    subprocess.run(["sh", "-c", "rm -rf src; echo x > new"], cwd=sys.argv[1])
    checkpoints.heartbeat("killed")
    os.kill(os.getpid(), 9)
asyncio.run(main())
"""
    patched = subprocess.run([sys.executable, "-c", script, str(root), str(tmp_path / "store")], check=False)
    assert patched.returncode == -9

    (root / "notes.txt").write_text("written by the user after the crash\n")
    (root / "mine").write_text("new\n")
    before["notes.txt"] = (before["notes.txt"][0], (root / "notes.txt").read_bytes())

    async def recover() -> None:
        checkpoints = Checkpoints(str(root), str(tmp_path / "store"))
        assert await checkpoints.turns() == ["killed"], "the turn is closed without another turn in between"
        plan = await checkpoints.plan("killed", "undo")
        assert {uncovered.path for uncovered in plan.conflicts} == {"notes.txt", "mine"}
        assert all("interrupted" in uncovered.reason for uncovered in plan.conflicts)
        await checkpoints.undo(plan)
        assert (await checkpoints.undo(await checkpoints.plan("killed", "redo"))).skipped == ()
        await checkpoints.undo(await checkpoints.plan("killed", "undo"))
        checkpoints.close()

    asyncio.run(recover())
    (root / "mine").unlink()
    assert snapshot(root) == before


@pytest.mark.req("EN-13")
async def test_uncovered_paths_are_reported(root, checkpoints, monkeypatch):
    monkeypatch.setattr(tree_scan, "TOO_LARGE_FILES", 10)
    for module in (checkpoint_store, content_capture, tree_scan):
        monkeypatch.setattr(module, "MAX_FILE_BYTES", 1000)
    (root / ".gitignore").write_text("cache/\nlittle/\n")
    for folder, count in (("node_modules/x", 20), ("cache", 20), ("little", 3), ("many", 20)):
        (root / folder).mkdir(parents=True)
        for number in range(count):
            (root / folder / str(number)).write_text("x")
    (root / "huge.bin").write_bytes(b"x" * 2000)
    uncovered = await checkpoints.begin("t")
    assert {gap.path for gap in uncovered} == {"node_modules", "cache", "huge.bin"}
    assert all(gap.reason for gap in uncovered)
    sh("rm -r node_modules little many; echo more >> huge.bin; echo x > cache/0; echo y > cache/new", root)
    await checkpoints.finish("t")
    changes = await stored_changes(checkpoints, "t")
    assert {"node_modules", "little", "little/2", "many/19", "huge.bin"} <= changes.keys()
    plan = await checkpoints.plan("t", "undo")
    assert {uncovered.path for uncovered in plan.uncovered} == {"node_modules", "huge.bin"}
    await checkpoints.undo(plan)
    assert (root / "little/2").exists()
    assert (root / "many/19").exists()
    assert (root / "huge.bin").stat().st_size == 2005


@pytest.mark.req("EN-13")
async def test_new_folder_that_is_too_large_is_not_deleted(root, checkpoints, monkeypatch):
    monkeypatch.setattr(tree_scan, "TOO_LARGE_FILES", 10)
    await checkpoints.begin("t")
    (root / "node_modules").mkdir()
    for number in range(20):
        (root / "node_modules" / str(number)).write_text("x")
    await checkpoints.finish("t")
    plan = await checkpoints.plan("t", "undo")
    assert [uncovered.path for uncovered in plan.conflicts] == ["node_modules"]
    await checkpoints.undo(plan)
    assert (root / "node_modules/19").exists()


@pytest.mark.req("EN-13")
async def test_store_stays_below_limit_and_keeps_newest_turn(root, tmp_path):
    checkpoints = Checkpoints(str(root), str(tmp_path / "store"), max_bytes=400_000)
    for turn in range(12):
        await checkpoints.begin(f"t{turn}")
        (root / "random.bin").write_bytes(os.urandom(50_000))
        await checkpoints.finish(f"t{turn}")
    turns = await checkpoints.turns()
    assert turns[-1] == "t11"
    assert 1 <= len(turns) < 12
    size = sum(path.stat().st_size for path in (tmp_path / "store").rglob("*") if path.name != "turns.db-wal")
    assert size < 600_000
    before = (root / "random.bin").read_bytes()
    await checkpoints.undo(await checkpoints.plan("t11", "undo"))
    assert (root / "random.bin").read_bytes() != before
    with pytest.raises(OstlerError, match="t0"):
        await checkpoints.plan("t0", "undo")
    checkpoints.close()


@pytest.mark.req("EN-13")
async def test_store_size_is_proportional_to_changes(root, checkpoints, tmp_path):
    await checkpoints.begin("one")
    await checkpoints.finish("one")
    before = checkpoints._checkpoint_store._contents.used_bytes
    for turn in range(5):
        await checkpoints.begin(f"t{turn}")
        (root / "random.bin").write_bytes(os.urandom(10_000))
        await checkpoints.finish(f"t{turn}")
    assert checkpoints._checkpoint_store._contents.used_bytes - before < 2 * 50_000
    assert stat.S_IMODE((tmp_path / "store").stat().st_mode) == 0o700


@pytest.mark.req("EN-13")
async def test_full_store_saves_as_many_files_as_possible(root, tmp_path):
    (root / "big.bin").write_bytes(os.urandom(90_000))
    checkpoints = Checkpoints(str(root), str(tmp_path / "store"), max_bytes=50_000)
    uncovered = await checkpoints.begin("t")
    assert [gap.path for gap in uncovered] == ["big.bin"]
    assert "full" in uncovered[0].reason
    sh("rm -rf src big.bin", root)
    await checkpoints.finish("t")
    plan = await checkpoints.plan("t", "undo")
    assert "src/main.py" in plan.restore
    assert [uncovered.path for uncovered in plan.uncovered] == ["big.bin"]
    checkpoints.close()


@pytest.mark.req("EN-13")
async def test_files_not_saved_in_time_are_reported_and_saved_next_time(root, checkpoints, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(content_capture, "CAPTURE_TIMEOUT_SECONDS", -1.0)
        uncovered = await checkpoints.begin("one")
        assert "took too long" in uncovered[0].reason
    await checkpoints.finish("one")
    assert await stored_changes(checkpoints, "one") == {}
    before = snapshot(root)
    uncovered = await checkpoints.begin("two")
    assert uncovered == []
    sh(ACTIONS["rm all"], root)
    await checkpoints.finish("two")
    await checkpoints.undo(await checkpoints.plan("two", "undo"))
    assert snapshot(root) == before


@pytest.mark.req("EN-13")
async def test_turn_left_open_by_closed_session_can_be_undone(root, tmp_path):
    before = snapshot(root)
    checkpoints = Checkpoints(str(root), str(tmp_path / "store"))
    await checkpoints.begin("left")
    sh("rm -r src", root)
    checkpoints.close()
    checkpoints = Checkpoints(str(root), str(tmp_path / "store"))
    await checkpoints.begin("next")
    await checkpoints.undo(await checkpoints.plan("left", "undo"))
    assert snapshot(root) == before
    checkpoints.close()


@pytest.mark.req("EN-13")
async def test_discarded_turn_leaves_no_trace(root, tmp_path):
    checkpoints = Checkpoints(str(root), str(tmp_path / "store"))
    await checkpoints.begin("read only")
    await checkpoints.discard("read only")
    (root / "mine").write_text("by hand")
    checkpoints.close()
    checkpoints = Checkpoints(str(root), str(tmp_path / "store"))
    assert await checkpoints.undoable_turns() == []
    assert await checkpoints.turns() == []
    checkpoints.close()


@pytest.mark.req("EN-13")
def test_killed_turn_without_side_effect_is_dropped(root, tmp_path):
    script = """
import asyncio, os, sys
from ostler.workspace.checkpoints import Checkpoints
async def main():
    await Checkpoints(sys.argv[1], sys.argv[2]).begin("killed")
    os.kill(os.getpid(), 9)
asyncio.run(main())
"""
    subprocess.run([sys.executable, "-c", script, str(root), str(tmp_path / "store")], check=False)
    (root / "mine").write_text("by hand")

    async def recover() -> None:
        checkpoints = Checkpoints(str(root), str(tmp_path / "store"))
        assert await checkpoints.turns() == []
        checkpoints.close()

    asyncio.run(recover())


@pytest.mark.req("EN-13")
async def test_store_inside_workspace_is_not_saved(root):
    checkpoints = Checkpoints(str(root), str(root / ".store"))
    for turn in ("one", "two"):
        assert await checkpoints.begin(turn) == []
        await checkpoints.finish(turn)
        assert await stored_changes(checkpoints, turn) == {}
    checkpoints.close()


@pytest.mark.req("EN-13")
async def test_damaged_store_is_replaced(root, tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    (store / "turns.db").write_bytes(b"not a database" * 100)
    checkpoints = Checkpoints(str(root), str(store))
    assert "." not in {gap.path for gap in await checkpoints.begin("t")}
    assert (store / "turns.db.damaged").exists()
    checkpoints.close()


@pytest.mark.req("EN-13")
async def test_damaged_content_is_not_restored(root, checkpoints, tmp_path):
    await checkpoints.begin("t")
    (root / "src/main.py").write_text("changed\n")
    await checkpoints.finish("t")
    plan = await checkpoints.plan("t", "undo")
    with sqlite3.connect(tmp_path / "store/turns.db") as database:
        database.execute("UPDATE pack SET data = x'00'")
    undone = await checkpoints.undo(plan)
    assert [uncovered.reason for uncovered in undone.skipped] == ["its content is no longer in the store"]
    assert (root / "src/main.py").read_text() == "changed\n"


@pytest.mark.req("EN-13")
async def test_turn_works_without_store_and_reports_it(root, tmp_path):
    (tmp_path / "file").write_text("a file instead of a folder")
    checkpoints = Checkpoints(str(root), str(tmp_path / "file"))
    uncovered = await checkpoints.begin("t")
    assert [gap.path for gap in uncovered] == ["."]
    await checkpoints.finish("t")
    with pytest.raises(OstlerError):
        await checkpoints.plan("t", "undo")


@pytest.mark.req("EN-13")
async def test_full_disk_does_not_lose_saved_contents(root, checkpoints, monkeypatch):
    await checkpoints.begin("one")
    (root / "src/main.py").write_text("one\n")
    await checkpoints.finish("one")
    (root / "src/main.py").write_text("by the user\n")

    def full(*args):
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(content_store.ContentStore, "flush", full)
        uncovered = await checkpoints.begin("two")
        assert "full" in uncovered[0].reason
    (root / "src/main.py").write_text("one\n")
    assert await checkpoints.begin("three") == []
    await checkpoints.undo(await checkpoints.plan("one", "undo"))
    assert (root / "src/main.py").read_text() == "print('one')\n"


async def test_unknown_turn_is_reported(checkpoints):
    await checkpoints.finish("never")
    with pytest.raises(OstlerError, match="no changes are stored"):
        await checkpoints.plan("never", "undo")


async def test_cancelled_begin_stops_and_can_be_repeated(root, checkpoints, monkeypatch):
    loop = asyncio.get_running_loop()
    reached = asyncio.Event()
    real = content_capture.ContentCapture._capture_entry

    def slow(self, *args):
        loop.call_soon_threadsafe(reached.set)
        while not self._is_stopped():
            pass
        return real(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(content_capture.ContentCapture, "_capture_entry", slow)
        task = asyncio.create_task(checkpoints.begin("t"))
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert "." not in {gap.path for gap in await checkpoints.begin("t")}


@pytest.mark.req("EN-13")
async def test_two_sessions_share_a_store(root, tmp_path):
    one, two = (Checkpoints(str(root), str(tmp_path / "store")) for _ in range(2))
    await one.begin("a")
    (root / "src/main.py").write_text("a\n")
    await one.finish("a")
    await two.begin("b")
    (root / "src/other.py").write_text("b\n")
    await two.finish("b")
    await two.undo(await two.plan("b", "undo"))
    await one.undo(await one.plan("a", "undo"))
    assert (root / "src/main.py").read_text() == "print('one')\n"
    assert (root / "src/other.py").read_text() == "other\n"
    one.close()
    two.close()


def test_store_is_imported_only_when_needed():
    script = "import sys, ostler.workspace.checkpoints; print('sqlite3' in sys.modules, 'zlib' in sys.modules)"
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert output == "False False\n"


def test_git_is_installed():
    assert shutil.which("git")


async def test_git_folder_is_reported_as_uncovered(root, checkpoints):
    assert await checkpoints.begin("a") == []
    (root / ".git").mkdir()
    assert [uncovered.path for uncovered in await checkpoints.begin("b")] == [".git"]


@pytest.fixture
def scans(monkeypatch):
    """Collect the scans of the workspace; every turn end may be scanned in advance."""
    scans = []
    real_scan = tree_scan.TreeScanner.scan

    def recording_scan(self):
        scans.append(self)
        real_scan(self)

    monkeypatch.setattr(tree_scan.TreeScanner, "scan", recording_scan)
    monkeypatch.setattr(checkpoints_module, "PRESCAN_THRESHOLD_SECONDS", 0.0)
    return scans


@pytest.mark.req("EN-13")
async def test_finish_reuses_prescan(root, checkpoints, scans):
    await checkpoints.begin("t")
    (root / "new").write_text("x")
    checkpoints.heartbeat("t")
    checkpoints.mark_idle("t")
    await checkpoints._prescan_task
    assert len(scans) == 2
    await checkpoints.finish("t")
    assert len(scans) == 2 and list(await stored_changes(checkpoints, "t")) == ["new"]
    plan = await checkpoints.plan("t", "undo")
    assert plan.delete == ("new",)


@pytest.mark.req("EN-13")
async def test_changes_after_prescan_are_detected(root, checkpoints, scans):
    await checkpoints.begin("t")
    checkpoints.mark_idle("t")
    await checkpoints._prescan_task
    checkpoints.heartbeat("t")
    (root / "late").write_text("x")
    await checkpoints.finish("t")
    assert list(await stored_changes(checkpoints, "t")) == ["late"]


@pytest.mark.req("EN-13")
async def test_finish_waits_for_running_prescan(root, checkpoints, scans):
    await checkpoints.begin("t")
    (root / "new").write_text("x")
    checkpoints.mark_idle("t")
    await checkpoints.finish("t")
    assert list(await stored_changes(checkpoints, "t")) == ["new"]
    assert len(scans) == 2


@pytest.mark.req("EN-13")
async def test_delayed_prescan_starts_at_turn_end(root, checkpoints, scans, monkeypatch):
    monkeypatch.setattr(checkpoints_module, "_PRESCAN_DELAY_SECONDS", 3600.0)
    await checkpoints.begin("t")
    (root / "new").write_text("x")
    checkpoints.mark_idle("t")
    async with asyncio.timeout(300):
        await checkpoints.finish("t")
    assert list(await stored_changes(checkpoints, "t")) == ["new"]
    assert len(scans) == 2


@pytest.mark.req("EN-13")
async def test_prescan_does_not_lose_changes_of_interrupted_turn(root, tmp_path, scans):
    (root / "a").write_text("before")
    interrupted = Checkpoints(str(root), str(tmp_path / "mid"))
    await interrupted.begin("t")
    (root / "a").write_text("after")
    interrupted.heartbeat("t")
    assert await interrupted.changed_files("t") == ["a"]
    interrupted.mark_idle("t")
    await interrupted._prescan_task
    interrupted.close()
    checkpoints = Checkpoints(str(root), str(tmp_path / "mid"))
    await checkpoints.undo(await checkpoints.plan("t", "undo"))
    checkpoints.close()
    assert (root / "a").read_text() == "before"


async def test_full_disk_is_named_as_the_reason(root, tmp_path, monkeypatch):
    (tmp_path / "store").write_text("in the way")
    checkpoints = Checkpoints(str(root), str(tmp_path / "store"))
    (gap,) = await checkpoints.begin("t")
    assert gap.path == "." and gap.reason.startswith(f"no snapshot can be saved in {tmp_path}/store: ")
    monkeypatch.setattr(checkpoints_module, "_MIN_FREE_BYTES", 1 << 80)
    (gap,) = await checkpoints.begin("t")
    assert gap.reason == f"no space to save a snapshot in {tmp_path}/store"
