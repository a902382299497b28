"""A turn under way, as a face holds it."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from ostler.core.events import TurnEnded
from ostler.core.sessions import TurnEndReason


class RunningTurn:
    """Cancel settles what waits for a person, then stops the backend's work; waiting never cancels."""

    def __init__(self, turn_id: str, work: Coroutine[Any, Any, TurnEnded], cancel_pending: Callable[[], None]) -> None:
        self.id = turn_id
        self.cancel_reason: TurnEndReason = "cancelled"
        self._task = asyncio.create_task(work, name="turn")
        self._cancel_pending = cancel_pending
        self._cancelled = False
        self.is_cleaning_up = False

    def cancel(self, reason: TurnEndReason = "cancelled") -> None:
        """Once; a second call must not interrupt the tidying up that the first one began."""
        if self._cancelled or self.is_cleaning_up or self._task.done():
            return
        self._cancelled = True
        self.cancel_reason = reason
        self._cancel_pending()
        # not at once: a task that has not begun yet would never reach its own ending
        asyncio.get_running_loop().call_soon(self._stop)

    def begin_cleanup(self) -> None:
        """The backend is done with the turn; what follows is not to be interrupted."""
        self.is_cleaning_up = True

    def _stop(self) -> None:
        if not self.is_cleaning_up:
            self._task.cancel()

    async def wait(self) -> TurnEnded:
        return await asyncio.shield(self._task)
