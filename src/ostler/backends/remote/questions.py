"""Questions of the server's loop to the user of this machine."""

import asyncio
from collections.abc import Awaitable, Callable

from ostler.core.permission import Question, QuestionReply
from ostler.wire.client_frames import ApprovalAnswer

MAX_OPEN = 8


class ServerQuestions:
    """The open questions. Questions only: the server is never asked for permission, and never answers for it."""

    def __init__(
        self,
        session_id: str,
        send: Callable[[ApprovalAnswer], object],
        ask: Callable[[Question], Awaitable[QuestionReply]],
    ) -> None:
        self._session_id = session_id
        self._send = send
        self._ask = ask
        self._open: dict[str, asyncio.Task[None]] = {}

    def start(self, ask_id: str, question: Question, on_reply: Callable[[QuestionReply], None] | None = None) -> None:
        """Ask the user. The same question is asked once, and few at a time. `on_reply` is used instead of sending."""
        if ask_id in self._open or len(self._open) >= MAX_OPEN:
            return
        task = asyncio.create_task(self._run(ask_id, question, on_reply), name="question of the server")
        self._open[ask_id] = task

    def withdraw(self, ask_id: str) -> None:
        if task := self._open.pop(ask_id, None):
            task.cancel()

    def close(self) -> None:
        for task in tuple(self._open.values()):
            task.cancel()

    async def _run(self, ask_id: str, question: Question, on_reply: Callable[[QuestionReply], None] | None) -> None:
        reply = await self._ask(question)
        self._open.pop(ask_id, None)
        if on_reply:
            on_reply(reply)
        else:
            self._send(ApprovalAnswer(ask_id, self._session_id, reply=reply))
