"""Undo for a workspace: a turn is framed by `begin` and `finish`, and can be taken back, whatever made its changes."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from ostler.vocabulary.errors import OstlerError
from ostler.workspace.changes import Changes, Coverage, Gap, Kept, Undone, UndoPlan
from ostler.workspace.locks import in_thread

if TYPE_CHECKING:
    from ostler.workspace.archive import Archive

T = TypeVar("T")
WORTH_A_LOOK_AHEAD = 0.1
_A_MOMENT = 0.05
CAP = 2 * 1024 * 1024 * 1024


class Checkpoints:
    """The past of one workspace, kept in a folder outside it. All that blocks runs in a thread, one thing at a time.

    Start `begin` as a task when a turn starts, and await it before the turn's first effect: it runs beside the first
    request to the model. If the past cannot be kept, `begin` says so in its coverage and the turn goes on.
    """

    def __init__(self, root: str, store: str, *, cap_bytes: int = CAP, ours: str = "") -> None:
        """`ours` is a folder around the store that no turn's work lies in."""
        self._root = root
        self._store = store
        self._ours = ours
        self._cap = cap_bytes
        self._archive: Archive | None = None
        self._one_at_a_time = asyncio.Lock()
        self._looking: asyncio.Task[bool] | None = None
        self._stop_looking = threading.Event()
        self._ends = asyncio.Event()

    async def begin(self, turn_id: str) -> Coverage:
        """Keep the workspace as it is now; what this cannot keep is named."""
        stopped = threading.Event()
        try:
            return await self._do(lambda archive: archive.begin(turn_id, stopped.is_set), stopped)
        except OstlerError as error:
            return Coverage(0, (Gap(".", str(error)),))

    def living(self, turn_id: str) -> None:
        """A sign of life of a turn; should it die, what changed later is not taken for its work."""
        self._drop_look()
        if self._archive is not None:
            self._archive.living(turn_id)

    def resting(self, turn_id: str) -> None:
        """Nothing of the turn runs: what its end has to look at can be looked at meanwhile, where that takes long."""
        self._drop_look()
        if self._archive is not None and self._archive.seconds >= WORTH_A_LOOK_AHEAD:
            self._stop_looking, self._ends = threading.Event(), asyncio.Event()
            self._looking = asyncio.create_task(self._look_ahead(turn_id, self._stop_looking), name="a look ahead")

    def _drop_look(self) -> None:
        self._stop_looking.set()
        self._looking = None

    async def _look_ahead(self, turn_id: str, stopped: threading.Event) -> bool:
        """Whether there is a look that the turn's end can rely on."""
        with suppress(TimeoutError):  # often the next call comes at once; at the turn's end none will
            await asyncio.wait_for(self._ends.wait(), _A_MOMENT)
        if stopped.is_set():
            return False
        from ostler.workspace.census import StoppedError

        try:
            await self._do(lambda archive: archive.look_ahead(turn_id, stopped.is_set), stopped)
        except (OstlerError, StoppedError):
            return False
        return not stopped.is_set()

    async def news(self, turn_id: str) -> list[str]:
        """The files that changed since this was last asked in a turn, or since it began; none if it is unknown."""
        stopped = threading.Event()
        try:
            return await self._do(lambda archive: archive.news(turn_id, stopped.is_set), stopped)
        except OstlerError:
            return []

    async def finish(self, turn_id: str) -> Changes:
        """What the turn changed; nothing for one that was not begun."""
        stopped = threading.Event()
        looking, self._looking = self._looking, None
        self._ends.set()
        rests = looking is not None and await looking
        try:
            return await self._do(lambda archive: archive.finish(turn_id, stopped.is_set, at_rest=rests), stopped)
        except OstlerError:
            return Changes(turn_id)

    async def turns(self) -> list[str]:
        """The turns that can be undone, the oldest first."""
        return await self._do(lambda archive: archive.turns())

    async def undone(self) -> set[str]:
        """Those of them that were undone, and not done again since."""
        return await self._do(lambda archive: archive.undone())

    async def kept(self) -> list[Kept]:
        """The turns that changed something and can be undone, the oldest first."""
        return await self._do(lambda archive: archive.kept())

    async def plan_undo(self, turn_id: str) -> UndoPlan:
        """What undoing a turn would do; nothing is touched."""
        return await self._do(lambda archive: archive.plan(UndoPlan(turn_id, "undo")))

    async def plan_redo(self, turn_id: str) -> UndoPlan:
        """What doing an undone turn again would do; nothing is touched."""
        return await self._do(lambda archive: archive.plan(UndoPlan(turn_id, "redo")))

    async def undo(self, plan: UndoPlan) -> Undone:
        """Carry out a plan, of whichever direction; what changed since it was made is left and named."""
        return await self._do(lambda archive: archive.carry_out(plan))

    async def redo(self, plan: UndoPlan) -> Undone:
        """The same, by the name one looks for."""
        return await self.undo(plan)

    def close(self) -> None:
        """Let the store go."""
        self._drop_look()
        if self._archive is not None:
            self._archive.close()
            self._archive = None

    async def _do(self, work: "Callable[[Archive], T]", stopped: threading.Event | None = None) -> T:
        def in_archive() -> T:
            import sqlite3

            try:
                return work(self._opened())
            except (sqlite3.Error, OSError) as error:
                raise OstlerError(f"the past of this workspace cannot be kept: {error}", code="checkpoint") from error

        async with self._one_at_a_time:
            return await in_thread(in_archive, on_cancel=stopped.set if stopped else None)

    def _opened(self) -> "Archive":
        if self._archive is None:
            from ostler.workspace.archive import Archive

            self._archive = Archive(self._root, self._store, self._cap, self._ours)
        return self._archive
