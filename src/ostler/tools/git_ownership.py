"""Checks that a git directory belongs to the work tree beside it; another one would show other people's work."""

import os

_LINKABLE = ("HEAD", "commondir", "objects", "packed-refs", "refs")


def is_plain_repository(top: str) -> bool:
    """Return whether `.git` is a directory in the folder itself, as in most repositories."""
    git_dir = os.path.join(top, ".git")
    return os.path.isdir(git_dir) and not os.path.islink(git_dir) and not points_elsewhere(git_dir)


def points_elsewhere(folder: str) -> bool:
    """Return whether a part of a git directory is a symlink, or it refers to another directory."""
    paths = (os.path.join(folder, name) for name in _LINKABLE)
    return any(os.path.islink(path) for path in paths) or os.path.exists(os.path.join(folder, "commondir"))


def belongs_to_work_tree(git_dir: str, common_dir: str, top: str, root: str) -> bool:
    """Return whether the git directory and its common directory are in the workspace, or a linked work tree's."""
    git_dir, common_dir = os.path.realpath(git_dir), os.path.realpath(common_dir)
    if _is_inside(git_dir, root) and _is_inside(common_dir, root):
        return not points_elsewhere(common_dir)
    return _is_inside(git_dir, os.path.join(common_dir, "worktrees")) and _points_back(git_dir, top)


def _is_inside(path: str, folder: str) -> bool:
    folder = os.path.realpath(folder)
    return os.path.commonpath([path, folder]) == folder


def _points_back(git_dir: str, top: str) -> bool:
    """Return whether the repository lists this work tree, which only its owner can have written."""
    try:
        with open(os.path.join(git_dir, "gitdir"), "rb") as file:
            target = os.fsdecode(file.read(8192)).rstrip("\n")
    except OSError:
        return False
    return os.path.realpath(os.path.join(git_dir, target)) == os.path.realpath(os.path.join(top, ".git"))
