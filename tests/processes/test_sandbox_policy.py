"""From a policy to real paths: what is locked, held, pinned and watched."""

import os

import pytest

from ostler.processes import path_snapshot, placeholders
from ostler.processes.other_vcs import SETTINGS_PATHS
from ostler.processes.placeholders import Placeholders, remove_stale_placeholders
from ostler.processes.sandbox_policy import SandboxPolicy, is_inside, resolve_layout

pytestmark = pytest.mark.req("SH-8")


@pytest.fixture
def workspace(tmp_path):
    root = tmp_path / "workspace"
    (root / ".git" / "hooks").mkdir(parents=True)
    (root / ".git" / "config").write_text("")
    return root


def _names(paths, root):
    return {os.path.relpath(path, root) for path in paths}


def test_what_there_is_is_locked_and_what_there_is_not_is_held(workspace):
    layout = resolve_layout(SandboxPolicy(writable=(str(workspace),)), "/tmp")
    assert _names(layout.locked, workspace) == {".git/hooks", ".git/config"}
    assert _names(layout.must_not_exist, workspace) == {".ostler", ".mcp.json", ".vscode"}
    assert _names(layout.checked_afterwards, workspace) == {".git/commondir", ".git/config.worktree", *SETTINGS_PATHS}
    assert _names(layout.must_not_move, workspace) == {".git"}


def test_a_read_only_workspace_needs_no_protection(workspace):
    layout = resolve_layout(SandboxPolicy(), "/tmp")
    assert layout.writable == layout.protected == layout.must_not_move == ()


def test_without_a_repository_there_is_nothing_of_git_to_hold(tmp_path):
    layout = resolve_layout(SandboxPolicy(writable=(str(tmp_path),)), "/tmp")
    assert not any(".git/" in path for path in (*layout.locked, *layout.must_not_exist))


def test_a_worktree_s_pointer_is_locked(tmp_path):
    (tmp_path / ".git").write_text("gitdir: /elsewhere\n")
    assert str(tmp_path / ".git") in resolve_layout(SandboxPolicy(writable=(str(tmp_path),)), "/tmp").locked


def test_hooks_of_submodules_are_locked_also_of_those_in_a_folder(workspace):
    for name in ("sub", "lib/sub"):
        module = workspace / ".git" / "modules" / name
        (module / "hooks").mkdir(parents=True)
        (module / "refs").mkdir()
        (module / "HEAD").write_text("ref: refs/heads/main")
        (module / "config").write_text("")
    layout = resolve_layout(SandboxPolicy(writable=(str(workspace),)), "/tmp")
    locked = {f".git/modules/{name}" for name in ("sub/config", "sub/hooks", "lib/sub/config", "lib/sub/hooks")}
    assert locked <= _names(layout.locked, workspace)
    between = {".git", ".git/modules", ".git/modules/sub", ".git/modules/lib", ".git/modules/lib/sub"}
    assert between == _names(layout.must_not_move, workspace)


def test_the_caller_s_paths_count_only_inside_a_writable_folder(workspace):
    read_only = (str(workspace / "state"), "/etc/ostler", str(workspace / "deep" / "state"))
    layout = resolve_layout(SandboxPolicy(writable=(str(workspace),), read_only=read_only), "/tmp")
    assert str(workspace / "state") in layout.must_not_exist
    assert str(workspace / "deep" / "state") in layout.checked_afterwards
    assert "/etc/ostler" not in layout.protected


def test_start_up_files_of_a_shell_are_protected_when_the_home_is_writable(workspace, monkeypatch):
    monkeypatch.setenv("HOME", str(workspace))
    (workspace / ".bashrc").write_text("")
    layout = resolve_layout(SandboxPolicy(writable=(str(workspace),)), "/tmp")
    assert str(workspace / ".bashrc") in layout.locked
    assert {str(workspace / ".zshrc"), str(workspace / ".ssh")} <= set(layout.must_not_exist)
    assert str(workspace / ".xsession") in layout.checked_afterwards  # an empty one would end every session at once


def test_a_link_in_place_of_a_protected_path_is_watched(workspace, tmp_path):
    (workspace / ".vscode").symlink_to(tmp_path)
    assert (
        str(workspace / ".vscode")
        in resolve_layout(SandboxPolicy(writable=(str(workspace),)), "/tmp").checked_afterwards
    )


def test_links_to_the_workspace_are_resolved(workspace, tmp_path):
    (tmp_path / "link").symlink_to(workspace)
    assert resolve_layout(SandboxPolicy(writable=(str(tmp_path / "link"),)), "/tmp").writable == (str(workspace),)


