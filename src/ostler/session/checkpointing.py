"""Takes a workspace checkpoint per turn or standalone call, in the background, ready before the first side effect."""

import asyncio
from collections.abc import Sequence

from ostler.core.protocols import Undo


class Checkpointer:
    """Creates the checkpoint of each unit of work: a turn or a standalone call. Does nothing without `undo`."""

    def __init__(self, undo: Undo | None, prefix: str) -> None:
        self._undo = undo
        self._prefix = prefix
        self._reported: set[str] = set()

    def start(self, work_id: str) -> "WorkCheckpoint":
        """Start taking a checkpoint of the workspace in the background."""
        return WorkCheckpoint(self._undo, self._prefix + work_id, self._reported)


class WorkCheckpoint:
    """The checkpoint of one unit of work; several can be open at the same time."""

    def __init__(self, undo: Undo | None, work_id: str, reported: set[str]) -> None:
        """`reported` is the session's set of paths that were already reported as not restorable."""
        self._undo = undo
        self._id = work_id
        self._reported = reported
        self._required = False
        self._task = asyncio.create_task(undo.begin(work_id), name="checkpoint") if undo else None

    async def wait_ready(self) -> Sequence[str]:
        """Wait until the checkpoint is ready. Return the paths that undo cannot restore, except reported ones."""
        task = self._task
        if task is None:
            return ()
        await asyncio.wait([task])
        if task.cancelled():  # the unit of work ended in the meantime
            return ()
        self.require()
        new = [path for path in task.result() if path not in self._reported]
        self._reported.update(new)
        return new

    def require(self) -> None:
        """Keep the checkpoint: there are side effects, so `finish` must not drop it."""
        self._required = True
        self.heartbeat()

    def heartbeat(self) -> None:
        """Mark that a side effect is about to happen or has happened."""
        if self._undo and self._required:
            self._undo.heartbeat(self._id)

    def mark_idle(self) -> None:
        """Mark that no side effect is running."""
        if self._undo and self._required:
            self._undo.mark_idle(self._id)

    async def finish(self) -> Sequence[str]:
        """Save what the work changed, or drop an unneeded checkpoint. Return an error text if undo is not possible."""
        task, self._task = self._task, None
        if task is None or self._undo is None:
            return ()
        if not self._required:
            task.cancel()
        await asyncio.wait([task])
        try:
            await (self._undo.finish(self._id) if self._required else self._undo.discard(self._id))
        except Exception as error:  # a failed checkpoint must not keep the turn from ending
            return (f"this turn ({error})",)
        return ()
