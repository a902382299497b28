"""Checks whether all hard links of a file are inside the workspace."""

import os

from ostler.workspace.jail import DIRECTORY_FLAGS, Jail, closing_fd

MAX_ENTRIES = 200_000


def all_links_inside(jail: Jail, found: os.stat_result) -> bool:
    """Return whether all hard links of a file are below the root; False if the tree is too large to check."""
    missing = found.st_nlink
    left = MAX_ENTRIES
    pending = ["."]
    while pending and left > 0:
        folder = pending.pop()
        try:
            fd = jail.open(folder, DIRECTORY_FLAGS | os.O_NOFOLLOW)
        except OSError:
            continue
        with closing_fd(fd), os.scandir(fd) as entries:
            for entry in entries:
                left -= 1
                if entry.is_dir(follow_symlinks=False):
                    pending.append(f"{folder}/{entry.name}")
                elif entry.inode() == found.st_ino and _is_same_file(entry, found, fd):
                    missing -= 1
        if not missing:
            return True
    return False


def _is_same_file(entry: os.DirEntry[str], found: os.stat_result, directory: int) -> bool:
    other = os.stat(entry.name, dir_fd=directory, follow_symlinks=False)
    return (other.st_dev, other.st_ino) == (found.st_dev, found.st_ino)
