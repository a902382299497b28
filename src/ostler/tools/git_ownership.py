"""Whether what git keeps belongs to the files beside it: what leads elsewhere would tell of other people's work."""

import os

_LINKABLE = ("HEAD", "commondir", "objects", "packed-refs", "refs")


def is_plain_repository(top: str) -> bool:
    """Whether the folder itself holds the repository, as nearly all do."""
    own = os.path.join(top, ".git")
    return os.path.isdir(own) and not os.path.islink(own) and not points_elsewhere(own)


def points_elsewhere(folder: str) -> bool:
    """Whether a part of git's own folder is a link, or names another folder for the rest."""
    names = (os.path.join(folder, name) for name in _LINKABLE)
    return any(os.path.islink(name) for name in names) or os.path.exists(os.path.join(folder, "commondir"))


def belongs_to_work_tree(git_dir: str, common_dir: str, top: str, root: str) -> bool:
    """Whether git's folder of these files, and the one it shares, lie in the workspace or are a work tree's."""
    git_dir, common_dir = os.path.realpath(git_dir), os.path.realpath(common_dir)
    if _is_inside(git_dir, root) and _is_inside(common_dir, root):
        return not points_elsewhere(common_dir)
    return _is_inside(git_dir, os.path.join(common_dir, "worktrees")) and _points_back(git_dir, top)


def _is_inside(path: str, folder: str) -> bool:
    folder = os.path.realpath(folder)
    return os.path.commonpath([path, folder]) == folder


def _points_back(git_dir: str, top: str) -> bool:
    """Whether the repository knows of this work tree; nobody but its owner could have written that."""
    try:
        with open(os.path.join(git_dir, "gitdir"), "rb") as file:
            named = os.fsdecode(file.read(8192)).rstrip("\n")
    except OSError:
        return False
    return os.path.realpath(os.path.join(git_dir, named)) == os.path.realpath(os.path.join(top, ".git"))
