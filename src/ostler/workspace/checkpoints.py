"""Undo for a workspace: a turn is framed by `begin` and `finish`, and can be taken back, whatever made its changes."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from ostler.core.errors import OstlerError
from ostler.workspace.rw_lock import run_in_thread
from ostler.workspace.undo_types import Coverage, TurnChanges, UncoveredPath, UndoableTurn, UndoPlan, UndoResult

if TYPE_CHECKING:
    from ostler.workspace.checkpoint_store import CheckpointStore

T = TypeVar("T")
PRESCAN_THRESHOLD_SECONDS = 0.1
_PRESCAN_DELAY_SECONDS = 0.05
MAX_STORE_BYTES = 2 * 1024 * 1024 * 1024


class Checkpoints:
    """The past of one workspace, kept in a folder outside it. All that blocks runs in a thread, one thing at a time.

    Start `begin` as a task when a turn starts, and await it before the turn's first effect: it runs beside the first
    request to the model. If the past cannot be kept, `begin` says so in its coverage and the turn goes on.
    """

    def __init__(self, root: str, store_dir: str, *, max_bytes: int = MAX_STORE_BYTES, ostler_dir: str = "") -> None:
        """`ours` is a folder around the store that no turn's work lies in."""
        self._root = root
        self._store_dir = store_dir
        self._ostler_dir = ostler_dir
        self._max_bytes = max_bytes
        self._checkpoint_store: CheckpointStore | None = None
        self._lock = asyncio.Lock()
        self._prescan_task: asyncio.Task[bool] | None = None
        self._prescan_stopped = threading.Event()
        self._turn_ending = asyncio.Event()

    async def begin(self, turn_id: str) -> Coverage:
        """Keep the workspace as it is now; what this cannot keep is named."""
        stopped = threading.Event()
        try:
            return await self._run_in_store(lambda archive: archive.begin(turn_id, stopped.is_set), stopped)
        except OstlerError as error:
            return Coverage(0, (UncoveredPath(".", str(error)),))

    def heartbeat(self, turn_id: str) -> None:
        """A sign of life of a turn; should it die, what changed later is not taken for its work."""
        self._cancel_prescan()
        if self._checkpoint_store is not None:
            self._checkpoint_store.heartbeat(turn_id)

    def mark_idle(self, turn_id: str) -> None:
        """Nothing of the turn runs: what its end has to look at can be looked at meanwhile, where that takes long."""
        self._cancel_prescan()
        if self._checkpoint_store is not None and self._checkpoint_store.scan_seconds >= PRESCAN_THRESHOLD_SECONDS:
            self._prescan_stopped, self._turn_ending = threading.Event(), asyncio.Event()
            self._prescan_task = asyncio.create_task(self._prescan(turn_id, self._prescan_stopped), name="a look ahead")

    def _cancel_prescan(self) -> None:
        self._prescan_stopped.set()
        self._prescan_task = None

    async def _prescan(self, turn_id: str, stopped: threading.Event) -> bool:
        """Whether there is a look that the turn's end can rely on."""
        with suppress(TimeoutError):  # often the next call comes at once; at the turn's end none will
            await asyncio.wait_for(self._turn_ending.wait(), _PRESCAN_DELAY_SECONDS)
        if stopped.is_set():
            return False
        from ostler.workspace.tree_scan import ScanStopped

        try:
            await self._run_in_store(lambda archive: archive.prescan(turn_id, stopped.is_set), stopped)
        except (OstlerError, ScanStopped):
            return False
        return not stopped.is_set()

    async def changed_files(self, turn_id: str) -> list[str]:
        """The files that changed since this was last asked in a turn, or since it began; none if it is unknown."""
        stopped = threading.Event()
        try:
            return await self._run_in_store(lambda archive: archive.changed_files(turn_id, stopped.is_set), stopped)
        except OstlerError:
            return []

    async def finish(self, turn_id: str) -> TurnChanges:
        """What the turn changed; nothing for one that was not begun."""
        stopped = threading.Event()
        looking, self._prescan_task = self._prescan_task, None
        self._turn_ending.set()
        rests = looking is not None and await looking
        try:
            return await self._run_in_store(
                lambda archive: archive.finish(turn_id, stopped.is_set, idle=rests), stopped
            )
        except OstlerError:
            return TurnChanges(turn_id)

    async def turns(self) -> list[str]:
        """The turns that can be undone, the oldest first."""
        return await self._run_in_store(lambda archive: archive.turns())

    async def undone_turns(self) -> set[str]:
        """Those of them that were undone, and not done again since."""
        return await self._run_in_store(lambda archive: archive.undone_turns())

    async def undoable_turns(self) -> list[UndoableTurn]:
        """The turns that changed something and can be undone, the oldest first."""
        return await self._run_in_store(lambda archive: archive.undoable_turns())

    async def plan_undo(self, turn_id: str) -> UndoPlan:
        """What undoing a turn would do; nothing is touched."""
        return await self._run_in_store(lambda archive: archive.plan(UndoPlan(turn_id, "undo")))

    async def plan_redo(self, turn_id: str) -> UndoPlan:
        """What doing an undone turn again would do; nothing is touched."""
        return await self._run_in_store(lambda archive: archive.plan(UndoPlan(turn_id, "redo")))

    async def undo(self, plan: UndoPlan) -> UndoResult:
        """Carry out a plan, of whichever direction; what changed since it was made is left and named."""
        return await self._run_in_store(lambda archive: archive.execute(plan))

    async def redo(self, plan: UndoPlan) -> UndoResult:
        """The same, by the name one looks for."""
        return await self.undo(plan)

    def close(self) -> None:
        """Let the store go."""
        self._cancel_prescan()
        if self._checkpoint_store is not None:
            self._checkpoint_store.close()
            self._checkpoint_store = None

    async def _run_in_store(self, work: "Callable[[CheckpointStore], T]", stopped: threading.Event | None = None) -> T:
        def in_archive() -> T:
            import sqlite3

            try:
                return work(self._open_store())
            except (sqlite3.Error, OSError) as error:
                raise OstlerError(f"the past of this workspace cannot be kept: {error}", code="checkpoint") from error

        async with self._lock:
            return await run_in_thread(in_archive, on_cancel=stopped.set if stopped else None)

    def _open_store(self) -> "CheckpointStore":
        if self._checkpoint_store is None:
            from ostler.workspace.checkpoint_store import CheckpointStore

            self._checkpoint_store = CheckpointStore(self._root, self._store_dir, self._max_bytes, self._ostler_dir)
        return self._checkpoint_store
