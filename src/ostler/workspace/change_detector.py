"""Detects changed files between two scans, for sessions without checkpoints."""

import threading
import time
from collections.abc import Callable, Sequence

from ostler.workspace.checkpoint_db import diff_trees
from ostler.workspace.gitignore import FolderRules
from ostler.workspace.jail import Jail
from ostler.workspace.packed_folder import PackedTree
from ostler.workspace.paths import escape_path
from ostler.workspace.rw_lock import run_in_thread
from ostler.workspace.tree_scan import TreeScanner
from ostler.workspace.unchanged_folders import ScanStopped

# A workspace that takes longer to scan is not watched, because the first side effect of a turn waits for the scan.
SCAN_TIMEOUT_SECONDS = 3.0


class ChangeDetector:
    """Scans the workspace without saving contents, so nothing can be undone."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._last_scan: PackedTree | None = None

    async def begin(self, turn_id: str, *, files_only: bool = False) -> Sequence[str]:
        """Scan, unless only the file tools change something. Return nothing as uncovered, because undo is off."""
        if not files_only:
            self._last_scan, _ = await self._scan({})
        return ()

    def progress(self) -> str:
        """Return nothing; the scan is limited to a few seconds."""
        return ""

    def heartbeat(self, turn_id: str) -> None:
        """Do nothing; there is nothing to recover after a crash."""

    def mark_idle(self, turn_id: str) -> None:
        """Do nothing; `finish` does not scan."""

    async def finish(self, turn_id: str) -> Sequence[str]:
        self._last_scan = None
        return ()

    async def discard(self, turn_id: str) -> None:
        self._last_scan = None

    async def changed_files(self) -> list[str]:
        """Return the files that changed since the last call in this turn, or since it started."""
        if self._last_scan is None:
            return []
        self._last_scan, changed = await self._scan(self._last_scan)
        return changed

    async def _scan(self, before: PackedTree) -> tuple[PackedTree | None, list[str]]:
        stopped, deadline = threading.Event(), time.monotonic() + SCAN_TIMEOUT_SECONDS

        def scan() -> tuple[PackedTree | None, list[str]]:
            try:
                jail = Jail(self._root)
            except OSError:
                return None, []
            try:
                now = _scan_tree(jail, lambda: stopped.is_set() or time.monotonic() > deadline)
                return now, changed_files(jail, before, now) if before else []
            except (OSError, ScanStopped):
                return None, []
            finally:
                jail.close()

        return await run_in_thread(scan, on_cancel=stopped.set)


def changed_files(jail: Jail, before: PackedTree, after: PackedTree) -> list[str]:
    """Return the files that differ between two scans, except git-ignored ones."""
    rules = FolderRules(jail)
    found: list[str] = []
    for change in diff_trees(before, after):
        entry = change.after or change.before
        folder = change.path[: change.path.rfind("/") + 1]
        if entry and not entry.is_directory and not rules.of(folder).is_ignored(change.path, is_directory=False):
            found.append(escape_path(change.path))
    return found


def _scan_tree(jail: Jail, is_stopped: Callable[[], bool]) -> PackedTree:
    """Scan everything, without reading file contents."""
    scanner = TreeScanner(jail, {}, {}, is_stopped)
    scanner.scan()
    return scanner.tree
