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
    root, settings = project.root, project.settings
    security, may_write = settings.config.security, interactive or options.write
    shell = SessionShell(root, writable=may_write, sandbox=security.sandbox, readable=security.sandbox_readable)
    workspace = SessionWorkspace(root, shell, read_anywhere=reads_anywhere(settings, options))
    grant_outside_folders(workspace, settings, options)
    return workspace


def reads_anywhere(settings: Settings, options: RunOptions) -> bool:
    """Return whether a flag or a rule may allow file tools to read any folder."""
    return options.yolo or "" in _folders(settings, "ask", "allow")


def grant_outside_folders(workspace: SessionWorkspace, settings: Settings, options: RunOptions) -> None:
    """Allow reading the folders outside the workspace that rules and flags name."""
    if options.yolo or "" in _folders(settings, "allow"):
        workspace.shell.grant_folders(["/"])
    for action in ("ask", "allow"):
        folders = [folder for folder in _folders(settings, action) if folder.startswith("/")]
        workspace.grant_folders(folders, to_commands=action == "allow")


def _folders(settings: Settings, *actions: str) -> list[str]:
    """Return the outside folders whose rules have this action; the policy still decides on every call."""
    rules = (rule for rule in settings.rules() if rule.key == "external_directory" and rule.action in actions)
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
