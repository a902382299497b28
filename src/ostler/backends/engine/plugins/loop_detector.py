"""Plugin that detects a turn repeating itself: reminds the model first, then ends the turn."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from ostler.backends.engine.plugins.plugin import LoopPlugin, TurnView
from ostler.backends.engine.plugins.repetition import (
    RepetitionDetector,
    is_polling,
    is_repetitive,
    is_waiting,
    step_fingerprint,
)
from ostler.core.events import Reminded, TurnEnded
from ostler.core.message import Message, ThoughtPart
from ostler.models.client_wrapper import ModelClientWrapper
from ostler.models.model_types import ModelRequest, ReplyChunk, ReplyFinished, TextChunk, ThoughtChunk

REPEATED_CALLS = (
    "You are repeating the same tool calls with the same results. Try a different approach, or explain what blocks you."
)
REPEATED_TEXT = "Your last reply repeated the same text and was cut off. Say it once, or continue with the next step."
_CHECK_EVERY = 512
_TAIL_LENGTH = 16_000


class LoopDetector(LoopPlugin):
    """Legitimate repetition is allowed: other results, other arguments, or waiting for something."""

    def __init__(self) -> None:
        self._detector = RepetitionDetector()
        self._text_reminded = False
        self._read_count = 0

    async def before_step(self, view: TurnView) -> TurnEnded | None:
        """Reset the detector when the user sent a steering prompt."""
        records = view.context.records()
        if any(
            records.type_at(index) == "delivered"
            for index in range(max(self._read_count, view.start_index), len(records))
        ):
            self._detector = RepetitionDetector()
        self._read_count = len(records)
        return None

    async def after_step(self, view: TurnView, message: Message) -> TurnEnded | None:
        if not _repeats(message):
            return None
        if self._text_reminded:
            return TurnEnded("", "limit", limit="a loop: the model repeated the same text")
        self._text_reminded = True
        view.context.emit(Reminded(REPEATED_TEXT))
        return None

    async def after_tools(self, view: TurnView, message: Message) -> TurnEnded | None:
        calls, records = message.calls, view.context.records()
        fingerprint = step_fingerprint((call, records.result(call.id)) for call in calls)
        verdict = self._detector.add_step(fingerprint, waiting=is_waiting(calls), polling=is_polling(calls))
        if verdict == "stop":
            names = " and ".join(dict.fromkeys(call.tool for call in calls))
            return TurnEnded("", "limit", limit=f"a loop: the model repeated calls of {names} without new results")
        if verdict == "nudge":
            view.context.emit(Reminded(REPEATED_CALLS))
        return None

    async def before_end(self, view: TurnView, message: Message) -> bool:
        return _repeats(message)


class RepetitionGuard(ModelClientWrapper):
    """A model whose reply is ended as soon as it only repeats itself."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ReplyChunk, None]:
        tail, unchecked = "", 0
        async with aclosing(self._client.stream(request)) as chunks:
            async for chunk in chunks:
                yield chunk
                if not isinstance(chunk, TextChunk | ThoughtChunk):
                    continue
                tail, unchecked = (tail + chunk.text)[-_TAIL_LENGTH:], unchecked + len(chunk.text)
                if unchecked < _CHECK_EVERY:
                    continue
                unchecked = 0
                if is_repetitive(tail):
                    yield ReplyFinished("other")
                    return


def _repeats(message: Message) -> bool:
    thought = "".join(part.text for part in message.parts if isinstance(part, ThoughtPart))
    return is_repetitive(message.text) or (not message.text and is_repetitive(thought))
