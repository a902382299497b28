import asyncio
from contextvars import Context

import pytest

from ostler.workspace.rw_lock import ReadWriteLock, run_in_thread


class Watch:
    """Tasks that enter a lock, say so, and leave when told."""

    def __init__(self) -> None:
        self.lock = ReadWriteLock()
        self.inside: list[str] = []
        self.leave: dict[str, asyncio.Event] = {}

    def start(self, name: str) -> asyncio.Task[None]:
        self.leave[name] = asyncio.Event()
        return asyncio.create_task(self._stay(name))

    async def _stay(self, name: str) -> None:
        enter = self.lock.writing() if name.startswith("w") else self.lock.reading()
        async with enter:
            self.inside.append(name)
            await self.leave[name].wait()
            self.inside.remove(name)


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_readers_share_and_a_writer_is_alone():
    watch = Watch()
    tasks = [watch.start(name) for name in ("r1", "r2", "w1", "r3")]
    await settle()
    assert watch.inside == ["r1", "r2"]  # r3 waits behind the writer, who would starve otherwise
    watch.leave["r1"].set()
    watch.leave["r2"].set()
    await settle()
    assert watch.inside == ["w1"]
    watch.leave["w1"].set()
    await settle()
    assert watch.inside == ["r3"]
    watch.leave["r3"].set()
    await asyncio.gather(*tasks)


async def test_who_gives_up_waiting_holds_nobody_back():
    watch = Watch()
    first, writer, reader = (watch.start(name) for name in ("r1", "w1", "r2"))
    await settle()
    writer.cancel()
    await settle()
    assert watch.inside == ["r1", "r2"]
    for name in ("r1", "r2"):
        watch.leave[name].set()
    await asyncio.gather(first, reader)


async def test_who_is_cancelled_at_the_very_moment_of_being_let_in_lets_go():
    watch = Watch()
    first = watch.lock.reading()
    await first.__aenter__()
    writer = asyncio.create_task(watch._stay("w1"), context=Context())
    await settle()
    await first.__aexit__(None, None, None)  # the writer has its turn now, and has not run yet
    writer.cancel()
    await asyncio.gather(writer, return_exceptions=True)
    assert writer.cancelled()
    async with asyncio.timeout(1), watch.lock.writing():
        assert watch.inside == []


async def test_a_holder_may_enter_again_but_not_widen():
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


async def test_a_task_started_inside_has_no_right_left_afterwards():
    lock = ReadWriteLock()
    go = asyncio.Event()
    order = []

    async def later() -> None:
        await go.wait()
        async with lock.writing():
            order.append("later")

    async with lock.writing():
        task = asyncio.create_task(later())
        await settle()
    async with lock.writing():
        go.set()
        await settle()
        order.append("now")
    await task
    assert order == ["now", "later"]


async def test_work_in_a_thread_gives_its_result_and_its_error():
    assert await run_in_thread(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        await run_in_thread(lambda: 1 // 0)
