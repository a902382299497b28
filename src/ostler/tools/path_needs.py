"""Computes the permissions that reading or writing a path needs."""

from ostler.core.permission import Need
from ostler.core.protocols import ResolvedPath, Workspace
from ostler.processes.other_vcs import OTHER_VCS_FILES

PROTECTED_NAMES = frozenset(
    {
        *(".git", ".ostler", ".mcp.json", ".vscode", ".claude", ".opencode", ".eidolon", ".eidolon.json", ".envrc"),
        *("opencode.json", "opencode.jsonc"),
        # if the workspace is a home directory
        *(".ssh", ".gnupg", ".config", ".local", ".gitconfig", ".hgrc", ".profile", ".pam_environment"),
        *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".kshrc", ".mkshrc"),
        *(".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".cshrc", ".tcshrc", ".login", ".logout"),
        *(".xprofile", ".xsession", ".xsessionrc", ".xinitrc"),
    }
)

REPOSITORY_MARKER = "HEAD"  # git treats a folder with this file and a few others as a repository
_REPOSITORY_FOLDERS = frozenset({".git", *OTHER_VCS_FILES})
_EXECUTABLE_CONFIG = frozenset({"config", "config.worktree", "commondir"})


def is_protected(display_path: str) -> bool:
    """Return whether a path belongs to git, to Ostler or to another program that runs code from it."""
    parts, name = display_path.casefold().split("/"), display_path.rsplit("/", 1)[-1]
    return parts[0] in PROTECTED_NAMES or not _REPOSITORY_FOLDERS.isdisjoint(parts) or name == REPOSITORY_MARKER


def read_needs(key: str, path: str, workspace: Workspace) -> tuple[ResolvedPath, tuple[Need, ...]]:
    """Return the resolved path and the needs of reading it."""
    place = workspace.resolve(path)
    needs = [Need(key, place.display_path, rule_pattern="*")]
    if not place.in_workspace:
        needs.append(Need("external_directory", place.absolute, rule_pattern=place.absolute))
    return place, tuple(needs)


def write_needs(key: str, path: str, workspace: Workspace) -> tuple[ResolvedPath, tuple[Need, ...]]:
    """Return the resolved path and the needs of writing it; outside the workspace it is always denied."""
    place = workspace.resolve(path)
    if place.in_workspace and (
        is_protected(place.display_path) or _is_in_bare_repository(place.display_path, workspace)
    ):
        reason = "files there can run programs on this machine later"
        return place, (Need(key, place.display_path, danger="confirm", reason=reason),)
    if place.in_workspace:
        return place, (Need(key, place.display_path, rule_pattern=place.display_path),)
    return place, (Need(key, place.absolute, danger="deny", reason="writing outside the workspace is never allowed"),)


def _is_in_bare_repository(display_path: str, workspace: Workspace) -> bool:
    """Return whether a file is a config file or hook of a bare git repository."""
    *above, folder, name = ["", *display_path.split("/")]
    if name not in _EXECUTABLE_CONFIG and folder != "hooks":
        return False
    root = "/".join([*above, *([] if folder == "hooks" else [folder]), REPOSITORY_MARKER])
    return workspace.resolve(root.lstrip("/")).exists
