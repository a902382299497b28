"""Worktrees of sessions: made on a branch of their own, removed only if nothing is lost."""

import json
import subprocess
from functools import partial

import pytest

from ostler.core.errors import UsageError
from ostler.journal.lock import SessionLock
from ostler.journal.session_meta import META_NAME
from ostler.knowledge.trusted_settings import load_settings
from ostler.settings.home import project_id
from ostler.storage.session_states import has_open_session
from ostler.storage.session_stores import session_store
from ostler.workspace.worktrees import Worktree, add_worktree, list_worktrees, remove_worktree


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
    assert found == Worktree("fix", str(path), "ostler/fix")
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
    with pytest.raises(UsageError, match="1 commit that no other branch has"):
        remove_worktree(repository, "fix", is_used=False)
    assert path.exists()


def commit_there_and_switch(path):
    commit(path)
    git(path, "switch", "-q", "-c", "other", "main")


def commit_detached(path):
    git(path, "switch", "-q", "--detach")
    commit(path)


def add_file_that_status_hides(path):
    git(path, "config", "status.showUntrackedFiles", "no")
    (path / "new.txt").touch()


def change_file_with_flag(path, flag):
    git(path, "update-index", flag, "a.txt")
    (path / "a.txt").write_text("two\n")


@pytest.mark.req("TU-9")
@pytest.mark.parametrize(
    ("change", "obstacle"),
    [
        (commit_there_and_switch, "1 commit that no other branch has"),
        (commit_detached, "1 commit that no other branch has"),
        (add_file_that_status_hides, "1 changed file"),
        (partial(change_file_with_flag, flag="--assume-unchanged"), "1 file whose changes git ignores"),
        (partial(change_file_with_flag, flag="--skip-worktree"), "1 file whose changes git ignores"),
        (lambda path: git(path, "worktree", "lock", str(path)), "locked"),
        (lambda path: (path / ".git").write_text("gitdir: /nowhere\n"), "not a git repository"),
    ],
)
def test_worktree_is_kept_whatever_hides_its_changes(repository, change, obstacle):
    path, other = add_worktree(repository, "fix"), add_worktree(repository, "other-fix")
    change(path)
    with pytest.raises(UsageError, match=obstacle):
        remove_worktree(repository, "fix", is_used=False)
    assert [tree.name for tree in list_worktrees(repository)] == ["fix", "other-fix"]
    assert path.exists()
    remove_worktree(repository, "other-fix", is_used=False)
    assert not other.exists()


@pytest.mark.req("TU-9")
def test_worktree_without_a_commit_or_with_a_branch_of_this_name_is_refused(repository, tmp_path):
    git(repository, "branch", "ostler/fix")
    with pytest.raises(UsageError, match="there is already a branch ostler/fix"):
        add_worktree(repository, "fix")
    git(tmp_path, "init", "-q", "empty")
    with pytest.raises(UsageError, match="has no commit"):
        add_worktree(tmp_path / "empty", "fix")


@pytest.mark.req("TU-9")
def test_session_in_a_folder_of_the_worktree_counts_as_open(repository):
    path = add_worktree(repository, "fix")
    settings = load_settings(repository)
    assert not has_open_session(settings, path)
    session = session_store(settings).session(project_id(path / "part"), "one")
    session.folder.mkdir(parents=True)
    (session.folder / META_NAME).write_text(json.dumps({"id": "one", "cwd": str(path / "part")}))
    lock = SessionLock(session.folder, "one")
    assert has_open_session(settings, path)
    lock.release()
    assert not has_open_session(settings, path)


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
