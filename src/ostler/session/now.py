"""What is so now and no kept event tells yet: what is being said, and what the turn, calls and children do."""

import msgspec

from ostler.vocabulary.events import (
    ChildEnded,
    ChildProgress,
    Envelope,
    MessageDone,
    MessageSoFar,
    StateChanged,
    TextDelta,
    ThoughtDelta,
    ToolFinished,
    ToolProgress,
    TurnEnded,
)


class _Saying(msgspec.Struct):
    """A message that is not whole yet."""

    text: list[str]
    thought: list[str]
    time: float = 0.0
    number: int = 0


class Now:
    """Feed it every event; it tells what a reader has to know who did not hear them."""

    def __init__(self) -> None:
        self.number = 0
        self._seq = 0
        self._saying: dict[str, _Saying] = {}
        self._latest: dict[str, tuple[int, Envelope]] = {}

    def take(self, envelope: Envelope) -> None:
        self.number += 1
        self._seq = envelope.seq
        match envelope.event:
            case TextDelta(message_id, text):
                self._said(message_id, envelope.time).text.append(text)
            case ThoughtDelta(message_id, text):
                self._said(message_id, envelope.time).thought.append(text)
            case MessageSoFar(message_id, text, thought):
                saying = self._said(message_id, envelope.time)
                saying.text, saying.thought = [text], [thought]
            case StateChanged("idle"):
                self._latest.pop("state", None)
            case StateChanged():
                self._latest["state"] = (self.number, envelope)
            case ToolProgress(call_id):
                self._latest[f"call {call_id}"] = (self.number, envelope)
            case ChildProgress(child_id):
                self._latest[f"child {child_id}"] = (self.number, envelope)
            case event if event.kept:
                self._over(event)
            case _:
                pass

    def told(self, after: int = 0) -> list[Envelope]:
        """What is so now and happened after the event of that number, in the order in which it happened."""
        messages = [
            (saying.number, Envelope(self._seq, saying.time, _so_far(message_id, saying)))
            for message_id, saying in self._saying.items()
        ]
        others = [(number, Envelope(self._seq, was.time, was.event)) for number, was in self._latest.values()]
        return [envelope for number, envelope in sorted([*messages, *others], key=_number) if number > after]

    def _said(self, message_id: str, time: float) -> _Saying:
        saying = self._saying.setdefault(message_id, _Saying([], []))
        saying.time, saying.number = time, self.number
        return saying

    def _over(self, event: object) -> None:
        match event:
            case MessageDone(message):
                self._saying.pop(message.id, None)
            case ToolFinished(result):
                self._latest.pop(f"call {result.call_id}", None)
            case ChildEnded(child_id):
                self._latest.pop(f"child {child_id}", None)
            case TurnEnded():  # a person's call may go on
                self._saying.clear()
                self._latest.pop("state", None)
            case _:
                pass


def _so_far(message_id: str, saying: _Saying) -> MessageSoFar:
    return MessageSoFar(message_id, "".join(saying.text), "".join(saying.thought))


def _number(told: tuple[int, Envelope]) -> int:
    return told[0]
