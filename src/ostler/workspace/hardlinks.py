"""Whether a file's other names are inside the root too: only then may a write go through to all of them."""

import os

from ostler.workspace.jail import DIRECTORY, Jail

MOST_ENTRIES = 200_000


def all_names_inside(jail: Jail, found: os.stat_result) -> bool:
    """Look for every name of a file under the root; False when one is elsewhere, or the tree too large to know."""
    missing = found.st_nlink
    left = MOST_ENTRIES
    ahead = ["."]
    while ahead and left > 0:
        here = ahead.pop()
        try:
            fd = jail.open(here, DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            with os.scandir(fd) as entries:
                for entry in entries:
                    left -= 1
                    if entry.is_dir(follow_symlinks=False):
                        ahead.append(f"{here}/{entry.name}")
                    elif entry.inode() == found.st_ino and _same(entry, found, fd):
                        missing -= 1
        finally:
            os.close(fd)
        if not missing:
            return True
    return False


def _same(entry: os.DirEntry[str], found: os.stat_result, directory: int) -> bool:
    there = os.stat(entry.name, dir_fd=directory, follow_symlinks=False)
    return (there.st_dev, there.st_ino) == (found.st_dev, found.st_ino)
