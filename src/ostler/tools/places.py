"""What going to a path needs: inside the workspace the tool's own key, outside a grant of its own, and writes never."""

from ostler.processes.other_repositories import OTHERS
from ostler.vocabulary.permission import Need
from ostler.vocabulary.seams import Ground, Place

PROTECTED = frozenset(
    {
        *(".git", ".ostler", ".mcp.json", ".vscode", ".claude", ".opencode", ".eidolon", ".eidolon.json", ".envrc"),
        # where the workspace is somebody's home
        *(".ssh", ".gnupg", ".config", ".local", ".gitconfig", ".hgrc", ".profile", ".pam_environment"),
        *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".kshrc", ".mkshrc"),
        *(".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".cshrc", ".tcshrc", ".login", ".logout"),
        *(".xprofile", ".xsession", ".xsessionrc", ".xinitrc"),
    }
)

MAKES_A_REPOSITORY = "HEAD"  # git takes any folder that has it, and a few more names, for a repository
_REPOSITORIES = frozenset({".git", *OTHERS})
_RUNS_PROGRAMS = frozenset({"config", "config.worktree", "commondir"})


def protected(shown: str) -> bool:
    """Whether a path of the workspace belongs to git, to us or to another program that would run what it says."""
    parts, name = shown.casefold().split("/"), shown.rsplit("/", 1)[-1]
    return parts[0] in PROTECTED or not _REPOSITORIES.isdisjoint(parts) or name == MAKES_A_REPOSITORY


def reading(key: str, path: str, ground: Ground) -> tuple[Place, tuple[Need, ...]]:
    """The needs of reading a path."""
    place = ground.place(path)
    needs = [Need(key, place.shown, always="*")]
    if not place.inside:
        needs.append(Need("external_directory", place.absolute, always=place.absolute))
    return place, tuple(needs)


def writing(key: str, path: str, ground: Ground) -> tuple[Place, tuple[Need, ...]]:
    """The needs of writing a path; outside the workspace nothing can allow it."""
    place = ground.place(path)
    if place.inside and (protected(place.shown) or _of_a_bare_repository(place.shown, ground)):
        why = "whoever writes there can run programs on this machine later"
        return place, (Need(key, place.shown, danger="confirm", why=why),)
    if place.inside:
        return place, (Need(key, place.shown, always=place.shown),)
    return place, (Need(key, place.absolute, danger="deny", why="writes never leave the workspace"),)


def _of_a_bare_repository(shown: str, ground: Ground) -> bool:
    """Whether a file says what git runs in a folder that it takes for a repository."""
    *above, folder, name = ["", *shown.split("/")]
    if name not in _RUNS_PROGRAMS and folder != "hooks":
        return False
    root = "/".join([*above, *([] if folder == "hooks" else [folder]), MAKES_A_REPOSITORY])
    return ground.place(root.lstrip("/")).exists
