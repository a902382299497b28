"""Lists and removes the git worktrees of sessions."""

from collections.abc import Sequence
from pathlib import Path

from ostler.core.sessions import SessionQuery
from ostler.knowledge.trusted_settings import load_settings
from ostler.settings.project_paths import workspace_path
from ostler.storage.session_states import open_session_states
from ostler.storage.session_stores import FileStore
from ostler.text.sanitise import sanitise
from ostler.workspace.worktrees import list_worktrees, remove_worktree, worktree_path


def list_lines(cwd: str) -> Sequence[str]:
    """Return one line for each worktree of the repository."""
    lines = []
    for tree in list_worktrees(workspace_path(cwd)):
        parts = [f"{tree.changes} changed files"] if tree.changes else []
        parts += [f"{tree.commits} own commits"] if tree.commits else []
        parts += ["open session"] if _is_used(Path(tree.path)) else []
        lines.append(sanitise(f"{tree.name}  {tree.path}  {', '.join(parts) or 'unchanged'}"))
    return lines or ["no worktrees"]


def remove(cwd: str, name: str) -> None:
    """Remove a worktree that nothing needs."""
    folder = workspace_path(cwd)
    remove_worktree(folder, name, is_used=_is_used(worktree_path(folder, name)))


def _is_used(path: Path) -> bool:
    """Return whether a process has a session of this folder open."""
    if not path.is_dir():
        return False
    settings = load_settings(path)
    found = FileStore(settings).list(SessionQuery(str(path), "", 1000))
    return bool(open_session_states(settings, [summary.id for summary in found]))
