"""Finds the folders that are exactly as the last scan found them, with several processes if they have many files."""

import marshal
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

from ostler.processes.child_python import python_command
from ostler.workspace.folder_check import KnownFolder, is_unchanged
from ostler.workspace.packed_folder import PackedTree

MIN_FILES_PER_PROCESS = 10_000
MAX_PROCESSES = 4
_POLL_SECONDS = 0.05


class ScanStopped(Exception):
    """Raised when a scan is cancelled."""


class UnchangedFolders:
    """One check of all folders of the last scan. A folder that it misses is visited, which only takes longer."""

    def __init__(self, previous: PackedTree, is_stopped: Callable[[], bool]) -> None:
        self._previous = previous
        self._is_stopped = is_stopped
        self.file_count = 0  # files checked so far by this process

    def find(self, root_fd: int) -> set[str]:
        """Return the folders that are unchanged, with everything below them. Raises `ScanStopped`."""
        folders = [folder for folder, packed in self._previous.items() if packed.stamps]
        shares = list(self._shares(folders))
        unchanged: set[str] = set()
        with ExitStack() as stack:
            helpers = [(share, self._start_helper(stack, root_fd, share)) for share in shares[1:]]
            unchanged.update(self._check(root_fd, shares[0]))
            for share, helper in helpers:
                if helper is None:
                    unchanged.update(self._check(root_fd, share))
                else:
                    unchanged.update(self._results(helper, share))
        self._remove_changed_inside(unchanged)
        return unchanged

    def _shares(self, folders: Sequence[str]) -> Iterator[list[str]]:
        """Divide the folders into one share for each process, with about the same number of files."""
        total = sum(self._previous[folder].stamped_files for folder in folders)
        count = max(1, min(_cores(), MAX_PROCESSES, total // MIN_FILES_PER_PROCESS))
        share: list[str] = []
        files = 0
        for folder in folders:
            share.append(folder)
            files += self._previous[folder].stamped_files
            if files * count > total and count > 1:
                yield share
                share, total, files, count = [], total - files, 0, count - 1
        yield share

    def _known(self, folder: str) -> KnownFolder:
        packed = self._previous[folder]
        return os.fsencode(folder), packed.names, packed.stamps

    def _check(self, root_fd: int, folders: Sequence[str]) -> Iterator[str]:
        device = os.fstat(root_fd).st_dev
        for folder in folders:
            if self._is_stopped():
                raise ScanStopped
            if is_unchanged(root_fd, device, self._known(folder)):
                yield folder
            self.file_count += self._previous[folder].stamped_files

    def _start_helper(self, stack: ExitStack, root_fd: int, folders: Sequence[str]) -> "subprocess.Popen[bytes] | None":
        """Start a process that checks folders, or return None if this is not possible here."""
        argv = python_command("ostler.workspace.folder_check:main", str(root_fd))
        try:
            with tempfile.TemporaryFile() as known:
                for folder in folders:
                    marshal.dump(self._known(folder), known)
                known.seek(0)
                helper = subprocess.Popen(
                    argv,
                    stdin=known,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    pass_fds=(root_fd,),
                    start_new_session=True,  # Ctrl-C stops the scan, and the scan stops its helpers
                )
        except OSError:
            return None
        stack.enter_context(helper)
        stack.callback(helper.kill)
        return helper

    def _results(self, helper: "subprocess.Popen[bytes]", folders: Sequence[str]) -> list[str]:
        while True:
            try:
                results, _ = helper.communicate(timeout=_POLL_SECONDS)
            except subprocess.TimeoutExpired:
                if self._is_stopped():
                    raise ScanStopped from None
            else:
                return [folder for folder, same in zip(folders, results, strict=False) if same]

    def _remove_changed_inside(self, unchanged: set[str]) -> None:
        """Remove the folders that contain a changed one at any depth."""
        for folder in self._previous:
            while folder and folder not in unchanged:
                folder = folder[: folder.rfind("/", 0, -1) + 1]
                if folder not in unchanged:
                    break
                unchanged.remove(folder)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
