"""Resolves a path component by component where openat2 is missing."""

import errno
import os
import stat
from collections.abc import Callable

MAX_LINKS = 40
ToRelativePath = Callable[[str], str | None]
_DIRECTORY_FLAGS = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)


def walk(root: int, path: str, flags: int, to_relative: ToRelativePath, *, max_links: int = MAX_LINKS) -> int:
    """Open `path` below `root`. `to_relative` converts an absolute symlink target, or returns None if it is outside.

    `..` returns to the directory that was opened before, so directories moved during the walk cannot lead outside.
    """
    trail = [os.dup(root)]
    try:
        return _walk(trail, path.split("/")[::-1], flags, to_relative, max_links)
    finally:
        for fd in trail:
            os.close(fd)


def _walk(trail: list[int], remaining: list[str], flags: int, to_relative: ToRelativePath, links_left: int) -> int:
    while remaining:
        name = remaining.pop()
        if name == "..":
            if len(trail) == 1:
                raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
            os.close(trail.pop())
        elif name not in ("", "."):
            last = not remaining
            fd = _open_unless_link(name, flags if last else _DIRECTORY_FLAGS, trail[-1])
            if fd is None:
                links_left -= 1
                if links_left < 0:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                _follow_link(trail, remaining, name, to_relative)
            elif last:
                return fd
            else:
                trail.append(fd)
    return os.open(".", flags | os.O_CLOEXEC, dir_fd=trail[-1])


def _open_unless_link(name: str, flags: int, directory: int) -> int | None:
    """Open a name and return its descriptor, or None if it is a symlink."""
    try:
        fd = os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK) or (error.errno == errno.ENOTDIR and is_link(name, directory)):
            return None
        raise
    if stat.S_ISLNK(os.fstat(fd).st_mode):  # O_PATH opens the symlink itself
        os.close(fd)
        return None
    return fd


def _follow_link(trail: list[int], remaining: list[str], name: str, to_relative: ToRelativePath) -> None:
    """Continue the walk with the target of a symlink."""
    if _is_in_proc(name, trail[-1]):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    target = os.readlink(name, dir_fd=trail[-1])
    if target.startswith("/"):
        inside = to_relative(target)
        if inside is None:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        while len(trail) > 1:
            os.close(trail.pop())
        target = inside
    remaining.extend(target.split("/")[::-1])


def is_link(name: str, directory: int) -> bool:
    """Return whether a name in a directory is a symlink."""
    try:
        os.readlink(name, dir_fd=directory)
    except OSError:
        return False
    return True


def _is_in_proc(name: str, directory: int) -> bool:
    """Return whether a symlink is in /proc, where symlinks open files independent of their text."""
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False).st_dev == os.stat("/proc").st_dev
    except OSError:
        return False
