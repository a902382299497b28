"""Protected paths that no sandbox could lock: what a command made there is set aside, and what it changed is told."""

import os

from ostler.processes import path_snapshot
from ostler.processes.git_exec_files import QUARANTINE_SUFFIX, quarantine, restore_link

_MAX_PATHS_SHOWN = 10


class UnlockedPaths:
    """Some paths as they were before a command; those that were absent, or links, can be put right afterwards."""

    def __init__(self, paths: tuple[str, ...], roots: tuple[str, ...]) -> None:
        self._paths = paths
        self._roots = roots
        self._before = path_snapshot.take_snapshot(paths)
        self._links = {path: os.readlink(path) for path in paths if os.path.islink(path)}

    def restore(self) -> list[str]:
        """What there is to tell."""
        told = [note for path in self._paths if (note := self._restore_path(path))]
        left = path_snapshot.changed_paths(self._before, path_snapshot.take_snapshot(self._paths))
        own = [path for path in left if path in self._links or path.endswith(QUARANTINE_SUFFIX)]
        if others := [path for path in left if path not in own]:
            told.append(f"protected paths changed while this command ran: {', '.join(others[:_MAX_PATHS_SHOWN])}")
        return told

    def _restore_path(self, path: str) -> str:
        was = self._links.get(path)
        if (path in self._before and was is None) or (was is None and not os.path.lexists(path)):
            return ""
        if was is not None and os.path.islink(path) and os.readlink(path) == was:
            return ""
        try:
            if os.path.lexists(path):
                quarantine(path, self._roots, None, 0)
            if was is not None:
                restore_link(path, self._roots, was)
        except OSError as error:
            return f"{path} came from a command and could not be set aside ({error.strerror}): look at it"
        return f"{path} was set aside, with {QUARANTINE_SUFFIX} at its end: commands may not make it, for programs run what it says"
