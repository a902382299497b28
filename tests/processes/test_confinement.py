"""From a policy to real paths: what is locked, held, pinned and watched."""

import os

import pytest

from ostler.processes import watch
from ostler.processes.confinement import Confinement, inside, lay_out
from ostler.processes.other_repositories import SETTINGS
from ostler.processes.placeholders import Placeholders

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
    layout = lay_out(Confinement(writable=(str(workspace),)), "/tmp")
    assert _names(layout.locked, workspace) == {".git/hooks", ".git/config"}
    assert _names(layout.absent, workspace) == {".ostler", ".mcp.json", ".vscode"}
    assert _names(layout.watched, workspace) == {".git/commondir", ".git/config.worktree", *SETTINGS}
    assert _names(layout.pinned, workspace) == {".git"}


def test_a_read_only_workspace_needs_no_protection(workspace):
    layout = lay_out(Confinement(), "/tmp")
    assert layout.writable == layout.protected == layout.pinned == ()


def test_without_a_repository_there_is_nothing_of_git_to_hold(tmp_path):
    layout = lay_out(Confinement(writable=(str(tmp_path),)), "/tmp")
    assert not any(".git/" in path for path in (*layout.locked, *layout.absent))


def test_a_worktree_s_pointer_is_locked(tmp_path):
    (tmp_path / ".git").write_text("gitdir: /elsewhere\n")
    assert str(tmp_path / ".git") in lay_out(Confinement(writable=(str(tmp_path),)), "/tmp").locked


def test_hooks_of_submodules_are_locked_also_of_those_in_a_folder(workspace):
    for name in ("sub", "lib/sub"):
        module = workspace / ".git" / "modules" / name
        (module / "hooks").mkdir(parents=True)
        (module / "refs").mkdir()
        (module / "HEAD").write_text("ref: refs/heads/main")
        (module / "config").write_text("")
    layout = lay_out(Confinement(writable=(str(workspace),)), "/tmp")
    locked = {f".git/modules/{name}" for name in ("sub/config", "sub/hooks", "lib/sub/config", "lib/sub/hooks")}
    assert locked <= _names(layout.locked, workspace)
    between = {".git", ".git/modules", ".git/modules/sub", ".git/modules/lib", ".git/modules/lib/sub"}
    assert between == _names(layout.pinned, workspace)


def test_the_caller_s_paths_count_only_inside_a_writable_folder(workspace):
    read_only = (str(workspace / "state"), "/etc/ostler", str(workspace / "deep" / "state"))
    layout = lay_out(Confinement(writable=(str(workspace),), read_only=read_only), "/tmp")
    assert str(workspace / "state") in layout.absent
    assert str(workspace / "deep" / "state") in layout.watched
    assert "/etc/ostler" not in layout.protected


def test_start_up_files_of_a_shell_are_protected_when_the_home_is_writable(workspace, monkeypatch):
    monkeypatch.setenv("HOME", str(workspace))
    (workspace / ".bashrc").write_text("")
    layout = lay_out(Confinement(writable=(str(workspace),)), "/tmp")
    assert str(workspace / ".bashrc") in layout.locked
    assert {str(workspace / ".zshrc"), str(workspace / ".ssh")} <= set(layout.absent)
    assert str(workspace / ".xsession") in layout.watched  # an empty one would end every session at once


def test_a_link_in_place_of_a_protected_path_is_watched(workspace, tmp_path):
    (workspace / ".vscode").symlink_to(tmp_path)
    assert str(workspace / ".vscode") in lay_out(Confinement(writable=(str(workspace),)), "/tmp").watched


def test_links_to_the_workspace_are_resolved(workspace, tmp_path):
    (tmp_path / "link").symlink_to(workspace)
    assert lay_out(Confinement(writable=(str(tmp_path / "link"),)), "/tmp").writable == (str(workspace),)


@pytest.mark.parametrize(
    ("path", "folder", "expected"),
    [("/a/b", "/a", True), ("/a", "/a", True), ("/ab", "/a", False), ("/a", "/a/b", False), ("/x", "/", True)],
)
def test_inside(path, folder, expected):
    assert inside(path, folder) is expected


def test_a_change_in_a_watched_path_is_seen(tmp_path):
    hooks = tmp_path / "hooks"
    paths = [str(hooks), str(tmp_path / "absent")]
    hooks.mkdir()
    before = watch.look(paths)
    assert watch.changed(before, watch.look(paths)) == []
    (hooks / "pre-commit").write_text("x")
    (tmp_path / "absent").write_text("x")
    assert set(watch.changed(before, watch.look(paths))) == {*paths, str(hooks / "pre-commit")}


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


def test_a_placeholder_that_a_killed_session_left_goes_with_the_next(tmp_path):
    ours, theirs = tmp_path / ".mcp.json", tmp_path / ".vscode"
    theirs.mkdir()
    left = Placeholders([str(ours), str(theirs)])
    for _, folder in left._held:
        os.close(folder)  # as `kill -9` does
    assert ours.is_dir()
    layout = lay_out(Confinement(writable=(str(tmp_path),)), str(tmp_path))
    assert str(ours) in layout.absent
    assert str(theirs) in layout.locked
    again = Placeholders(layout.absent)
    again.close()
    assert not ours.exists()
    assert theirs.is_dir()
