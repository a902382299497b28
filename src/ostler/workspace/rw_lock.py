"""One lock per ground: many readers together, a writer alone, and nobody starved."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Literal, TypeVar

T = TypeVar("T")


class _LockHold:
    """That the current flow of control is inside the lock; ends with the block, also for tasks it started."""

    __slots__ = ("is_active", "is_writer")

    def __init__(self, is_writer: bool) -> None:
        self.is_active = True
        self.is_writer = is_writer


class ReadWriteLock:
    """A holder may enter again: a reader as reader, a writer as either. Waiting writers go before new readers."""

    def __init__(self) -> None:
        self._current_hold: ContextVar[_LockHold | None] = ContextVar("hold", default=None)
        self._readers = 0
        self._writing = False
        self._queue: list[tuple[asyncio.Future[None], bool]] = []

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[None]:
        """Together with other readers."""
        async with self._locked("read"):
            yield

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """Alone."""
        async with self._locked("write"):
            yield

    @asynccontextmanager
    async def _locked(self, mode: Literal["read", "write"]) -> AsyncIterator[None]:
        writes = mode == "write"
        held = self._current_hold.get()
        if held is not None and held.is_active:
            if writes and not held.is_writer:
                raise RuntimeError("a reader of the ground cannot turn into its writer")
            yield
            return
        await self._acquire(writes)
        hold = _LockHold(writes)
        token = self._current_hold.set(hold)
        try:
            yield
        finally:
            hold.is_active = False
            self._current_hold.reset(token)
            self._release(writes)

    async def _acquire(self, is_writer: bool) -> None:
        if not self._queue and self._is_free(is_writer):
            self._add_holder(is_writer)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append((turn, is_writer))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._release(is_writer)
            else:
                self._queue = [waiting for waiting in self._queue if waiting[0] is not turn]
                self._admit_waiting()
            raise

    def _is_free(self, is_writer: bool) -> bool:
        return not self._writing and not (is_writer and self._readers)

    def _add_holder(self, is_writer: bool) -> None:
        if is_writer:
            self._writing = True
        else:
            self._readers += 1

    def _release(self, is_writer: bool) -> None:
        if is_writer:
            self._writing = False
        else:
            self._readers -= 1
        self._admit_waiting()

    def _admit_waiting(self) -> None:
        while self._queue and self._is_free(self._queue[0][1]):
            turn, writes = self._queue.pop(0)
            if not turn.done():
                self._add_holder(writes)
                turn.set_result(None)


async def run_in_thread(work: Callable[[], T], *, on_cancel: Callable[[], None] | None = None) -> T:
    """Run blocking work in a thread; a cancelled caller waits for it, so that a lock is not let go of too early."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if on_cancel is not None:
            on_cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()
        raise
