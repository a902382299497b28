"""A turn under way, as a face holds it."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from ostler.vocabulary.events import TurnEnded
from ostler.vocabulary.sessions import EndReason


class LiveTurn:
    """Cancel settles what waits for a person, then stops the backend's work; waiting never cancels."""

    def __init__(self, turn_id: str, play: Coroutine[Any, Any, TurnEnded], settle_open: Callable[[], None]) -> None:
        self.id = turn_id
        self.cancelled_for: EndReason = "cancelled"
        self._task = asyncio.create_task(play, name="turn")
        self._settle_open = settle_open
        self._cancelled = False
        self.is_tidying = False

    def cancel(self, reason: EndReason = "cancelled") -> None:
        """Once; a second call must not interrupt the tidying up that the first one began."""
        if self._cancelled or self.is_tidying or self._task.done():
            return
        self._cancelled = True
        self.cancelled_for = reason
        self._settle_open()
        # not at once: a task that has not begun yet would never reach its own ending
        asyncio.get_running_loop().call_soon(self._stop)

    def tidying(self) -> None:
        """The backend is done with the turn; what follows is not to be interrupted."""
        self.is_tidying = True

    def _stop(self) -> None:
        if not self.is_tidying:
            self._task.cancel()

    async def wait(self) -> TurnEnded:
        return await asyncio.shield(self._task)
