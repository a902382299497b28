"""Resolving a policy to real paths, path snapshots and placeholders."""

import os

import pytest

from ostler.processes import placeholders, protected_paths
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


def test_existing_paths_are_locked_and_missing_ones_must_not_exist(workspace):
    layout = resolve_layout(SandboxPolicy(writable=(str(workspace),)), "/tmp")
    assert _names(layout.locked, workspace) == {".git/hooks", ".git/config"}
    assert _names(layout.must_not_exist, workspace) == {".ostler", ".mcp.json", ".vscode"}
    assert _names(layout.checked_afterwards, workspace) == {
        *(".git/commondir", ".git/config.worktree", "opencode.json", "opencode.jsonc"),
        *SETTINGS_PATHS,
    }
    assert _names(layout.must_not_move, workspace) == {".git"}


def test_read_only_workspace_needs_no_protection(workspace):
    layout = resolve_layout(SandboxPolicy(), "/tmp")
    assert layout.writable == layout.protected == layout.must_not_move == ()


def test_without_repository_no_git_paths_are_protected(tmp_path):
    layout = resolve_layout(SandboxPolicy(writable=(str(tmp_path),)), "/tmp")
    assert not any(".git/" in path for path in (*layout.locked, *layout.must_not_exist))


def test_git_pointer_of_worktree_is_locked(tmp_path):
    (tmp_path / ".git").write_text("gitdir: /elsewhere\n")
    assert str(tmp_path / ".git") in resolve_layout(SandboxPolicy(writable=(str(tmp_path),)), "/tmp").locked


def test_hooks_of_nested_submodules_are_locked(workspace):
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


def test_read_only_paths_are_protected_only_in_writable_folders(workspace):
    read_only = (str(workspace / "state"), "/etc/ostler", str(workspace / "deep" / "state"))
    layout = resolve_layout(SandboxPolicy(writable=(str(workspace),), read_only=read_only), "/tmp")
    assert str(workspace / "state") in layout.must_not_exist
    assert str(workspace / "deep" / "state") in layout.checked_afterwards
    assert "/etc/ostler" not in layout.protected


def test_startup_files_are_protected_in_writable_home(workspace, monkeypatch):
    monkeypatch.setenv("HOME", str(workspace))
    (workspace / ".bashrc").write_text("")
    layout = resolve_layout(SandboxPolicy(writable=(str(workspace),)), "/tmp")
    assert str(workspace / ".bashrc") in layout.locked
    assert {str(workspace / ".zshrc"), str(workspace / ".ssh")} <= set(layout.must_not_exist)
    assert str(workspace / ".xsession") in layout.checked_afterwards  # an empty one would end every login


def test_symlink_at_protected_path_is_checked_afterwards(workspace, tmp_path):
    (workspace / ".vscode").symlink_to(tmp_path)
    assert (
        str(workspace / ".vscode")
        in resolve_layout(SandboxPolicy(writable=(str(workspace),)), "/tmp").checked_afterwards
    )


def test_symlinks_to_workspace_are_resolved(workspace, tmp_path):
    (tmp_path / "link").symlink_to(workspace)
    assert resolve_layout(SandboxPolicy(writable=(str(tmp_path / "link"),)), "/tmp").writable == (str(workspace),)


@pytest.mark.parametrize(
    ("path", "folder", "expected"),
    [("/a/b", "/a", True), ("/a", "/a", True), ("/ab", "/a", False), ("/a", "/a/b", False), ("/x", "/", True)],
)
def test_is_inside(path, folder, expected):
    assert is_inside(path, folder) is expected


def test_snapshot_detects_changes(tmp_path):
    hooks = tmp_path / "hooks"
    paths = [str(hooks), str(tmp_path / "absent")]
    hooks.mkdir()
    before = protected_paths.take_snapshot(paths)
    assert protected_paths.changed_paths(before, protected_paths.take_snapshot(paths)) == []
    (hooks / "pre-commit").write_text("x")
    (tmp_path / "absent").write_text("x")
    assert set(protected_paths.changed_paths(before, protected_paths.take_snapshot(paths))) == {
        *paths,
        str(hooks / "pre-commit"),
    }


def test_placeholders_are_removed_on_close(tmp_path):
    path = tmp_path / ".vscode"
    first = Placeholders([str(path)])
    assert path.is_dir()
    first.close()
    assert not path.exists()


def test_used_placeholder_is_kept(tmp_path):
    path = tmp_path / ".vscode"
    session_placeholders = Placeholders([str(path)])
    (path / "settings.json").write_text("{}")
    session_placeholders.close()
    assert (path / "settings.json").exists()


def test_placeholder_removed_during_locking_is_created_again(tmp_path, monkeypatch):
    """Another session may end between the check and the lock."""
    path = tmp_path / ".vscode"
    first = Placeholders([str(path)])
    real_open, opened_names = os.open, []

    def open_and_remove(name, *arguments, **options):
        fd = real_open(name, *arguments, **options)
        if name == str(path) and len(opened_names) == 1:  # after the check that it is a placeholder
            path.rmdir()
        opened_names.append(name)
        return fd

    monkeypatch.setattr(os, "open", open_and_remove)
    second = Placeholders([str(path)])
    first.close()
    assert path.is_dir()
    second.close()
    assert not path.exists()


def test_concurrent_sessions_share_placeholder(tmp_path, monkeypatch):
    path = tmp_path / ".profile"
    real_create = placeholders._create
    first: list[Placeholders] = []

    def create_after_other(name):
        monkeypatch.setattr(placeholders, "_create", real_create)
        first.append(Placeholders([str(path)]))  # another session is faster
        real_create(name)

    monkeypatch.setattr(placeholders, "_create", create_after_other)
    second = Placeholders([str(path)])
    first[0].close()
    assert path.exists()
    second.close()
    assert not path.exists()


def test_used_placeholders_in_home_are_private(tmp_path):
    session_placeholders = Placeholders([str(tmp_path / ".ssh"), str(tmp_path / ".npmrc")])
    (tmp_path / ".ssh" / "id").write_text("secret")
    (tmp_path / ".npmrc").write_text("token")
    session_placeholders.close()
    modes = [(tmp_path / name).stat().st_mode & 0o777 for name in (".ssh", ".npmrc")]
    assert modes == [0o700, 0o600]


def test_stale_placeholders_are_removed_unless_locked(tmp_path):
    stale, locked = tmp_path / ".profile", tmp_path / ".bashrc"
    for _, fd in Placeholders([str(stale)])._locks:
        os.close(fd)  # like `kill -9`
    other_session = Placeholders([str(locked)])
    user_file = tmp_path / ".zshrc"
    user_file.touch()
    remove_stale_placeholders([str(stale), str(locked), str(user_file), str(tmp_path / "absent")])
    assert not stale.exists() and locked.exists() and user_file.exists()
    other_session.close()


def test_stale_placeholder_is_reused_and_removed_by_next_session(tmp_path):
    placeholder, real_folder = tmp_path / ".mcp.json", tmp_path / ".vscode"
    real_folder.mkdir()
    stale = Placeholders([str(placeholder), str(real_folder)])
    for _, folder in stale._locks:
        os.close(folder)  # like `kill -9`
    assert placeholder.is_dir()
    layout = resolve_layout(SandboxPolicy(writable=(str(tmp_path),)), str(tmp_path))
    assert str(placeholder) in layout.must_not_exist
    assert str(real_folder) in layout.locked
    next_session = Placeholders(layout.must_not_exist)
    next_session.close()
    assert not placeholder.exists()
    assert real_folder.is_dir()
