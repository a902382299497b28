"""Current state that no persisted event carries yet: partial messages, turn state, tool and child progress."""

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
    """The deltas of an unfinished message."""

    text: list[str]
    thought: list[str]
    time: float = 0.0
    number: int = 0


class TransientState:
    """Tracks the transient state from all published events and returns it as a snapshot for late subscribers."""

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
                partial = self._partial_message(message_id, envelope.time)
                partial.text, partial.thought = [text], [thought]
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
        """Return the current transient state as events, in order, leaving out what was known after `after` events."""
        messages = [
            (partial.number, Envelope(self._seq, partial.time, _message_snapshot(message_id, partial)))
            for message_id, partial in self._partial_messages.items()
        ]
        others = [
            (number, Envelope(self._seq, envelope.time, envelope.event)) for number, envelope in self._latest.values()
        ]
        return [envelope for number, envelope in sorted([*messages, *others], key=_event_number) if number > after]

    def _partial_message(self, message_id: str, time: float) -> _PartialMessage:
        partial = self._partial_messages.setdefault(message_id, _PartialMessage([], []))
        partial.time, partial.number = time, self.event_count
        return partial

    def _apply_end(self, event: object) -> None:
        match event:
            case MessageDone(message):
                self._partial_messages.pop(message.id, None)
            case ToolFinished(result):
                self._latest.pop(f"call {result.call_id}", None)
            case ChildEnded(child_id):
                self._latest.pop(f"child {child_id}", None)
            case TurnEnded():  # a standalone call of the user may still run, so its progress stays
                self._partial_messages.clear()
                self._latest.pop("state", None)
            case _:
                pass


def _message_snapshot(message_id: str, partial: _PartialMessage) -> MessageSnapshot:
    return MessageSnapshot(message_id, "".join(partial.text), "".join(partial.thought))


def _event_number(entry: tuple[int, Envelope]) -> int:
    return entry[0]
