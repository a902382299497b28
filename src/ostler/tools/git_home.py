"""Whether what git keeps belongs to the files beside it: what leads elsewhere would tell of other people's work."""

import os

_LINKABLE = ("HEAD", "commondir", "objects", "packed-refs", "refs")


def is_plain(top: str) -> bool:
    """Whether the folder itself holds the repository, as nearly all do."""
    own = os.path.join(top, ".git")
    return os.path.isdir(own) and not os.path.islink(own) and not leads_away(own)


def leads_away(folder: str) -> bool:
    """Whether a part of git's own folder is a link, or names another folder for the rest."""
    names = (os.path.join(folder, name) for name in _LINKABLE)
    return any(os.path.islink(name) for name in names) or os.path.exists(os.path.join(folder, "commondir"))


def belongs(own: str, common: str, top: str, root: str) -> bool:
    """Whether git's folder of these files, and the one it shares, lie in the workspace or are a work tree's."""
    own, common = os.path.realpath(own), os.path.realpath(common)
    if _below(own, root) and _below(common, root):
        return not leads_away(common)
    return _below(own, os.path.join(common, "worktrees")) and _names_back(own, top)


def _below(path: str, folder: str) -> bool:
    folder = os.path.realpath(folder)
    return os.path.commonpath([path, folder]) == folder


def _names_back(own: str, top: str) -> bool:
    """Whether the repository knows of this work tree; nobody but its owner could have written that."""
    try:
        with open(os.path.join(own, "gitdir"), "rb") as file:
            named = os.fsdecode(file.read(8192)).rstrip("\n")
    except OSError:
        return False
    return os.path.realpath(os.path.join(own, named)) == os.path.realpath(os.path.join(top, ".git"))
