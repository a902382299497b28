"""Async API of undo: `begin` and `finish` frame a turn, `plan` and `undo` revert it."""

import asyncio
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from ostler.core.errors import OstlerError
from ostler.workspace.paths import escape_path
from ostler.workspace.rw_lock import run_in_thread
from ostler.workspace.undo_types import UncoveredPath, UndoableTurn, UndoDirection, UndoPlan, UndoResult

if TYPE_CHECKING:
    from ostler.workspace.checkpoint_store import CheckpointStore

T = TypeVar("T")
PRESCAN_THRESHOLD_SECONDS = 0.01
_PRESCAN_DELAY_SECONDS = 0.05
_MIN_FREE_BYTES = 1024 * 1024
MAX_STORE_BYTES = 2 * 1024 * 1024 * 1024


class Checkpoints:
    """The checkpoints of one workspace, stored in a folder outside it. Blocking work runs in a thread, one at a time.

    Await `begin` before the turn's first side effect. If no checkpoint can be taken, what it returns says why.
    """

    def __init__(self, root: str, store_dir: str, *, max_bytes: int = MAX_STORE_BYTES, ostler_dir: str = "") -> None:
        """`ostler_dir` is the folder around the store; it is never part of a turn's changes."""
        self._root = root
        self._store_dir = store_dir
        self._ostler_dir = ostler_dir
        self._max_bytes = max_bytes
        self._checkpoint_store: CheckpointStore | None = None
        self._lock = asyncio.Lock()
        self._prescan_task: asyncio.Task[bool] | None = None
        self._prescan_stopped = threading.Event()
        self._turn_ending = asyncio.Event()

    async def begin(self, turn_id: str, *, files_only: bool = False) -> list[UncoveredPath]:
        """Take a checkpoint of the workspace. Return the paths that it does not cover.

        With `files_only`, the workspace is not scanned: `save_before` saves each path before it changes. A turn that
        began so can begin again without `files_only`.
        """
        stopped = threading.Event()
        try:
            return await self._run_in_store(
                lambda store: store.begin(turn_id, stopped.is_set, files_only=files_only), stopped
            )
        except OstlerError as error:
            return [UncoveredPath(".", self._reason(error))]

    async def save_before(self, paths: Sequence[str]) -> list[UncoveredPath]:
        """Save paths before the file tools change them, for the turns that were not scanned. Return uncovered ones."""
        if self._checkpoint_store is None:
            return []
        stopped = threading.Event()
        try:
            return await self._run_in_store(lambda store: store.save_before(paths, stopped.is_set), stopped)
        except OstlerError as error:
            return [UncoveredPath(escape_path(path), self._reason(error)) for path in paths]

    def progress(self) -> str:
        """Return how far the running scan is."""
        return self._checkpoint_store.progress() if self._checkpoint_store is not None else ""

    def heartbeat(self, turn_id: str) -> None:
        """Mark a side effect of a turn. If the process dies, later changes are not attributed to it."""
        self._cancel_prescan()
        if self._checkpoint_store is not None:
            self._checkpoint_store.heartbeat(turn_id)

    def mark_idle(self, turn_id: str) -> None:
        """Mark that the turn has nothing running. Unless the workspace is tiny, start the final scan in advance."""
        self._cancel_prescan()
        store = self._checkpoint_store
        if store is not None and store.has_scan(turn_id) and store.scan_seconds >= PRESCAN_THRESHOLD_SECONDS:
            self._prescan_stopped, self._turn_ending = threading.Event(), asyncio.Event()
            self._prescan_task = asyncio.create_task(self._prescan(turn_id, self._prescan_stopped), name="prescan")

    def _cancel_prescan(self) -> None:
        self._prescan_stopped.set()
        self._prescan_task = None

    async def _prescan(self, turn_id: str, stopped: threading.Event) -> bool:
        """Scan in advance. Return whether `finish` can use the result."""
        with suppress(TimeoutError):  # wait: the next call often follows immediately, unless the turn is ending
            await asyncio.wait_for(self._turn_ending.wait(), _PRESCAN_DELAY_SECONDS)
        if stopped.is_set():
            return False
        from ostler.workspace.unchanged_folders import ScanStopped

        try:
            await self._run_in_store(lambda store: store.prescan(turn_id, stopped.is_set), stopped)
        except (OstlerError, ScanStopped):
            return False
        return not stopped.is_set()

    async def changed_files(self, turn_id: str) -> list[str]:
        """Return the files that changed since the last call in this turn, or since it started."""
        stopped = threading.Event()
        try:
            return await self._run_in_store(lambda store: store.changed_files(turn_id, stopped.is_set), stopped)
        except OstlerError:
            return []

    async def finish(self, turn_id: str) -> None:
        """Save the changes of a turn, if it has a checkpoint."""
        stopped = threading.Event()
        prescan, self._prescan_task = self._prescan_task, None
        self._turn_ending.set()
        idle = prescan is not None and await prescan
        with suppress(OstlerError):
            await self._run_in_store(lambda store: store.finish(turn_id, stopped.is_set, idle=idle), stopped)

    async def discard(self, turn_id: str) -> None:
        """Drop the checkpoint of a turn that changed nothing, so that later changes are not attributed to it."""
        if self._checkpoint_store is not None:
            with suppress(OstlerError):
                await self._run_in_store(lambda store: store.discard(turn_id))

    async def turns(self) -> list[str]:
        """Return the ids of the finished turns, oldest first."""
        return await self._run_in_store(lambda store: store.turns())

    async def undone_turns(self) -> set[str]:
        """Return the ids of the turns that were undone and not redone."""
        return await self._run_in_store(lambda store: store.undone_turns())

    async def undoable_turns(self) -> list[UndoableTurn]:
        """Return the finished turns that changed files, oldest first."""
        return await self._run_in_store(lambda store: store.undoable_turns())

    async def plan(self, turn_id: str, direction: UndoDirection) -> UndoPlan:
        """Return what undoing a turn, or redoing an undone one, would do."""
        return await self._run_in_store(lambda store: store.plan(UndoPlan(turn_id, direction)))

    async def undo(self, plan: UndoPlan) -> UndoResult:
        """Execute an undo or redo plan. Paths that changed since it was made are skipped and reported."""
        return await self._run_in_store(lambda store: store.execute(plan))

    def close(self) -> None:
        """Close the store."""
        self._cancel_prescan()
        if self._checkpoint_store is not None:
            self._checkpoint_store.close()
            self._checkpoint_store = None

    async def _run_in_store(self, work: "Callable[[CheckpointStore], T]", stopped: threading.Event | None = None) -> T:
        def run() -> T:
            import sqlite3

            try:
                return work(self._open_store())
            except (sqlite3.Error, OSError) as error:
                raise OstlerError(f"undo is not available in this workspace: {error}", code="checkpoint") from error

        async with self._lock:
            return await run_in_thread(run, on_cancel=stopped.set if stopped else None)

    def _reason(self, error: OstlerError) -> str:
        """Return why no snapshot was saved."""
        try:
            disk = os.statvfs(os.path.dirname(self._store_dir))
        except OSError:
            pass
        else:
            if disk.f_bavail * disk.f_frsize < _MIN_FREE_BYTES:
                return f"no space to save a snapshot in {self._store_dir}"
        return f"no snapshot can be saved in {self._store_dir}: {error.__cause__ or error}"

    def _open_store(self) -> "CheckpointStore":
        if self._checkpoint_store is None:
            from ostler.workspace.checkpoint_store import CheckpointStore

            self._checkpoint_store = CheckpointStore(self._root, self._store_dir, self._max_bytes, self._ostler_dir)
        return self._checkpoint_store
