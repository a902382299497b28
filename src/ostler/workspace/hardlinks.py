"""Whether a file's other names are inside the root too: only then may a write go through to all of them."""

import os

from ostler.workspace.jail import DIRECTORY_FLAGS, Jail

MAX_ENTRIES = 200_000


def all_links_inside(jail: Jail, found: os.stat_result) -> bool:
    """Look for every name of a file under the root; False when one is elsewhere, or the tree too large to know."""
    missing = found.st_nlink
    left = MAX_ENTRIES
    ahead = ["."]
    while ahead and left > 0:
        here = ahead.pop()
        try:
            fd = jail.open(here, DIRECTORY_FLAGS | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            with os.scandir(fd) as entries:
                for entry in entries:
                    left -= 1
                    if entry.is_dir(follow_symlinks=False):
                        ahead.append(f"{here}/{entry.name}")
                    elif entry.inode() == found.st_ino and _is_same_file(entry, found, fd):
                        missing -= 1
        finally:
            os.close(fd)
        if not missing:
            return True
    return False


def _is_same_file(entry: os.DirEntry[str], found: os.stat_result, directory: int) -> bool:
    there = os.stat(entry.name, dir_fd=directory, follow_symlinks=False)
    return (there.st_dev, there.st_ino) == (found.st_dev, found.st_ino)
