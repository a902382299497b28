"""Lists and removes the git worktrees of sessions."""

from collections.abc import Sequence
from pathlib import Path

from ostler.knowledge.trusted_settings import load_settings
from ostler.settings.project_paths import workspace_path
from ostler.storage.session_states import has_open_session
from ostler.text.sanitise import sanitise
from ostler.workspace.worktrees import list_worktrees, remove_worktree, worktree_path


def list_lines(cwd: str) -> Sequence[str]:
    """Return one line for each worktree of the repository."""
    lines = []
    folder = workspace_path(cwd)
    for tree in list_worktrees(folder):
        parts = [*tree.obstacles, *(["open session"] if _is_used(folder, tree.name) else [])]
        lines.append(sanitise(f"{tree.name}  {tree.path}  {', '.join(parts) or 'unchanged'}"))
    return lines or ["no worktrees"]


def remove(cwd: str, name: str) -> None:
    """Remove a worktree that nothing needs."""
    folder = workspace_path(cwd)
    remove_worktree(folder, name, is_used=_is_used(folder, name))


def _is_used(folder: Path, name: str) -> bool:
    """Return whether a process has a session open in a worktree or a folder in it."""
    return has_open_session(load_settings(folder), worktree_path(folder, name))
