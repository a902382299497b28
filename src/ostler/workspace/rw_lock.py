"""Async read-write lock that serves waiters in order."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from typing import TypeVar

import msgspec

T = TypeVar("T")


class _LockScope(msgspec.Struct):
    """Marks the current context as a holder of the lock until the block ends, also for tasks started in it."""

    is_writer: bool
    is_active: bool = True


class ReadWriteLock:
    """Reentrant read-write lock; a reader cannot become a writer. Waiting writers go before new readers."""

    def __init__(self) -> None:
        self._current_hold: ContextVar[_LockScope | None] = ContextVar("hold", default=None)
        self._readers = 0
        self._writing = False
        self._queue: list[tuple[asyncio.Future[None], bool]] = []

    def reading(self) -> AbstractAsyncContextManager[None]:
        """Hold the lock together with other readers."""
        return self._locked(writes=False)

    def writing(self) -> AbstractAsyncContextManager[None]:
        """Hold the lock exclusively."""
        return self._locked(writes=True)

    @asynccontextmanager
    async def _locked(self, *, writes: bool) -> AsyncIterator[None]:
        outer = self._current_hold.get()
        if outer is not None and outer.is_active:
            if writes and not outer.is_writer:
                raise RuntimeError("a holder of the read lock cannot acquire the write lock")
            yield
            return
        await self._acquire(writes)
        hold = _LockScope(writes)
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
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append((waiter, is_writer))
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._release(is_writer)
            else:
                self._queue = [entry for entry in self._queue if entry[0] is not waiter]
                self._wake_waiters()
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
        self._wake_waiters()

    def _wake_waiters(self) -> None:
        while self._queue and self._is_free(self._queue[0][1]):
            waiter, writes = self._queue.pop(0)
            if not waiter.done():
                self._add_holder(writes)
                waiter.set_result(None)


async def run_in_thread(work: Callable[[], T], *, on_cancel: Callable[[], None] | None = None) -> T:
    """Run blocking work in a thread. A cancelled caller waits for it, so that locks are not released too early."""
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
