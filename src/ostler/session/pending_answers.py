"""Open asks and questions: each is settled once, by whoever answers first, and none outlives its turn."""

import asyncio
from typing import Generic, TypeVar

A = TypeVar("A")


class PendingAnswers(Generic[A]):
    """Futures by id; the data of an ask is in the events, only the waiting is here."""

    def __init__(self) -> None:
        self._open: dict[str, asyncio.Future[A]] = {}
        self._delivered = asyncio.Event()

    async def wait(self, ask_id: str) -> A:
        """The first answer that is given."""
        future = self._open.setdefault(ask_id, asyncio.get_running_loop().create_future())
        try:
            return await future
        finally:
            self._open.pop(ask_id, None)
            self._delivered.set()

    def answer(self, ask_id: str, answer: A) -> bool:
        """Answer; False when it was answered already or was never asked."""
        future = self._open.get(ask_id)
        if future is None or future.done():
            return False
        future.set_result(answer)
        return True

    async def wait_delivered(self) -> None:
        """Until all who waited for what was settled have taken it in."""
        while any(future.done() for future in self._open.values()):
            self._delivered.clear()
            await self._delivered.wait()

    def answer_all(self, answer: A) -> None:
        """Answer whatever is open."""
        for ask_id in tuple(self._open):
            self.answer(ask_id, answer)
