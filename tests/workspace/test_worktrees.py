"""Worktrees of sessions: made on a branch of their own, removed only if nothing is lost."""

import subprocess

import pytest

from ostler.core.errors import UsageError
from ostler.workspace.worktrees import add_worktree, list_worktrees, remove_worktree


@pytest.fixture
def repository(tmp_path, monkeypatch):
    monkeypatch.setenv("OSTLER_HOME", str(tmp_path / "home"))
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "a.txt").write_text("one\n")
    git(folder, "add", "-A")
    commit(folder)
    return folder


def git(folder, *arguments):
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)


def commit(folder):
    git(folder, "-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-q", "--allow-empty", "-m", "x")


@pytest.mark.req("TU-9")
def test_worktree_has_the_files_and_a_branch_of_its_own(repository):
    path = add_worktree(repository, "fix")
    assert (path / "a.txt").read_text() == "one\n"
    (found,) = list_worktrees(repository)
    assert (found.name, found.path, found.branch, found.changes, found.commits) == (
        "fix",
        str(path),
        "ostler/fix",
        0,
        0,
    )
    with pytest.raises(UsageError, match="already exists"):
        add_worktree(path, "fix")  # also from inside a worktree


@pytest.mark.req("TU-9")
@pytest.mark.parametrize("name", ["../x", "a/b", "-x", "a..b", ".hidden", "x" * 80, "a b"])
def test_name_that_is_no_folder_name_is_refused(repository, name):
    with pytest.raises(UsageError, match="is not a name"):
        add_worktree(repository, name)


@pytest.mark.req("TU-9")
def test_worktree_without_changes_is_removed_with_its_branch(repository):
    path = add_worktree(repository, "fix")
    remove_worktree(repository, "fix", is_used=False)
    assert not path.exists()
    add_worktree(repository, "fix")


@pytest.mark.req("TU-9")
def test_worktree_with_a_changed_new_ignored_or_committed_file_or_a_session_is_kept(repository):
    path = add_worktree(repository, "fix")
    with pytest.raises(UsageError, match="a session is open"):
        remove_worktree(repository, "fix", is_used=True)
    (path / "a.txt").write_text("two\n")
    with pytest.raises(UsageError, match="1 changed file"):
        remove_worktree(repository, "fix", is_used=False)
    (path / "a.txt").write_text("one\n")
    (path / ".gitignore").write_text("*\n")
    with pytest.raises(UsageError, match="changed file"):
        remove_worktree(repository, "fix", is_used=False)
    (path / ".gitignore").unlink()
    commit(path)
    with pytest.raises(UsageError, match="1 commits"):
        remove_worktree(repository, "fix", is_used=False)
    assert path.exists()


@pytest.mark.req("TU-9")
def test_hooks_of_the_repository_do_not_run(repository, tmp_path):
    hook = repository / ".git" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    add_worktree(repository)
    assert not (tmp_path / "ran").exists()


@pytest.mark.req("TU-9")
def test_folder_outside_a_repository_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("OSTLER_HOME", str(tmp_path / "home"))
    with pytest.raises(UsageError, match="not in a git repository"):
        add_worktree(tmp_path)
