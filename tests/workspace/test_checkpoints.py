"""A turn can be taken back, whatever made its changes and wherever; nothing else is touched."""

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

from ostler.core.errors import OstlerError
from ostler.workspace import checkpoint_store, checkpoints, content_capture, content_store, tree_scan
from ostler.workspace.checkpoints import Checkpoints
from ostler.workspace.local_workspace import LocalWorkspace
from ostler.workspace.undo_executor import UndoExecutor


def sh(script: str, cwd) -> None:
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    subprocess.run(["sh", "-euc", script], cwd=cwd, check=True, env=env, stdout=subprocess.DEVNULL)


def picture(root) -> dict[str, tuple[int, bytes]]:
    """Every path with its mode and what it holds; git's own folder is looked at apart."""
    found = {}
    for folder, folders, names in os.walk(root):
        if ".git" in folders:
            folders.remove(".git")
        for name in [*folders, *names]:
            path = os.path.join(folder, name)
            mode = os.lstat(path).st_mode
            if stat.S_ISLNK(mode):
                held = os.fsencode(os.readlink(path))
            else:
                held = Path(path).read_bytes() if stat.S_ISREG(mode) else b""
            found[os.path.relpath(path, root)] = (mode, held)
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
async def past(root, tmp_path):
    past = Checkpoints(str(root), str(tmp_path / "store"))
    yield past
    past.close()


