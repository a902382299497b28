"""Builds the workspace of a session and its undo."""

from typing import TYPE_CHECKING

from ostler.app.project import Project
from ostler.policy.wildcard import pattern_folder
from ostler.settings.effective import Settings
from ostler.settings.run_options import RunOptions
from ostler.workspace.session_workspace import SessionShell, SessionWorkspace

if TYPE_CHECKING:
    from ostler.workspace.session_undo import SessionUndo


def make_workspace(project: Project, options: RunOptions, *, interactive: bool) -> SessionWorkspace:
    """Build the workspace of a session. In a non-interactive one commands can write only with --write."""
    root, sandbox = project.root, project.settings.config.security.sandbox
    shell = SessionShell(root, writable=interactive or options.write, sandbox=sandbox)
    folders = _readable_outside(project.settings)
    workspace = SessionWorkspace(root, shell, read_anywhere=options.yolo or "" in folders)
    workspace.grant_folders([folder for folder in folders if folder.startswith("/")])
    return workspace


def _readable_outside(settings: Settings) -> list[str]:
    """Return the outside folders that rules may allow to read; the policy still decides on every call."""
    rules = (rule for rule in settings.rules() if rule.key == "external_directory" and rule.action != "deny")
    return [pattern_folder(rule.pattern) for rule in rules]


def make_undo(project: Project, options: RunOptions, workspace: SessionWorkspace | None) -> "SessionUndo":
    """Return the checkpoints of a session that may change files; an ephemeral one only detects changes.

    `workspace` is set if the session runs its own commands there.
    """
    from ostler.workspace.change_detector import ChangeDetector
    from ostler.workspace.session_undo import WorkspaceUndo, open_checkpoints
    from ostler.workspace.undo_gaps import ReportedGaps

    if options.ephemeral:
        return ChangeDetector(project.root)
    checkpoints, gaps = open_checkpoints(project.path, project.data_folder()), ReportedGaps(project.data_folder())
    if workspace is None:
        return WorkspaceUndo(checkpoints, gaps)
    undo = WorkspaceUndo(checkpoints, gaps, workspace.shell.is_busy)
    workspace.before_change = undo.save_before
    return undo
