"""What changed in a workspace between two looks at it, for a session that keeps no copies."""

import os
import threading
import time
from collections.abc import Callable, Sequence

from ostler.workspace.census import Census, StoppedError, Tree
from ostler.workspace.ignores import Ignores
from ostler.workspace.jail import DIRECTORY, Jail
from ostler.workspace.ledger import differences
from ostler.workspace.locks import in_thread
from ostler.workspace.paths import escaped

# A folder that takes longer to count is not watched, for the first effect of a turn waits for the count.
PATIENCE = 3.0


class Watch:
    """Counts what stands there and keeps nothing of it, so nothing can be taken back."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._seen: Tree | None = None

    async def begin(self, turn_id: str) -> Sequence[str]:
        """A turn begins; nothing is named as beyond undo, for all of it is."""
        self._seen, _ = await self._look({})
        return ()

    def living(self, turn_id: str) -> None:
        """Nothing outlives this process."""

    def resting(self, turn_id: str) -> None:
        """The end of a turn has nothing to look at."""

    async def finish(self, turn_id: str) -> None:
        self._seen = None

    async def news(self) -> list[str]:
        """The files that changed since this was last asked, or since the turn began."""
        if self._seen is None:
            return []
        self._seen, changed = await self._look(self._seen)
        return changed

    async def _look(self, before: Tree) -> tuple[Tree | None, list[str]]:
        stopped, deadline = threading.Event(), time.monotonic() + PATIENCE

        def look() -> tuple[Tree | None, list[str]]:
            try:
                jail = Jail(self._root)
            except OSError:
                return None, []
            try:
                now = _count(jail, lambda: stopped.is_set() or time.monotonic() > deadline)
                return now, changed_files(jail, before, now) if before else []
            except (OSError, StoppedError):
                return None, []
            finally:
                jail.close()

        return await in_thread(look, on_cancel=stopped.set)


def changed_files(jail: Jail, before: Tree, after: Tree) -> list[str]:
    """The files that differ between two counts, save those that git leaves out."""
    rules: dict[str, Ignores] = {}
    found: list[str] = []
    for change in differences(before, after):
        stands = change.after or change.before
        folder = change.path[: change.path.rfind("/") + 1]
        if stands and not stands.is_directory:
            in_force = _rules(jail, folder, rules)
            if not in_force.leave_out(change.path, is_directory=False):
                found.append(escaped(change.path))
    return found


def _count(jail: Jail, stopped: Callable[[], bool]) -> Tree:
    """All that stands there, known by its stamps alone."""
    census = Census(jail, {}, {}, stopped)
    census.take()
    for folder, name, item in census.fresh:
        census.tree[folder][name] = item
    return census.tree


def _rules(jail: Jail, folder: str, known: dict[str, Ignores]) -> Ignores:
    """What git leaves out in a folder, by its own rules and those above it."""
    if folder not in known:
        above = _rules(jail, folder[: folder.rfind("/", 0, -1) + 1], known) if folder else Ignores()
        try:
            fd = jail.open_plain(folder or ".", DIRECTORY)
        except OSError:
            known[folder] = above
            return above
        try:
            known[folder] = above.below(fd, folder)
        finally:
            os.close(fd)
    return known[folder]
