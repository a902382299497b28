"""Protected paths that a sandbox cannot lock: tell whether they changed."""

import contextlib
import os
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
