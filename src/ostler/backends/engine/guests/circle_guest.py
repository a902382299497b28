"""The guest that sees a turn go round in circles: it nudges the model first, and stops the turn if that is no help."""

from collections.abc import AsyncGenerator, AsyncIterator

from ostler.backends.engine.guests.circles import Circles, looks, mark_of, repeats_itself, waits
from ostler.backends.engine.guests.guest import Guest, View
from ostler.models.over import Over
from ostler.models.words import Chunk, Finished, Request, TextChunk, ThoughtChunk
from ostler.vocabulary.events import Reminded, TurnEnded
from ostler.vocabulary.message import Message, Thought

SAME_CALLS = (
    "You have made the same calls before, with the same results. Doing so again will not help: try something else, "
    "or say what keeps you from going on."
)
SAME_WORDS = (
    "Your last reply repeated the same words over and over and was cut off. "
    "Say it once, or go on with the next thing to do."
)
_LOOK_EVERY = 512
_HELD = 16_000


class CircleGuest(Guest):
    """Honest repetition passes: other results, other arguments, or waiting for something."""

    def __init__(self) -> None:
        self._circles = Circles()
        self._words_nudged = False
        self._heard = 0

    async def before_step(self, view: View) -> TurnEnded | None:
        """New words from a person begin a new count."""
        records = view.stage.records()
        if any(records.kind(at) == "delivered" for at in range(max(self._heard, view.begun), len(records))):
            self._circles = Circles()
        self._heard = len(records)
        return None

    async def after_step(self, view: View, message: Message) -> TurnEnded | None:
        if not _repeats(message):
            return None
        if self._words_nudged:
            return TurnEnded("", "limit", limit="a loop: the model said the same words over and over")
        self._words_nudged = True
        view.stage.emit(Reminded(SAME_WORDS))
        return None

    async def after_tools(self, view: View, message: Message) -> TurnEnded | None:
        calls, records = message.calls, view.stage.records()
        mark = mark_of((call, records.result(call.id)) for call in calls)
        verdict = self._circles.take(mark, waiting=waits(calls), looking=looks(calls))
        if verdict == "stop":
            names = " and ".join(dict.fromkeys(call.tool for call in calls))
            return TurnEnded("", "limit", limit=f"a loop: the same calls with the same results, last {names}")
        if verdict == "nudge":
            view.stage.emit(Reminded(SAME_CALLS))
        return None

    async def before_end(self, view: View, message: Message) -> bool:
        return _repeats(message)


class Watched(Over):
    """A model whose reply ends as soon as it only repeats itself."""

    async def stream(self, request: Request) -> AsyncIterator[Chunk]:
        chunks, held, unseen = self._client.stream(request), "", 0
        try:
            async for chunk in chunks:
                yield chunk
                if not isinstance(chunk, TextChunk | ThoughtChunk):
                    continue
                held, unseen = (held + chunk.text)[-_HELD:], unseen + len(chunk.text)
                if unseen < _LOOK_EVERY:
                    continue
                unseen = 0
                if repeats_itself(held):
                    yield Finished("other")
                    return
        finally:
            if isinstance(chunks, AsyncGenerator):
                await chunks.aclose()


def _repeats(message: Message) -> bool:
    thought = "".join(part.text for part in message.parts if isinstance(part, Thought))
    return repeats_itself(message.text) or (not message.text and repeats_itself(thought))
