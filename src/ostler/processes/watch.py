"""Protected paths a sandbox cannot lock by itself: tell whether they changed, and hold the place of absent ones."""

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterable

_ENTRIES_SEEN = 500

Seen = dict[str, tuple[int, ...]]


def look(paths: Iterable[str]) -> Seen:
    """What is at the paths, and in them, by numbers that a command cannot forge."""
    seen: Seen = {}
    for path in paths:
        _look_at(path, seen)
    return seen


def changed(before: Seen, after: Seen) -> list[str]:
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


def _look_at(path: str, seen: Seen) -> None:
    try:
        found = os.lstat(path)
    except OSError:
        return
    seen[path] = (found.st_ino, found.st_mode, found.st_size, found.st_ctime_ns)
    if not os.path.isdir(path) or os.path.islink(path):
        return
    with contextlib.suppress(OSError):
        for name in sorted(os.listdir(path)):
            if len(seen) >= _ENTRIES_SEEN:
                return
            _look_at(os.path.join(path, name), seen)


_MODE = 0o1755  # the sticky bit does no harm, and is on no folder of a person


def stands_in(path: str, dir_fd: int | None = None) -> bool:
    """Whether this is an empty folder of ours, held by some session or left behind by one that was killed."""
    try:
        if stat.S_IMODE(os.stat(path, dir_fd=dir_fd, follow_symlinks=False).st_mode) != _MODE:
            return False
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)
    except OSError:
        return False
    try:
        return not os.listdir(folder)
    except OSError:
        return False
    finally:
        os.close(folder)


class Placeholders:
    """Empty folders where something protected is absent: git does not see them, and a sandbox can lock them.

    They are removed at the end by the session that made them, unless another session still counts on them. Nobody else
    gives an empty folder their mode, so one that was left behind by `kill -9` is known, and goes with the next session.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._held: list[tuple[str, int]] = []
        for path in paths:
            with contextlib.suppress(OSError):
                if not stands_in(path):
                    os.mkdir(path)
                    os.chmod(path, _MODE)
                folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                fcntl.flock(folder, fcntl.LOCK_SH)
                self._held.append((path, folder))

    def close(self) -> None:
        for path, folder in self._held:
            with contextlib.suppress(OSError):
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.rmdir(path)
            os.close(folder)
        self._held = []
