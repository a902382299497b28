"""One lock per ground: many readers together, a writer alone, and nobody starved."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Literal, TypeVar

T = TypeVar("T")


class _Hold:
    """That the current flow of control is inside the lock; ends with the block, also for tasks it started."""

    __slots__ = ("live", "writes")

    def __init__(self, writes: bool) -> None:
        self.live = True
        self.writes = writes


class ReadWriteLock:
    """A holder may enter again: a reader as reader, a writer as either. Waiting writers go before new readers."""

    def __init__(self) -> None:
        self._hold: ContextVar[_Hold | None] = ContextVar("hold", default=None)
        self._readers = 0
        self._writing = False
        self._queue: list[tuple[asyncio.Future[None], bool]] = []

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[None]:
        """Together with other readers."""
        async with self._entered("read"):
            yield

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """Alone."""
        async with self._entered("write"):
            yield

    @asynccontextmanager
    async def _entered(self, mode: Literal["read", "write"]) -> AsyncIterator[None]:
        writes = mode == "write"
        held = self._hold.get()
        if held is not None and held.live:
            if writes and not held.writes:
                raise RuntimeError("a reader of the ground cannot turn into its writer")
            yield
            return
        await self._acquire(writes)
        hold = _Hold(writes)
        token = self._hold.set(hold)
        try:
            yield
        finally:
            hold.live = False
            self._hold.reset(token)
            self._release(writes)

    async def _acquire(self, writes: bool) -> None:
        if not self._queue and self._free(writes):
            self._take(writes)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append((turn, writes))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._release(writes)
            else:
                self._queue = [waiting for waiting in self._queue if waiting[0] is not turn]
                self._admit()
            raise

    def _free(self, writes: bool) -> bool:
        return not self._writing and not (writes and self._readers)

    def _take(self, writes: bool) -> None:
        if writes:
            self._writing = True
        else:
            self._readers += 1

    def _release(self, writes: bool) -> None:
        if writes:
            self._writing = False
        else:
            self._readers -= 1
        self._admit()

    def _admit(self) -> None:
        while self._queue and self._free(self._queue[0][1]):
            turn, writes = self._queue.pop(0)
            if not turn.done():
                self._take(writes)
                turn.set_result(None)


async def in_thread(work: Callable[[], T], *, on_cancel: Callable[[], None] | None = None) -> T:
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
