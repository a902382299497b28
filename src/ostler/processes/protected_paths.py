"""Detects changes of protected paths that the sandbox cannot lock, and quarantines or restores them."""

import contextlib
import os
from collections.abc import Iterable

from ostler.processes.git_exec_files import QUARANTINE_SUFFIX, quarantine, restore_link

_MAX_PATHS_SHOWN = 10
_MAX_ENTRIES = 500

PathSnapshot = dict[str, tuple[int, ...]]


class UnlockedPaths:
    """A snapshot of paths before a command. New files and changed symlinks can be corrected afterwards."""

    def __init__(self, paths: tuple[str, ...], roots: tuple[str, ...]) -> None:
        self._paths = paths
        self._roots = roots
        self._before = take_snapshot(paths)
        self._links = {path: os.readlink(path) for path in paths if os.path.islink(path)}

    def restore(self) -> list[str]:
        """Quarantine new files, restore symlinks and return notes about all changes."""
        notes = [note for path in self._paths if (note := self._restore_path(path))]
        changed = changed_paths(self._before, take_snapshot(self._paths))
        own = [path for path in changed if path in self._links or path.endswith(QUARANTINE_SUFFIX)]
        if others := [path for path in changed if path not in own]:
            notes.append(f"protected paths changed while this command ran: {', '.join(others[:_MAX_PATHS_SHOWN])}")
        return notes

    def _restore_path(self, path: str) -> str:
        old_target = self._links.get(path)
        if (path in self._before and old_target is None) or (old_target is None and not os.path.lexists(path)):
            return ""
        if old_target is not None and os.path.islink(path) and os.readlink(path) == old_target:
            return ""
        try:
            if os.path.lexists(path):
                quarantine(path, self._roots, None, 0)
            if old_target is not None:
                restore_link(path, self._roots, old_target)
        except OSError as error:
            return f"{path} was created by a command and could not be quarantined ({error.strerror}); check it"
        return (
            f"{path} was quarantined (renamed, suffix {QUARANTINE_SUFFIX}):"
            " commands must not create it, because programs run its content"
        )


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
