"""The conversation as plain messages, for exports, search and `history.xnl`."""

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from ostler.core.events import (
    Compacted,
    Envelope,
    MessageDone,
    PrefixBuilt,
    Steered,
    ToolCalled,
    ToolFinished,
    TurnStarted,
)
from ostler.core.message import Message, ThoughtPart
from ostler.core.prompt import EmbeddedResource, ImageContent, Prompt, PromptContent, ResourceLink, TextContent
from ostler.core.tools import ToolCall
from ostler.journal.partial_replies import PartialReplies

CONVERSATION_TYPES = frozenset(
    ("prefix_built", "turn_started", "steered", "message_done", "tool_called", "tool_finished", "compacted")
)


class ConversationMessage(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message; `number` is its record's number. `call_id` and `status` are set for tool results.

    `who` is the name of the user who sent a prompt, empty for the local user.
    """

    number: int
    time: float
    role: Literal["system", "user", "assistant", "tool"]
    text: str
    thought: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    status: str = ""
    images: tuple[ImageContent, ...] = ()
    cut: bool = False
    who: str = ""


class ConversationReader:
    """Converts records into messages, one at a time."""

    def __init__(self) -> None:
        self._manual_calls: set[str] = set()

    def read(self, envelope: Envelope) -> ConversationMessage | None:
        """Return the message of a record, or None if it has none."""
        number, time = envelope.seq, envelope.time
        match envelope.event:
            case PrefixBuilt(system):
                return ConversationMessage(number, time, "system", system)
            case Compacted(summary) if summary:
                return ConversationMessage(number, time, "system", summary)
            case TurnStarted(_, prompt) | Steered(prompt):
                return ConversationMessage(
                    number, time, "user", _prompt_text(prompt), images=_images(prompt.blocks), who=prompt.who
                )
            case MessageDone(message):
                return _assistant_message(number, time, message)
            case ToolCalled(call) if call.origin == "person" and call.id not in self._manual_calls:
                self._manual_calls.add(call.id)
                return ConversationMessage(number, time, "user", f"!{call.arguments.get('command', call.tool)}")
            case ToolFinished(result) if result.call_id in self._manual_calls:
                self._manual_calls.discard(result.call_id)
                return ConversationMessage(number, time, "assistant", result.for_model, images=result.images)
            case ToolFinished(result):
                text, status = result.for_model, result.status
                return ConversationMessage(
                    number, time, "tool", text, call_id=result.call_id, status=status, images=result.images
                )
            case _:
                return None


def read_conversation(records: Iterable[Envelope]) -> Iterator[ConversationMessage]:
    """Yield the messages of some records; last, the saved part of a reply that a crash interrupted."""
    reader, partial_replies, last = ConversationReader(), PartialReplies(), None
    for last in records:
        partial_replies.apply(last.event)
        if message := reader.read(last):
            yield message
    for partial in partial_replies.messages():
        if last and (message := _assistant_message(last.seq, last.time, partial)):
            yield message


def _assistant_message(number: int, time: float, message: Message) -> ConversationMessage | None:
    if not message.parts:
        return None
    thought = "".join(part.text for part in message.parts if isinstance(part, ThoughtPart))
    images = tuple(part for part in message.parts if isinstance(part, ImageContent))
    return ConversationMessage(
        number, time, "assistant", message.text, thought, message.calls, images=images, cut=message.truncated
    )


def _prompt_text(prompt: Prompt) -> str:
    return "\n\n".join(_content_text(block) for block in prompt.blocks if not isinstance(block, ImageContent))


def _content_text(block: PromptContent) -> str:
    match block:
        case TextContent(text):
            return text
        case EmbeddedResource(uri, text):
            return f"{uri}\n{text}"
        case ResourceLink(uri):
            return uri
        case _:
            return ""


def _images(blocks: Iterable[PromptContent]) -> tuple[ImageContent, ...]:
    return tuple(block for block in blocks if isinstance(block, ImageContent))
