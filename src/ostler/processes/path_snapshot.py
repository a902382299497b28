"""Snapshots of paths, to detect whether they changed."""

import contextlib
import os
from collections.abc import Iterable

_MAX_ENTRIES = 500

PathSnapshot = dict[str, tuple[int, ...]]


def take_snapshot(paths: Iterable[str]) -> PathSnapshot:
    """Return inode, mode, size and change time of the paths and their contents; commands cannot forge these."""
    snapshot: PathSnapshot = {}
    for path in paths:
        _add_path(path, snapshot)
    return snapshot


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
