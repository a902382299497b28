"""Checks whether folders are exactly as the last scan found them.

`unchanged_folders` starts `main` in other processes, to use more than one core.
"""

import marshal
import os
import sys
from array import array
from collections.abc import Sequence
from contextlib import suppress

_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

KnownFolder = tuple[bytes, bytes, bytes]  # path, names of files and then of subfolders, and stamps


def make_stamps(mode: int, ctimes: Sequence[int], inodes: Sequence[int]) -> bytes:
    """Return the mode of a folder and the ctime and inode of each of its files as bytes."""
    return array("Q", (mode, len(inodes), *inodes)).tobytes() + array("q", ctimes).tobytes()


def is_unchanged(root_fd: int, device: int, known: KnownFolder) -> bool:
    """Return whether a folder has the same mode, files and names of subfolders as before.

    Links in the path are not a risk: the folder that contains the link is not unchanged.
    """
    path, names, stamps = known
    try:
        fd = os.open(path or b".", _FLAGS, dir_fd=root_fd)
    except OSError:
        return False
    try:
        found = os.fstat(fd)
        return found.st_dev == device and _read(fd, found.st_mode) == (names, stamps)
    except OSError:
        return False
    finally:
        os.close(fd)


def _read(fd: int, mode: int) -> tuple[bytes, bytes]:
    files, folders, ctimes, inodes = [], [], [], []
    with os.scandir(fd) as scan:
        for entry in scan:
            name = entry.name
            if name == ".git":
                continue
            if entry.is_dir(follow_symlinks=False):
                folders.append(name)
                continue
            found = entry.stat(follow_symlinks=False)
            files.append(name)
            ctimes.append(found.st_ctime_ns)
            inodes.append(found.st_ino)
    return os.fsencode("\0".join(files + folders)), make_stamps(mode, ctimes, inodes)


def main(root: str) -> None:
    """Read known folders from standard input and write a byte for each: 1 if it is unchanged.

    `root` is the descriptor of the workspace's root.
    """
    root_fd = int(root)
    device = os.fstat(root_fd).st_dev
    results = bytearray()
    with suppress(EOFError):
        while True:
            results.append(is_unchanged(root_fd, device, marshal.load(sys.stdin.buffer)))
    sys.stdout.buffer.write(results)