WORLDS = {
    "no git": "true",
    "tracked": "git init -q; git add -A; git -c user.name=a -c user.email=a@b commit -qm x",
    "staged and untracked": "git init -q; git add src run.sh; echo staged >> src/other.py; git add src/other.py",
    "ignored": "printf 'build/\\nsrc/\\n*.png\\n' > .gitignore; git init -q; git add .gitignore",
}
DEEDS = {
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
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("deed", DEEDS)
async def test_a_turn_is_taken_back_and_done_again(root, past, world, deed):
    sh(WORLDS[world], root)
    before, git = picture(root), git_state(root)
    coverage = await past.begin("t")
    assert {gap.path for gap in coverage.uncovered} <= {".git"}
    sh(DEEDS[deed], root)
    after = picture(root)
    assert after != before
    changes = await past.finish("t")
    assert {change.path for change in changes.changed} >= {
        path for path in before if path.isprintable() and path not in after
    }
    plan = await past.plan_undo("t")
    assert picture(root) == after
    assert (plan.conflicts, plan.uncovered) == ((), ())
    undone = await past.undo(plan)
    assert undone.skipped == ()
    assert picture(root) == before
    assert git_state(root) == git
    redone = await past.redo(await past.plan_redo("t"))
    assert redone.skipped == ()
    assert picture(root) == after
    assert git_state(root) == git
    assert (await past.undo(await past.plan_undo("t"))).skipped == ()
    assert picture(root) == before


@pytest.mark.req("EN-13")
async def test_what_the_edit_tool_changes_is_taken_back_too(root, past):
    before = picture(root)
    await past.begin("t")
    workspace = LocalWorkspace(str(root))
    await workspace.read_text("src/main.py")
    await workspace.write_text("src/main.py", "print('two')\n")
    await workspace.write_text("fresh/file.txt", "x")
    await workspace.rename("notes.txt", "noted.txt")
    await workspace.delete("image.png")
    changes = await past.finish("t")
    assert [(change.path, change.kind) for change in changes.changed] == [
        ("fresh", "created"),
        ("fresh/file.txt", "created"),
        ("image.png", "deleted"),
        ("noted.txt", "created"),
        ("notes.txt", "deleted"),
        ("src/main.py", "modified"),
    ]
    plan = await past.plan_undo("t")
    assert plan.restore == ("image.png", "notes.txt", "src/main.py")
    assert plan.delete == ("fresh", "fresh/file.txt", "noted.txt")
    await past.undo(plan)
    assert picture(root) == before


@pytest.mark.req("EN-13")
@pytest.mark.parametrize(
    "deed", ["git commit -qam done", "git reset -q --hard", "git checkout -q -- .", "git stash -q", "git clean -qfdx"]
)
async def test_files_come_back_from_what_git_did_to_them(root, past, deed):
    sh("git init -q; git config user.name a; git config user.email a@b; git add src run.sh; git commit -qm x", root)
    (root / "src/main.py").write_text("the person's own work\n")
    before = picture(root)
    await past.begin("t")
    sh(deed, root)
    git = git_state(root)
    await past.finish("t")
    await past.undo(await past.plan_undo("t"))
    assert picture(root) == before
    assert git_state(root) == git


@pytest.mark.req("EN-13")
async def test_what_a_person_changed_between_turns_is_nobodys_to_undo(root, past):
    await past.begin("one")
    (root / "src/main.py").write_text("by turn one\n")
    await past.finish("one")
    (root / "src/other.py").write_text("by a person\n")
    (root / "mine.txt").write_text("by a person\n")
    await past.begin("two")
    (root / "run.sh").write_text("by turn two\n")
    await past.finish("two")
    plan = await past.plan_undo("two")
    assert (plan.restore, plan.delete) == (("run.sh",), ())
    await past.undo(plan)
    await past.undo(await past.plan_undo("one"))
    assert (root / "src/main.py").read_text() == "print('one')\n"
    assert (root / "src/other.py").read_text() == "by a person\n"
    assert (root / "mine.txt").read_text() == "by a person\n"


@pytest.mark.req("EN-13")
@pytest.mark.parametrize(
    ("turn", "person", "path", "says"),
    [
        ("echo t > src/main.py", "echo p > src/main.py", "src/main.py", "changed"),
        ("echo t > src/main.py", "rm src/main.py", "src/main.py", "deleted"),
        ("echo t > src/main.py", "chmod 700 src/main.py", "src/main.py", "changed"),
        ("echo t > new", "echo p > new", "new", "changed"),
        ("rm run.sh", "echo p > run.sh", "run.sh", "put there"),
        ("mkdir new; echo t > new/t", "echo p > new/p", "new", "holds files"),
        ("ln -sfn x link", "ln -sfn y link", "link", "changed"),
        ("echo t > docs/a/b.md", "mv docs away; ln -s away docs", "docs/a/b.md", "changed"),
    ],
)
async def test_later_changes_are_conflicts_and_stay(root, past, turn, person, path, says):
    await past.begin("t")
    sh(turn, root)
    await past.finish("t")
    sh(person, root)
    theirs = picture(root)
    plan = await past.plan_undo("t")
    assert [gap.path for gap in plan.conflicts] == [path]
    assert says in plan.conflicts[0].reason
    await past.undo(plan)
    now = picture(root)
    assert {name: now.get(name) for name in theirs if name != "new/t"} == {
        name: held for name, held in theirs.items() if name != "new/t"
    }


@pytest.mark.req("EN-13")
async def test_a_change_after_the_plan_was_shown_is_seen_in_time(root, past):
    await past.begin("t")
    sh("echo t > src/main.py; echo t > new; rm run.sh", root)
    await past.finish("t")
    plan = await past.plan_undo("t")
    sh("echo p > src/main.py; echo p > new; echo p > run.sh", root)
    theirs = picture(root)
    undone = await past.undo(plan)
    assert {gap.path for gap in undone.skipped} == {"src/main.py", "new", "run.sh"}
    assert (undone.restored, undone.deleted) == ((), ())
    assert picture(root) == theirs


@pytest.mark.req("EN-13")
async def test_a_folder_that_a_turn_closed_or_made_and_closed_is_put_right(root, past):
    (root / "was").mkdir(0o755)
    (root / "was" / "in").write_text("before")
    (root / "alias").symlink_to("nowhere")
    await past.begin("t")
    (root / "was" / "in").write_text("after")
    (root / "alias").unlink()
    (root / "alias").mkdir()
    (root / "alias" / "new").write_text("x")
    for folder in ("was", "alias"):
        os.chmod(root / folder, 0o500)
    await past.finish("t")
    undone = await past.undo(await past.plan_undo("t"))
    assert undone.skipped == ()
    assert os.readlink(root / "alias") == "nowhere" and (root / "was").stat().st_mode & 0o777 == 0o755


@pytest.mark.req("EN-13")
def test_what_a_turn_did_in_folders_that_are_read_only_again_is_put_right(root, tmp_path):
    (root / "module" / "deep").mkdir(parents=True)
    (root / "module" / "deep" / "in").write_text("before")
    for folder in ("module/deep", "module"):
        os.chmod(root / folder, 0o555)
    before = picture(root)
    script = """
import asyncio, os, subprocess, sys
from ostler.processes.sandbox_entry import enter_sandbox
from ostler.workspace.checkpoints import Checkpoints
if os.geteuid() == 0:
    enter_sandbox({"capabilities": 0})  # nothing is read-only to root
async def main():
    past = Checkpoints(sys.argv[1], sys.argv[2])
    await past.begin("t")
    work = "chmod -R u+w module; echo after > module/deep/in; echo x > module/new; chmod -R u-w module"
    subprocess.run(["sh", "-c", work], cwd=sys.argv[1], check=True)
    await past.finish("t")
    assert (await past.undo(await past.plan_undo("t"))).skipped == ()
asyncio.run(main())
"""
    subprocess.run([sys.executable, "-c", script, str(root), str(tmp_path / "store")], check=True)
    assert picture(root) == before
    os.chmod(root / "module", 0o755)
    os.chmod(root / "module" / "deep", 0o755)


@pytest.mark.req("EN-13")
async def test_an_undo_that_was_killed_is_gone_on_with(root, past, monkeypatch):
    before = picture(root)
    await past.begin("t")
    sh("rm -rf src docs", root)
    await past.finish("t")
    with monkeypatch.context() as killed:
        killed.setattr(UndoExecutor, "_restore_modes", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            await past.undo(await past.plan_undo("t"))
    plan = await past.plan_undo("t")
    assert plan.conflicts == ()
    assert (await past.undo(plan)).skipped == ()
    assert picture(root) == before


@pytest.mark.req("EN-13")
async def test_only_what_the_plan_says_is_done(root, past):
    await past.begin("t")
    sh("echo t > src/main.py; echo t > src/other.py", root)
    await past.finish("t")
    plan = await past.plan_undo("t")
    await past.undo(msgspec.structs.replace(plan, restore=("src/main.py",)))
    assert (root / "src/main.py").read_text() == "print('one')\n"
    assert (root / "src/other.py").read_text() == "t\n"


@pytest.mark.req("EN-13")
async def test_an_undo_cannot_be_led_outside(root, past, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "b.md").write_text("SECRET")
    await past.begin("t")
    sh("rm -r docs/a", root)
    await past.finish("t")
    os.symlink(outside, root / "docs/a")
    plan = await past.plan_undo("t")
    (root / "docs/a").unlink()
    plan = await past.plan_undo("t")
    os.symlink(outside, root / "docs/a")
    undone = await past.undo(plan)
    assert {gap.path for gap in undone.skipped} == {"docs/a", "docs/a/b.md"}
    assert (outside / "b.md").read_text() == "SECRET"


@pytest.mark.req("EN-13")
async def test_names_that_share_a_file_share_it_still(root, past):
    os.link(root / "src/main.py", root / "twin.py")
    before = picture(root)
    await past.begin("t")
    sh("echo more >> twin.py", root)
    await past.finish("t")
    await past.undo(await past.plan_undo("t"))
    assert picture(root) == before
    assert (root / "twin.py").stat().st_ino == (root / "src/main.py").stat().st_ino


@pytest.mark.req("EN-13")
async def test_a_name_that_a_turn_gave_to_another_file_is_put_right_without_it(root, past):
    (root / "one").write_text("1")
    (root / "two").write_text("2")
    await past.begin("t")
    sh("ln -f one two", root)
    await past.finish("t")
    plan = await past.plan_undo("t")
    assert plan.restore == ("two",)
    assert (await past.undo(plan)).skipped == ()
    assert ((root / "one").read_text(), (root / "two").read_text()) == ("1", "2")
    assert (await past.redo(await past.plan_redo("t"))).skipped == ()
    assert ((root / "one").read_text(), (root / "two").read_text()) == ("1", "1")


@pytest.mark.req("EN-13")
async def test_a_change_that_keeps_size_and_time_within_the_same_tick_is_found(root, past):
    for turn in range(10):
        path = root / "quick.txt"
        path.write_text("aaaa")
        await past.begin(f"t{turn}")
        path.write_text("bbbb")
        os.utime(path, (1, 1))
        changes = await past.finish(f"t{turn}")
        assert [change.path for change in changes.changed] == ["quick.txt"]
        path.unlink()


@pytest.mark.req("EN-13")
async def test_a_second_count_opens_nothing_that_did_not_change(root, past, monkeypatch):
    monkeypatch.setattr(content_capture, "_TICK_NS", -1)  # as if all files were old
    await past.begin("one")
    opened = []
    real = content_capture.os.open
    monkeypatch.setattr(
        content_capture.os, "open", lambda path, *args, **kwargs: opened.append(path) or real(path, *args, **kwargs)
    )
    await past.finish("one")
    assert "main.py" not in opened
    (root / "src/main.py").write_text("x")
    await past.begin("two")
    assert opened.count("main.py") == 1
    assert "other.py" not in opened


@pytest.mark.req("EN-13")
async def test_the_past_outlives_the_process(root, past, tmp_path):
    before = picture(root)
    await past.begin("t")
    sh(DEEDS["rm all"], root)
    await past.finish("t")
    past.close()
    again = Checkpoints(str(root), str(tmp_path / "store"))
    assert await again.turns() == ["t"]
    await again.undo(await again.plan_undo("t"))
    assert picture(root) == before
    again.close()


@pytest.mark.req("EN-13")
def test_a_turn_that_was_killed_can_be_taken_back(root, tmp_path):
    before = picture(root)
    script = """
import asyncio, os, subprocess, sys
from ostler.workspace.checkpoints import Checkpoints
async def main():
    past = Checkpoints(sys.argv[1], sys.argv[2])
    await past.begin("killed")
    subprocess.run(["sh", "-c", "rm -rf src; echo x > new"], cwd=sys.argv[1])
    past.heartbeat("killed")
    os.kill(os.getpid(), 9)
asyncio.run(main())
"""
    killed = subprocess.run([sys.executable, "-c", script, str(root), str(tmp_path / "store")], check=False)
    assert killed.returncode == -9

    (root / "notes.txt").write_text("a person's own words, after the crash\n")
    (root / "mine").write_text("new\n")
    before["notes.txt"] = (before["notes.txt"][0], (root / "notes.txt").read_bytes())

    async def go_on() -> None:
        past = Checkpoints(str(root), str(tmp_path / "store"))
        assert await past.turns() == ["killed"], "without another turn in between"
        plan = await past.plan_undo("killed")
        assert {gap.path for gap in plan.conflicts} == {"notes.txt", "mine"}
        assert all("cut off" in gap.reason for gap in plan.conflicts)
        await past.undo(plan)
        assert (await past.redo(await past.plan_redo("killed"))).skipped == ()
        await past.undo(await past.plan_undo("killed"))
        past.close()

    asyncio.run(go_on())
    (root / "mine").unlink()
    assert picture(root) == before


@pytest.mark.req("EN-13")
async def test_what_is_not_covered_is_named(root, past, monkeypatch):
    monkeypatch.setattr(tree_scan, "TOO_LARGE_FILES", 10)
    for module in (checkpoint_store, content_capture, tree_scan):
        monkeypatch.setattr(module, "MAX_FILE_BYTES", 1000)
    (root / ".gitignore").write_text("cache/\nlittle/\n")
    for folder, count in (("node_modules/x", 20), ("cache", 20), ("little", 3), ("many", 20)):
        (root / folder).mkdir(parents=True)
        for number in range(count):
            (root / folder / str(number)).write_text("x")
    (root / "huge.bin").write_bytes(b"x" * 2000)
    coverage = await past.begin("t")
    assert {gap.path for gap in coverage.uncovered} == {"node_modules", "cache", "huge.bin"}
    assert all(gap.reason for gap in coverage.uncovered)
    sh("rm -r node_modules little many; echo more >> huge.bin; echo x > cache/0; echo y > cache/new", root)
    changes = {change.path for change in (await past.finish("t")).changed}
    assert {"node_modules", "little", "little/2", "many/19", "huge.bin"} <= changes
    plan = await past.plan_undo("t")
    assert {gap.path for gap in plan.uncovered} == {"node_modules", "huge.bin"}
    await past.undo(plan)
    assert (root / "little/2").exists()
    assert (root / "many/19").exists()
    assert (root / "huge.bin").stat().st_size == 2005


@pytest.mark.req("EN-13")
async def test_a_folder_that_is_too_heavy_is_not_taken_away_for_having_come(root, past, monkeypatch):
    monkeypatch.setattr(tree_scan, "TOO_LARGE_FILES", 10)
    await past.begin("t")
    (root / "node_modules").mkdir()
    for number in range(20):
        (root / "node_modules" / str(number)).write_text("x")
    await past.finish("t")
    plan = await past.plan_undo("t")
    assert [gap.path for gap in plan.conflicts] == ["node_modules"]
    await past.undo(plan)
    assert (root / "node_modules/19").exists()


@pytest.mark.req("EN-13")
async def test_the_store_keeps_to_its_cap_and_the_newest_turn(root, tmp_path):
    past = Checkpoints(str(root), str(tmp_path / "store"), max_bytes=400_000)
    for turn in range(12):
        await past.begin(f"t{turn}")
        (root / "random.bin").write_bytes(os.urandom(50_000))
        await past.finish(f"t{turn}")
    kept = await past.turns()
    assert kept[-1] == "t11"
    assert 1 <= len(kept) < 12
    size = sum(path.stat().st_size for path in (tmp_path / "store").rglob("*") if path.name != "turns.db-wal")
    assert size < 600_000
    before = (root / "random.bin").read_bytes()
    await past.undo(await past.plan_undo("t11"))
    assert (root / "random.bin").read_bytes() != before
    with pytest.raises(OstlerError, match="t0"):
        await past.plan_undo("t0")
    past.close()


@pytest.mark.req("EN-13")
async def test_the_store_holds_little_more_than_what_changed(root, past, tmp_path):
    await past.begin("one")
    await past.finish("one")
    before = past._checkpoint_store._contents.used_bytes
    for turn in range(5):
        await past.begin(f"t{turn}")
        (root / "random.bin").write_bytes(os.urandom(10_000))
        await past.finish(f"t{turn}")
    assert past._checkpoint_store._contents.used_bytes - before < 2 * 50_000
    assert stat.S_IMODE((tmp_path / "store").stat().st_mode) == 0o700


@pytest.mark.req("EN-13")
async def test_when_not_all_fits_as_many_files_as_possible_do(root, tmp_path):
    (root / "big.bin").write_bytes(os.urandom(90_000))
    past = Checkpoints(str(root), str(tmp_path / "store"), max_bytes=50_000)
    coverage = await past.begin("t")
    assert [gap.path for gap in coverage.uncovered] == ["big.bin"]
    assert "full" in coverage.uncovered[0].reason
    sh("rm -rf src big.bin", root)
    await past.finish("t")
    plan = await past.plan_undo("t")
    assert "src/main.py" in plan.restore
    assert [gap.path for gap in plan.uncovered] == ["big.bin"]
    past.close()


@pytest.mark.req("EN-13")
async def test_what_there_was_no_time_for_is_named_and_kept_next_time(root, past, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(content_capture, "CAPTURE_TIMEOUT_SECONDS", -1.0)
        coverage = await past.begin("one")
        assert coverage.files == 1  # a pipe takes no time
        assert "no time" in coverage.uncovered[0].reason
    assert (await past.finish("one")).changed == ()
    before = picture(root)
    coverage = await past.begin("two")
    assert (coverage.files, coverage.uncovered) == (11, ())
    sh(DEEDS["rm all"], root)
    await past.finish("two")
    await past.undo(await past.plan_undo("two"))
    assert picture(root) == before


@pytest.mark.req("EN-13")
async def test_a_turn_left_open_by_a_closed_session_can_be_taken_back(root, tmp_path):
    before = picture(root)
    past = Checkpoints(str(root), str(tmp_path / "store"))
    await past.begin("left")
    sh("rm -r src", root)
    past.close()
    past = Checkpoints(str(root), str(tmp_path / "store"))
    await past.begin("next")
    await past.undo(await past.plan_undo("left"))
    assert picture(root) == before
    past.close()


@pytest.mark.req("EN-13")
async def test_a_store_inside_the_workspace_does_not_keep_itself(root):
    past = Checkpoints(str(root), str(root / ".store"))
    for turn in ("one", "two"):
        assert (await past.begin(turn)).uncovered == ()
        assert (await past.finish(turn)).changed == ()
    past.close()


@pytest.mark.req("EN-13")
async def test_a_damaged_store_is_put_aside(root, tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    (store / "turns.db").write_bytes(b"this is no database" * 100)
    past = Checkpoints(str(root), str(store))
    assert (await past.begin("t")).files > 0
    assert (store / "turns.db.damaged").exists()
    past.close()


@pytest.mark.req("EN-13")
async def test_a_damaged_content_is_not_written_over_a_file(root, past, tmp_path):
    await past.begin("t")
    (root / "src/main.py").write_text("changed\n")
    await past.finish("t")
    plan = await past.plan_undo("t")
    with sqlite3.connect(tmp_path / "store/turns.db") as database:
        database.execute("UPDATE pack SET data = x'00'")
    undone = await past.undo(plan)
    assert [gap.reason for gap in undone.skipped] == ["its content is no longer in the store"]
    assert (root / "src/main.py").read_text() == "changed\n"


@pytest.mark.req("EN-13")
async def test_without_a_store_the_turn_goes_on_and_says_so(root, tmp_path):
    (tmp_path / "file").write_text("in the way")
    past = Checkpoints(str(root), str(tmp_path / "file"))
    coverage = await past.begin("t")
    assert (coverage.files, [gap.path for gap in coverage.uncovered]) == (0, ["."])
    assert (await past.finish("t")).changed == ()
    with pytest.raises(OstlerError):
        await past.plan_undo("t")


@pytest.mark.req("EN-13")
async def test_a_full_disk_loses_nothing_that_was_kept(root, past, monkeypatch):
    await past.begin("one")
    (root / "src/main.py").write_text("one\n")
    await past.finish("one")
    (root / "src/main.py").write_text("by a person\n")

    def full(*args):
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(content_store.ContentStore, "flush", full)
        coverage = await past.begin("two")
        assert "full" in coverage.uncovered[0].reason
    (root / "src/main.py").write_text("one\n")
    assert (await past.begin("three")).uncovered == ()
    await past.undo(await past.plan_undo("one"))
    assert (root / "src/main.py").read_text() == "print('one')\n"


async def test_an_unknown_turn_is_told_so(past):
    assert (await past.finish("never")).changed == ()
    with pytest.raises(OstlerError, match="nothing is known"):
        await past.plan_undo("never")


async def test_a_cancelled_begin_stops_soon_and_can_be_begun_again(root, past, monkeypatch):
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
        task = asyncio.create_task(past.begin("t"))
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert (await past.begin("t")).files > 0


@pytest.mark.req("EN-13")
async def test_two_sessions_share_a_store(root, tmp_path):
    one, two = (Checkpoints(str(root), str(tmp_path / "store")) for _ in range(2))
    await one.begin("a")
    (root / "src/main.py").write_text("a\n")
    await one.finish("a")
    await two.begin("b")
    (root / "src/other.py").write_text("b\n")
    await two.finish("b")
    await two.undo(await two.plan_undo("b"))
    await one.undo(await one.plan_undo("a"))
    assert (root / "src/main.py").read_text() == "print('one')\n"
    assert (root / "src/other.py").read_text() == "other\n"
    one.close()
    two.close()


def test_the_keeper_is_loaded_only_when_it_is_needed():
    script = "import sys, ostler.workspace.checkpoints; print('sqlite3' in sys.modules, 'zlib' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert told == "False False\n"


def test_there_is_a_git_to_test_with():
    assert shutil.which("git")


async def test_what_git_keeps_for_itself_is_named_as_not_covered(root, past):
    assert (await past.begin("a")).uncovered == ()
    (root / ".git").mkdir()
    assert [gap.path for gap in (await past.begin("b")).uncovered] == [".git"]


@pytest.fixture
def counts(monkeypatch):
    """How often the workspace was counted; every look is worth being taken ahead."""
    taken = []
    take = tree_scan.TreeScanner.scan

    def counted(self):
        taken.append(self)
        take(self)

    monkeypatch.setattr(tree_scan.TreeScanner, "scan", counted)
    monkeypatch.setattr(checkpoints, "PRESCAN_THRESHOLD_SECONDS", 0.0)
    return taken


@pytest.mark.req("EN-13")
async def test_what_was_looked_at_while_the_model_thought_is_not_looked_at_again(root, past, counts):
    await past.begin("t")
    (root / "new").write_text("x")
    past.heartbeat("t")
    past.mark_idle("t")
    await past._prescan_task
    assert len(counts) == 2
    changes = await past.finish("t")
    assert len(counts) == 2 and [change.path for change in changes.changed] == ["new"]
    plan = await past.plan_undo("t")
    assert plan.delete == ("new",)


@pytest.mark.req("EN-13")
async def test_what_happens_after_a_look_ahead_is_not_missed(root, past, counts):
    await past.begin("t")
    past.mark_idle("t")
    await past._prescan_task
    past.heartbeat("t")
    (root / "late").write_text("x")
    assert [change.path for change in (await past.finish("t")).changed] == ["late"]


@pytest.mark.req("EN-13")
async def test_an_end_that_comes_while_it_is_looked_ahead_waits_for_that(root, past, counts):
    await past.begin("t")
    (root / "new").write_text("x")
    past.mark_idle("t")
    assert [change.path for change in (await past.finish("t")).changed] == ["new"]
    assert len(counts) == 2


@pytest.mark.req("EN-13")
async def test_a_look_that_waits_for_another_call_does_not_wait_beyond_the_end(root, past, counts, monkeypatch):
    monkeypatch.setattr(checkpoints, "_PRESCAN_DELAY_SECONDS", 3600.0)
    await past.begin("t")
    (root / "new").write_text("x")
    past.mark_idle("t")
    async with asyncio.timeout(300):
        assert [change.path for change in (await past.finish("t")).changed] == ["new"]
    assert len(counts) == 2


@pytest.mark.req("EN-13")
async def test_a_look_in_the_middle_of_a_turn_does_not_forget_what_it_changed_when_it_dies(root, tmp_path, counts):
    (root / "a").write_text("before")
    dying = Checkpoints(str(root), str(tmp_path / "mid"))
    await dying.begin("t")
    (root / "a").write_text("after")
    dying.heartbeat("t")
    assert await dying.changed_files("t") == ["a"]
    dying.mark_idle("t")
    await dying._prescan_task
    dying.close()
    past = Checkpoints(str(root), str(tmp_path / "mid"))
    await past.undo(await past.plan_undo("t"))
    past.close()
    assert (root / "a").read_text() == "before"
