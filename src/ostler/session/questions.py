"""Questions of the backend and the tools to the user."""

from collections.abc import Callable

import msgspec

from ostler.core.events import Event, QuestionAnswered, QuestionAsked
from ostler.core.permission import Question, QuestionReply
from ostler.session.pending_answers import PendingAnswers


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
