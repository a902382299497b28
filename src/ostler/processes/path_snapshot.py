"""Protected paths that a sandbox cannot lock: tell whether they changed."""

import contextlib
import os
from collections.abc import Iterable

_MAX_ENTRIES = 500

PathSnapshot = dict[str, tuple[int, ...]]


def take_snapshot(paths: Iterable[str]) -> PathSnapshot:
    """What is at the paths, and in them, by numbers that a command cannot forge."""
    seen: PathSnapshot = {}
    for path in paths:
        _add_path(path, seen)
    return seen


def changed_paths(before: PathSnapshot, after: PathSnapshot) -> list[str]:
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


def _add_path(path: str, snapshot: PathSnapshot) -> None:
    try:
        found = os.lstat(path)
    except OSError:
        return
    snapshot[path] = (found.st_ino, found.st_mode, found.st_size, found.st_ctime_ns)
    if not os.path.isdir(path) or os.path.islink(path):
        return
    with contextlib.suppress(OSError):
        for name in sorted(os.listdir(path)):
            if len(snapshot) >= _MAX_ENTRIES:
                return
            _add_path(os.path.join(path, name), snapshot)
