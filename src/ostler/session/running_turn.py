"""A running turn: cancel it or wait for its end."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from ostler.core.events import TurnEnded
from ostler.core.sessions import TurnEndReason


class RunningTurn:
    """The task of a running turn. Cancelling `wait` does not cancel the turn."""

    def __init__(self, turn_id: str, work: Coroutine[Any, Any, TurnEnded], cancel_pending: Callable[[], None]) -> None:
        self.id = turn_id
        self.cancel_reason: TurnEndReason = "cancelled"
        self._task = asyncio.create_task(work, name="turn")
        self._cancel_pending = cancel_pending
        self._cancelled = False
        self.is_cleaning_up = False
        self.is_released = False

    def cancel(self, reason: TurnEndReason = "cancelled") -> None:
        """Cancel the turn's open requests, then its task. Later calls do nothing, to protect the cleanup."""
        if self._cancelled or self.is_cleaning_up or self._task.done():
            return
        self._cancelled = True
        self.cancel_reason = reason
        self._cancel_pending()
        # Delayed, because a task that is cancelled before it starts would skip its cleanup.
        asyncio.get_running_loop().call_soon(self._stop)

    def release(self) -> None:
        """Stop the turn's task without ending the turn, unless the turn is being cancelled or is ending already."""
        self.is_released = not (self._cancelled or self.is_cleaning_up or self._task.done())
        self.cancel()

    def begin_cleanup(self) -> None:
        """Mark that the backend has finished, so that `cancel` no longer interrupts."""
        self.is_cleaning_up = True

    def _stop(self) -> None:
        if not self.is_cleaning_up:
            self._task.cancel()

    async def wait(self) -> TurnEnded:
        return await asyncio.shield(self._task)
