"""What going to a path needs: inside the workspace the tool's own key, outside a grant of its own, and writes never."""

from ostler.core.permission import Need
from ostler.core.protocols import ResolvedPath, Workspace
from ostler.processes.other_vcs import OTHER_VCS_FILES

PROTECTED_NAMES = frozenset(
    {
        *(".git", ".ostler", ".mcp.json", ".vscode", ".claude", ".opencode", ".eidolon", ".eidolon.json", ".envrc"),
        # where the workspace is somebody's home
        *(".ssh", ".gnupg", ".config", ".local", ".gitconfig", ".hgrc", ".profile", ".pam_environment"),
        *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".kshrc", ".mkshrc"),
        *(".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".cshrc", ".tcshrc", ".login", ".logout"),
        *(".xprofile", ".xsession", ".xsessionrc", ".xinitrc"),
    }
)

REPOSITORY_MARKER = "HEAD"  # git takes any folder that has it, and a few more names, for a repository
_REPOSITORY_FOLDERS = frozenset({".git", *OTHER_VCS_FILES})
_EXECUTABLE_CONFIG = frozenset({"config", "config.worktree", "commondir"})


def is_protected(display_path: str) -> bool:
    """Whether a path of the workspace belongs to git, to us or to another program that would run what it says."""
    parts, name = display_path.casefold().split("/"), display_path.rsplit("/", 1)[-1]
    return parts[0] in PROTECTED_NAMES or not _REPOSITORY_FOLDERS.isdisjoint(parts) or name == REPOSITORY_MARKER


def read_needs(key: str, path: str, workspace: Workspace) -> tuple[ResolvedPath, tuple[Need, ...]]:
    """The needs of reading a path."""
    place = workspace.resolve(path)
    needs = [Need(key, place.display_path, rule_pattern="*")]
    if not place.in_workspace:
        needs.append(Need("external_directory", place.absolute, rule_pattern=place.absolute))
    return place, tuple(needs)


def write_needs(key: str, path: str, workspace: Workspace) -> tuple[ResolvedPath, tuple[Need, ...]]:
    """The needs of writing a path; outside the workspace nothing can allow it."""
    place = workspace.resolve(path)
    if place.in_workspace and (
        is_protected(place.display_path) or _is_in_bare_repository(place.display_path, workspace)
    ):
        why = "whoever writes there can run programs on this machine later"
        return place, (Need(key, place.display_path, danger="confirm", reason=why),)
    if place.in_workspace:
        return place, (Need(key, place.display_path, rule_pattern=place.display_path),)
    return place, (Need(key, place.absolute, danger="deny", reason="writes never leave the workspace"),)


def _is_in_bare_repository(display_path: str, workspace: Workspace) -> bool:
    """Whether a file says what git runs in a folder that it takes for a repository."""
    *above, folder, name = ["", *display_path.split("/")]
    if name not in _EXECUTABLE_CONFIG and folder != "hooks":
        return False
    root = "/".join([*above, *([] if folder == "hooks" else [folder]), REPOSITORY_MARKER])
    return workspace.resolve(root.lstrip("/")).exists
