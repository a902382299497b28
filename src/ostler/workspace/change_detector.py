"""What changed in a workspace between two looks at it, for a session that keeps no copies."""

import os
import threading
import time
from collections.abc import Callable, Sequence

from ostler.workspace.checkpoint_db import diff_trees
from ostler.workspace.gitignore import IgnoreRules
from ostler.workspace.jail import DIRECTORY_FLAGS, Jail
from ostler.workspace.paths import escape_path
from ostler.workspace.rw_lock import run_in_thread
from ostler.workspace.tree_scan import ScanStopped, Tree, TreeScanner

# A folder that takes longer to count is not watched, for the first effect of a turn waits for the count.
SCAN_TIMEOUT_SECONDS = 3.0


class ChangeDetector:
    """Counts what stands there and keeps nothing of it, so nothing can be taken back."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._last_scan: Tree | None = None

    async def begin(self, turn_id: str) -> Sequence[str]:
        """A turn begins; nothing is named as beyond undo, for all of it is."""
        self._last_scan, _ = await self._scan({})
        return ()

    def heartbeat(self, turn_id: str) -> None:
        """Nothing outlives this process."""

    def mark_idle(self, turn_id: str) -> None:
        """The end of a turn has nothing to look at."""

    async def finish(self, turn_id: str) -> None:
        self._last_scan = None

    async def changed_files(self) -> list[str]:
        """The files that changed since this was last asked, or since the turn began."""
        if self._last_scan is None:
            return []
        self._last_scan, changed = await self._scan(self._last_scan)
        return changed

    async def _scan(self, before: Tree) -> tuple[Tree | None, list[str]]:
        stopped, deadline = threading.Event(), time.monotonic() + SCAN_TIMEOUT_SECONDS

        def look() -> tuple[Tree | None, list[str]]:
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

        return await run_in_thread(look, on_cancel=stopped.set)


def changed_files(jail: Jail, before: Tree, after: Tree) -> list[str]:
    """The files that differ between two counts, save those that git leaves out."""
    rules: dict[str, IgnoreRules] = {}
    found: list[str] = []
    for change in diff_trees(before, after):
        stands = change.after or change.before
        folder = change.path[: change.path.rfind("/") + 1]
        if stands and not stands.is_directory:
            in_force = _rules_for(jail, folder, rules)
            if not in_force.is_ignored(change.path, is_directory=False):
                found.append(escape_path(change.path))
    return found


def _scan_tree(jail: Jail, is_stopped: Callable[[], bool]) -> Tree:
    """All that stands there, known by its stamps alone."""
    census = TreeScanner(jail, {}, {}, is_stopped)
    census.scan()
    for folder, name, item in census.to_read:
        census.tree[folder][name] = item
    return census.tree


def _rules_for(jail: Jail, folder: str, known: dict[str, IgnoreRules]) -> IgnoreRules:
    """What git leaves out in a folder, by its own rules and those above it."""
    if folder not in known:
        above = _rules_for(jail, folder[: folder.rfind("/", 0, -1) + 1], known) if folder else IgnoreRules()
        try:
            fd = jail.open_without_links(folder or ".", DIRECTORY_FLAGS)
        except OSError:
            known[folder] = above
            return above
        try:
            known[folder] = above.for_subfolder(fd, folder)
        finally:
            os.close(fd)
    return known[folder]
