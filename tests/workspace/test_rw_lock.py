import asyncio
from contextvars import Context

import pytest

from ostler.workspace.rw_lock import ReadWriteLock, run_in_thread


class LockHolders:
    """Tasks that hold a lock until they are released."""

    def __init__(self) -> None:
        self.lock = ReadWriteLock()
        self.inside: list[str] = []
        self.leave: dict[str, asyncio.Event] = {}

    def start(self, name: str) -> asyncio.Task[None]:
        self.leave[name] = asyncio.Event()
        return asyncio.create_task(self._stay(name))

    async def _stay(self, name: str) -> None:
        lock = self.lock.writing() if name.startswith("w") else self.lock.reading()
        async with lock:
            self.inside.append(name)
            await self.leave[name].wait()
            self.inside.remove(name)


async def run_pending_tasks() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_readers_share_and_writer_is_exclusive():
    holders = LockHolders()
    tasks = [holders.start(name) for name in ("r1", "r2", "w1", "r3")]
    await run_pending_tasks()
    assert holders.inside == ["r1", "r2"]  # r3 waits behind the writer, which would starve otherwise
    holders.leave["r1"].set()
    holders.leave["r2"].set()
    await run_pending_tasks()
    assert holders.inside == ["w1"]
    holders.leave["w1"].set()
    await run_pending_tasks()
    assert holders.inside == ["r3"]
    holders.leave["r3"].set()
    await asyncio.gather(*tasks)


async def test_cancelled_waiter_does_not_block_others():
    holders = LockHolders()
    first, writer, reader = (holders.start(name) for name in ("r1", "w1", "r2"))
    await run_pending_tasks()
    writer.cancel()
    await run_pending_tasks()
    assert holders.inside == ["r1", "r2"]
    for name in ("r1", "r2"):
        holders.leave[name].set()
    await asyncio.gather(first, reader)


async def test_waiter_cancelled_when_admitted_releases_lock():
    holders = LockHolders()
    first = holders.lock.reading()
    await first.__aenter__()
    writer = asyncio.create_task(holders._stay("w1"), context=Context())
    await run_pending_tasks()
    await first.__aexit__(None, None, None)  # the writer is admitted now, but has not run yet
    writer.cancel()
    await asyncio.gather(writer, return_exceptions=True)
    assert writer.cancelled()
    async with asyncio.timeout(1), holders.lock.writing():
        assert holders.inside == []


async def test_lock_is_reentrant_but_reader_cannot_become_writer():
    lock = ReadWriteLock()
    async with asyncio.timeout(1):
        async with lock.writing(), lock.writing(), lock.reading():
            pass
        async with lock.reading(), lock.reading():
            with pytest.raises(RuntimeError):
                async with lock.writing():
                    pass
        async with lock.writing():
            pass


async def test_task_started_inside_loses_lock_when_block_ends():
    lock = ReadWriteLock()
    proceed = asyncio.Event()
    order = []

    async def later() -> None:
        await proceed.wait()
        async with lock.writing():
            order.append("later")

    async with lock.writing():
        task = asyncio.create_task(later())
        await run_pending_tasks()
    async with lock.writing():
        proceed.set()
        await run_pending_tasks()
        order.append("now")
    await task
    assert order == ["now", "later"]


async def test_run_in_thread_returns_result_and_raises_error():
    assert await run_in_thread(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        await run_in_thread(lambda: 1 // 0)
