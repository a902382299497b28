"""Open approval requests and questions, by id; the first answer wins."""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from ostler.core.events import Event, QuestionAnswered, QuestionAsked
from ostler.core.permission import Question, QuestionReply

A = TypeVar("A")


class PendingAnswers(Generic[A]):
    """Futures for open requests, by id. The requests themselves are in the events."""

    def __init__(self) -> None:
        self._open: dict[str, asyncio.Future[A]] = {}
        self._delivered = asyncio.Event()

    async def wait(self, ask_id: str) -> A:
        """Wait for the first answer and return it."""
        future = self._open.setdefault(ask_id, asyncio.get_running_loop().create_future())
        try:
            return await future
        finally:
            self._open.pop(ask_id, None)
            self._delivered.set()

    def answer(self, ask_id: str, answer: A) -> bool:
        """Answer a request. Return False if it was already answered or does not exist."""
        future = self._open.get(ask_id)
        if future is None or future.done():
            return False
        future.set_result(answer)
        return True

    async def wait_delivered(self) -> None:
        """Wait until every given answer has been received by its waiter."""
        while any(future.done() for future in self._open.values()):
            self._delivered.clear()
            await self._delivered.wait()

    def answer_all(self, answer: A) -> None:
        """Give the same answer to all open requests."""
        for ask_id in tuple(self._open):
            self.answer(ask_id, answer)


class QuestionAsker:
    """Asks questions and waits for the replies, which `pending` receives."""

    def __init__(self, emit: Callable[[Event], None], new_id: Callable[[str], str]) -> None:
        self.pending: PendingAnswers[QuestionReply] = PendingAnswers()
        self._emit = emit
        self._new_id = new_id

    async def ask(self, question: Question) -> QuestionReply:
        """Ask under a new id, because ids must be unique."""
        question = msgspec.structs.replace(question, id=self._new_id("question"))
        self._emit(QuestionAsked(question))
        reply = QuestionReply("cancel")
        try:
            reply = await self.pending.wait(question.id)
        finally:
            self._emit(QuestionAnswered(question.id, reply))
        return reply
