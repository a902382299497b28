"""What is so now and no kept event tells yet: what is being said, and what the turn, calls and children do."""

import msgspec

from ostler.core.events import (
    ChildEnded,
    ChildProgress,
    Envelope,
    MessageDone,
    MessageSnapshot,
    StateChanged,
    TextDelta,
    ThoughtDelta,
    ToolFinished,
    ToolProgress,
    TurnEnded,
)


class _PartialMessage(msgspec.Struct):
    """A message that is not whole yet."""

    text: list[str]
    thought: list[str]
    time: float = 0.0
    number: int = 0


class TransientState:
    """Feed it every event; it tells what a reader has to know who did not hear them."""

    def __init__(self) -> None:
        self.event_count = 0
        self._seq = 0
        self._partial_messages: dict[str, _PartialMessage] = {}
        self._latest: dict[str, tuple[int, Envelope]] = {}

    def apply(self, envelope: Envelope) -> None:
        self.event_count += 1
        self._seq = envelope.seq
        match envelope.event:
            case TextDelta(message_id, text):
                self._partial_message(message_id, envelope.time).text.append(text)
            case ThoughtDelta(message_id, text):
                self._partial_message(message_id, envelope.time).thought.append(text)
            case MessageSnapshot(message_id, text, thought):
                saying = self._partial_message(message_id, envelope.time)
                saying.text, saying.thought = [text], [thought]
            case StateChanged("idle"):
                self._latest.pop("state", None)
            case StateChanged():
                self._latest["state"] = (self.event_count, envelope)
            case ToolProgress(call_id):
                self._latest[f"call {call_id}"] = (self.event_count, envelope)
            case ChildProgress(child_id):
                self._latest[f"child {child_id}"] = (self.event_count, envelope)
            case event if event.persisted:
                self._apply_end(event)
            case _:
                pass

    def snapshot(self, after: int = 0) -> list[Envelope]:
        """What is so now and happened after the event of that number, in the order in which it happened."""
        messages = [
            (saying.number, Envelope(self._seq, saying.time, _message_snapshot(message_id, saying)))
            for message_id, saying in self._partial_messages.items()
        ]
        others = [(number, Envelope(self._seq, was.time, was.event)) for number, was in self._latest.values()]
        return [envelope for number, envelope in sorted([*messages, *others], key=_event_number) if number > after]

    def _partial_message(self, message_id: str, time: float) -> _PartialMessage:
        saying = self._partial_messages.setdefault(message_id, _PartialMessage([], []))
        saying.time, saying.number = time, self.event_count
        return saying

    def _apply_end(self, event: object) -> None:
        match event:
            case MessageDone(message):
                self._partial_messages.pop(message.id, None)
            case ToolFinished(result):
                self._latest.pop(f"call {result.call_id}", None)
            case ChildEnded(child_id):
                self._latest.pop(f"child {child_id}", None)
            case TurnEnded():  # a person's call may go on
                self._partial_messages.clear()
                self._latest.pop("state", None)
            case _:
                pass


def _message_snapshot(message_id: str, partial: _PartialMessage) -> MessageSnapshot:
    return MessageSnapshot(message_id, "".join(partial.text), "".join(partial.thought))


def _event_number(entry: tuple[int, Envelope]) -> int:
    return entry[0]
