"""Keeping what work may change: begun beside the first request, awaited by the first effect, dropped without one."""

import asyncio
from collections.abc import Sequence

from ostler.vocabulary.seams import Undo


class Keeping:
    """Makes the checkpoint of each unit of work, a turn or a call beside one; without an undo they do nothing."""

    def __init__(self, undo: Undo | None, prefix: str) -> None:
        self._undo = undo
        self._prefix = prefix
        self._named: set[str] = set()

    def begin(self, unit_id: str) -> "Unit":
        """Start to keep the workspace as it is now."""
        return Unit(self._undo, self._prefix + unit_id, self._named)


class Unit:
    """The checkpoint of one unit of work; others may be open meanwhile."""

    def __init__(self, undo: Undo | None, unit_id: str, named: set[str]) -> None:
        """`named` is what the session was told already that undo would not reach."""
        self._undo = undo
        self._id = unit_id
        self._named = named
        self._needed = False
        self._begun = asyncio.create_task(undo.begin(unit_id), name="checkpoint") if undo else None

    async def ready(self) -> Sequence[str]:
        """Wait until an effect may happen; what undo would not reach is told before the first, once in a session."""
        begun = self._begun
        if begun is None:
            return ()
        await asyncio.wait([begun])
        if begun.cancelled():  # its work ended meanwhile
            return ()
        self.hold()
        new = [path for path in begun.result() if path not in self._named]
        self._named.update(new)
        return new

    def hold(self) -> None:
        """There are effects, so that this must be kept to its end."""
        self._needed = True
        self.living()

    def living(self) -> None:
        """An effect is about to happen, or has happened."""
        if self._undo and self._needed:
            self._undo.living(self._id)

    def resting(self) -> None:
        """No effect is under way."""
        if self._undo and self._needed:
            self._undo.resting(self._id)

    async def finish(self) -> Sequence[str]:
        """It is over: note what it changed, or drop a checkpoint that nothing needed; what went wrong is told."""
        begun, self._begun = self._begun, None
        if begun is None or self._undo is None:
            return ()
        if not self._needed:
            begun.cancel()
        await asyncio.wait([begun])
        if not self._needed:
            return ()
        try:
            await self._undo.finish(self._id)
        except Exception as error:  # work must end, whatever became of its checkpoint
            return (f"this turn ({error})",)
        return ()
