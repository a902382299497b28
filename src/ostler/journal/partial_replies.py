"""Collects the saved text of replies that were interrupted by a crash."""

import msgspec

from ostler.core.events import Event, MessageDone, PartialReply, TurnEnded
from ostler.core.message import Message, MessagePart, ThoughtPart
from ostler.core.prompt import TextContent


class PartialReplies(msgspec.Struct):
    """The saved text of messages that have no `MessageDone` yet, by message id."""

    saved: dict[str, list[PartialReply]] = {}

    def apply(self, event: Event) -> None:
        match event:
            case PartialReply(message_id, restarts=restarts):
                if restarts:
                    self.saved.pop(message_id, None)
                self.saved.setdefault(message_id, []).append(event)
            case MessageDone(message):
                self.saved.pop(message.id, None)
            case TurnEnded():
                self.saved.clear()
            case _:
                pass

    def messages(self) -> list[Message]:
        """Return the unfinished messages, marked as truncated."""
        return [message for message in map(_to_message, self.saved.values()) if message.parts]


def _to_message(saved: list[PartialReply]) -> Message:
    thought, text = "".join(part.thought for part in saved), "".join(part.text for part in saved)
    parts: list[MessagePart] = [ThoughtPart(thought)] if thought else []
    if text:
        parts.append(TextContent(text))
    return Message(saved[0].message_id, tuple(parts), truncated=True)
