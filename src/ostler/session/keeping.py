"""Keeping what a turn may change: begun beside the first request, awaited by the first effect, dropped without one."""

import asyncio
from collections.abc import Sequence

from ostler.vocabulary.seams import Undo


class Keeping:
    """One turn's checkpoint at a time; without an undo it does nothing."""

    def __init__(self, undo: Undo | None, prefix: str) -> None:
        self._undo = undo
        self._prefix = prefix
        self._turn = ""
        self._begun: asyncio.Task[Sequence[str]] | None = None
        self._needed = False
        self._named: set[str] = set()

    def begin(self, turn_id: str) -> None:
        """Start to keep the workspace as it is now."""
        if self._undo:
            self._turn = self._prefix + turn_id
            self._needed = False
            self._begun = asyncio.create_task(self._undo.begin(self._turn), name="checkpoint")

    async def ready(self) -> Sequence[str]:
        """Wait until an effect may happen; what undo would not reach is told before the first, once in a session."""
        if self._begun is None:
            return ()
        uncovered = await asyncio.shield(self._begun)
        self._needed = True
        self.living()
        new = [path for path in uncovered if path not in self._named]
        self._named.update(new)
        return new

    def living(self) -> None:
        """An effect is about to happen, or has happened."""
        if self._undo and self._needed:
            self._undo.living(self._turn)

    def resting(self) -> None:
        """No effect is under way."""
        if self._undo and self._needed:
            self._undo.resting(self._turn)

    async def finish(self) -> Sequence[str]:
        """The turn is over: note what it changed, or drop a checkpoint that nothing needed; what went wrong is told."""
        begun, self._begun = self._begun, None
        if begun is None or self._undo is None:
            return ()
        if not self._needed:
            begun.cancel()
            await asyncio.wait([begun])
            return ()
        try:
            await self._undo.finish(self._turn)
        except Exception as error:  # a turn must end, whatever became of its checkpoint
            return (f"this turn ({error})",)
        return ()
