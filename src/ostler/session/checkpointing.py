"""Keeping what work may change: begun beside the first request, awaited by the first effect, dropped without one."""

import asyncio
from collections.abc import Sequence

from ostler.core.protocols import Undo


class Checkpointer:
    """Makes the checkpoint of each unit of work, a turn or a call beside one; without an undo they do nothing."""

    def __init__(self, undo: Undo | None, prefix: str) -> None:
        self._undo = undo
        self._prefix = prefix
        self._reported: set[str] = set()

    def start(self, work_id: str) -> "WorkCheckpoint":
        """Start to keep the workspace as it is now."""
        return WorkCheckpoint(self._undo, self._prefix + work_id, self._reported)


class WorkCheckpoint:
    """The checkpoint of one unit of work; others may be open meanwhile."""

    def __init__(self, undo: Undo | None, work_id: str, reported: set[str]) -> None:
        """`named` is what the session was told already that undo would not reach."""
        self._undo = undo
        self._id = work_id
        self._reported = reported
        self._required = False
        self._task = asyncio.create_task(undo.begin(work_id), name="checkpoint") if undo else None

    async def wait_ready(self) -> Sequence[str]:
        """Wait until an effect may happen; what undo would not reach is told before the first, once in a session."""
        begun = self._task
        if begun is None:
            return ()
        await asyncio.wait([begun])
        if begun.cancelled():  # its work ended meanwhile
            return ()
        self.require()
        new = [path for path in begun.result() if path not in self._reported]
        self._reported.update(new)
        return new

    def require(self) -> None:
        """There are effects, so that this must be kept to its end."""
        self._required = True
        self.heartbeat()

    def heartbeat(self) -> None:
        """An effect is about to happen, or has happened."""
        if self._undo and self._required:
            self._undo.heartbeat(self._id)

    def mark_idle(self) -> None:
        """No effect is under way."""
        if self._undo and self._required:
            self._undo.mark_idle(self._id)

    async def finish(self) -> Sequence[str]:
        """It is over: note what it changed, or drop a checkpoint that nothing needed; what went wrong is told."""
        begun, self._task = self._task, None
        if begun is None or self._undo is None:
            return ()
        if not self._required:
            begun.cancel()
        await asyncio.wait([begun])
        if not self._required:
            return ()
        try:
            await self._undo.finish(self._id)
        except Exception as error:  # work must end, whatever became of its checkpoint
            return (f"this turn ({error})",)
        return ()