@pytest.mark.parametrize(
    ("path", "folder", "expected"),
    [("/a/b", "/a", True), ("/a", "/a", True), ("/ab", "/a", False), ("/a", "/a/b", False), ("/x", "/", True)],
)
def test_inside(path, folder, expected):
    assert is_inside(path, folder) is expected


def test_a_change_in_a_watched_path_is_seen(tmp_path):
    hooks = tmp_path / "hooks"
    paths = [str(hooks), str(tmp_path / "absent")]
    hooks.mkdir()
    before = path_snapshot.take_snapshot(paths)
    assert path_snapshot.changed_paths(before, path_snapshot.take_snapshot(paths)) == []
    (hooks / "pre-commit").write_text("x")
    (tmp_path / "absent").write_text("x")
    assert set(path_snapshot.changed_paths(before, path_snapshot.take_snapshot(paths))) == {
        *paths,
        str(hooks / "pre-commit"),
    }


def test_placeholders_go_with_the_last_session_that_needs_them(tmp_path):
    path = tmp_path / ".vscode"
    first = Placeholders([str(path)])
    assert path.is_dir()
    first.close()
    assert not path.exists()


def test_a_placeholder_somebody_used_stays(tmp_path):
    path = tmp_path / ".vscode"
    places = Placeholders([str(path)])
    (path / "settings.json").write_text("{}")
    places.close()
    assert (path / "settings.json").exists()


def test_a_placeholder_that_goes_at_this_very_moment_is_made_anew(tmp_path, monkeypatch):
    """Between a look at it and the hold on it another session may end."""
    path = tmp_path / ".vscode"
    first = Placeholders([str(path)])
    really_open, gone = os.open, []

    def opened(name, *arguments, **more):
        fd = really_open(name, *arguments, **more)
        if name == str(path) and len(gone) == 1:  # once it was seen that it is one
            path.rmdir()
        gone.append(name)
        return fd

    monkeypatch.setattr(os, "open", opened)
    second = Placeholders([str(path)])
    first.close()
    assert path.is_dir()
    second.close()
    assert not path.exists()


def test_two_sessions_that_begin_at_once_hold_the_same_placeholder(tmp_path, monkeypatch):
    path = tmp_path / ".profile"
    really_make = placeholders._create
    first: list[Placeholders] = []

    def made(name):
        monkeypatch.setattr(placeholders, "_create", really_make)
        first.append(Placeholders([str(path)]))  # just before us
        really_make(name)

    monkeypatch.setattr(placeholders, "_create", made)
    second = Placeholders([str(path)])
    first[0].close()
    assert path.exists()
    second.close()
    assert not path.exists()


def test_what_a_person_puts_into_a_placeholder_of_a_home_is_for_nobody_else(tmp_path):
    places = Placeholders([str(tmp_path / ".ssh"), str(tmp_path / ".npmrc")])
    (tmp_path / ".ssh" / "id").write_text("secret")
    (tmp_path / ".npmrc").write_text("token")
    places.close()
    modes = [(tmp_path / name).stat().st_mode & 0o777 for name in (".ssh", ".npmrc")]
    assert modes == [0o700, 0o600]


def test_what_a_killed_session_left_goes_with_any_other_unless_it_is_held(tmp_path):
    left, held = tmp_path / ".profile", tmp_path / ".bashrc"
    for _, fd in Placeholders([str(left)])._locks:
        os.close(fd)  # as `kill -9` does
    living = Placeholders([str(held)])
    mine = tmp_path / ".zshrc"
    mine.touch()
    remove_stale_placeholders([str(left), str(held), str(mine), str(tmp_path / "absent")])
    assert not left.exists() and held.exists() and mine.exists()
    living.close()


def test_a_placeholder_that_a_killed_session_left_goes_with_the_next(tmp_path):
    ours, theirs = tmp_path / ".mcp.json", tmp_path / ".vscode"
    theirs.mkdir()
    left = Placeholders([str(ours), str(theirs)])
    for _, folder in left._locks:
        os.close(folder)  # as `kill -9` does
    assert ours.is_dir()
    layout = resolve_layout(SandboxPolicy(writable=(str(tmp_path),)), str(tmp_path))
    assert str(ours) in layout.must_not_exist
    assert str(theirs) in layout.locked
    again = Placeholders(layout.must_not_exist)
    again.close()
    assert not ours.exists()
    assert theirs.is_dir()
