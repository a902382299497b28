"""Detects changes of protected paths that the sandbox cannot lock, and quarantines or restores them."""

import os

from ostler.processes import path_snapshot
from ostler.processes.git_exec_files import QUARANTINE_SUFFIX, quarantine, restore_link

_MAX_PATHS_SHOWN = 10


class UnlockedPaths:
    """A snapshot of paths before a command. New files and changed symlinks can be corrected afterwards."""

    def __init__(self, paths: tuple[str, ...], roots: tuple[str, ...]) -> None:
        self._paths = paths
        self._roots = roots
        self._before = path_snapshot.take_snapshot(paths)
        self._links = {path: os.readlink(path) for path in paths if os.path.islink(path)}

    def restore(self) -> list[str]:
        """Quarantine new files, restore symlinks and return notes about all changes."""
        notes = [note for path in self._paths if (note := self._restore_path(path))]
        changed = path_snapshot.changed_paths(self._before, path_snapshot.take_snapshot(self._paths))
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
