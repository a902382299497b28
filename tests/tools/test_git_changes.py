"""The first changed files of a repository, compared with `git status`, and read no further than needed."""

import asyncio
import os
import stat
import sys

import pytest
from tests.tools.test_git import git

from ostler.tools import git_repo
from ostler.tools.git_changes import GitChanges, read_changes
from ostler.tools.git_status import GitStatusTool

pytestmark = pytest.mark.req("AZ-4")
ENDLESS = "while True: sys.stdout.write(''.join(f'C f{n}\\0' for n in range(999)))"


@pytest.fixture
def repo(harness, monkeypatch):
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    git(harness.root, "init", "-q", "-b", "main")
    return harness


def commit(harness, **files):
    for name, text in files.items():
        harness.file(name.replace("__", "/") + ".txt", text)
    git(harness.root, "add", ".")
    git(harness.root, "commit", "-q", "-m", "x")


async def changes(harness, limit=50, is_shown=lambda path: True, folder="."):
    return await read_changes(await git_repo.open_repo(harness.workspace, folder), limit, is_shown)


async def status(harness):
    """Return what the status tool reports, with a rename as what it is made of."""
    repo = await git_repo.open_repo(harness.workspace, ".")
    found = (await GitStatusTool().run_in_repo(git_repo.RepoParams(), repo)).data["data"]["files"]
    assert not any("old_path" in file for file in found)
    return sorted((file["path"], file["status"]) for file in found)


async def test_same_files_as_git_status(repo):
    names = ("same", "edited", "removed", "staged", "both", "dropped", "sub__kept", "sub__edited")
    commit(repo, **{name: f"{name}\n" * 9 for name in names})
    for name in ("edited", "sub/edited", "both", "staged"):
        repo.file(f"{name}.txt", f"other {name}\n")
    git(repo.root, "add", "both.txt", "staged.txt")
    repo.file("both.txt", "again\n")
    repo.file("added.txt", "completely new\n")
    git(repo.root, "add", "added.txt")
    git(repo.root, "rm", "-q", "--cached", "dropped.txt")
    (repo.root / "removed.txt").unlink()
    for path in ("new/a.txt", "new/b.txt", "sub/ü new.txt", ".gitignore", "ignored.log"):
        repo.file(path, "*.log\n")
    (repo.root / "empty").mkdir()
    (repo.root / os.fsdecode(b"bad\xff")).touch()
    found = await changes(repo)
    assert (found.branch, found.is_complete) == ("main", True)
    expected = await status(repo)
    assert ("dropped.txt", "D.") in expected and ("dropped.txt", "??") in expected
    expected.remove(("dropped.txt", "??"))
    assert [(path, state) for state, path in found.files] == expected


async def test_repository_without_commits_and_detached_head(repo):
    repo.file("a.txt")
    repo.file("b.txt")
    git(repo.root, "add", "a.txt")
    assert await changes(repo) == expect("main", ("A.", "a.txt"), ("??", "b.txt"))
    git(repo.root, "commit", "-q", "-m", "x")
    git(repo.root, "checkout", "-q", "--detach")
    assert (await changes(repo)).branch == "(detached)"


async def test_conflict(repo):
    commit(repo, a="one\n")
    git(repo.root, "checkout", "-q", "-b", "other")
    commit(repo, a="two\n")
    git(repo.root, "checkout", "-q", "main")
    commit(repo, a="three\n")
    with pytest.raises(Exception, match="merge"):
        git(repo.root, "merge", "other")
    assert await changes(repo) == expect("main", ("UU", "a.txt"))


async def test_first_files_of_all_kinds_by_path(repo):
    commit(repo, **{f"f{number}": "x\n" for number in range(8)})
    for number in range(8):
        repo.file(f"f{number}.txt", "yy\n")
    git(repo.root, "add", "f1.txt", "f3.txt")
    for name in ("a", "f2x", "z"):
        repo.file(f"{name}.txt")
    expected = [("??", "a.txt"), (".M", "f0.txt"), ("M.", "f1.txt"), (".M", "f2.txt"), ("??", "f2x.txt")]
    assert await changes(repo, 5) == expect("main", *expected, is_complete=False)
    shown = await changes(repo, 5, lambda path: path in ("f7.txt", "z.txt"))
    assert shown == expect("main", (".M", "f7.txt"), ("??", "z.txt"))


async def test_workspace_below_the_repository(repo):
    commit(repo, a="x\n", sub__b="x\n")
    repo.file("a.txt", "yy\n")
    repo.file("sub/b.txt", "yy\n")
    repo.file("sub/c.txt")
    assert await changes(repo, folder="sub") == expect("main", (".M", "sub/b.txt"), ("??", "sub/c.txt"))


async def test_git_is_stopped_when_there_are_enough_files(repo, tmp_path_factory, monkeypatch):
    """A git that never stops to print entries is stopped after the first ones."""
    commit(repo, a="x\n")
    replace_git(tmp_path_factory, monkeypatch, ENDLESS)
    judged = []
    found = await changes(repo, 3, lambda path: judged.append(path) is None)
    assert found == expect("main", (".M", "f0"), (".M", "f1"), (".M", "f2"), is_complete=False)
    assert len(judged) == 4


async def test_cancelling_stops_git(repo, tmp_path_factory, monkeypatch):
    commit(repo, a="x\n")
    started = replace_git(tmp_path_factory, monkeypatch, "open(STARTED, 'w').close(); time.sleep(600)")
    reading = asyncio.create_task(changes(repo))
    while not started.exists():
        await asyncio.sleep(0.01)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(reading, 30)


def replace_git(folders, monkeypatch, code):
    """Put a git before the real one that runs `code` for changed files."""
    folder = folders.mktemp("bin")
    started = folder / "started"
    script = f"""
import os, sys, time
STARTED = {str(started)!r}
if "--modified" in sys.argv:
    {code}
os.environ["PATH"] = os.environ["PATH"].partition(":")[2]
os.execvp("git", ["git", *sys.argv[1:]])
"""
    (folder / "git.py").write_text(script)
    program = folder / "git"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{folder}/git.py" "$@"\n')  # the paths may have spaces
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return started


def expect(branch, *files, is_complete=True):
    return GitChanges(branch, files, is_complete)
