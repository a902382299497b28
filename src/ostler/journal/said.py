"""What was said in a session, by whom, in order: the conversation as histories, exports and searches tell it."""

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from ostler.vocabulary.events import (
    Compacted,
    Envelope,
    MessageDone,
    PrefixBuilt,
    Steered,
    ToolCalled,
    ToolFinished,
    TurnStarted,
)
from ostler.vocabulary.message import Message, Thought
from ostler.vocabulary.prompt import Block, Image, Link, Prompt, Resource, Text
from ostler.vocabulary.tools import ToolCall

KINDS = frozenset(
    ("prefix_built", "turn_started", "steered", "message_done", "tool_called", "tool_finished", "compacted")
)


class Said(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message; `number` is its record's. A tool's has the call it answers and how that went."""

    number: int
    time: float
    role: Literal["system", "user", "assistant", "tool"]
    text: str
    thought: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    status: str = ""
    images: tuple[Image, ...] = ()
    cut: bool = False


class Conversation:
    """Feed it records; it returns what was said in each, if anything was."""

    def __init__(self) -> None:
        self._by_hand: set[str] = set()

    def take(self, envelope: Envelope) -> Said | None:
        number, time = envelope.seq, envelope.time
        match envelope.event:
            case PrefixBuilt(system):
                return Said(number, time, "system", system)
            case Compacted(summary) if summary:
                return Said(number, time, "system", summary)
            case TurnStarted(_, prompt) | Steered(prompt):
                return Said(number, time, "user", _words(prompt), images=_images(prompt.blocks))
            case MessageDone(message):
                return _answer(number, time, message)
            case ToolCalled(call) if call.origin == "person" and call.id not in self._by_hand:
                self._by_hand.add(call.id)
                return Said(number, time, "user", f"!{call.arguments.get('command', call.tool)}")
            case ToolFinished(result) if result.call_id in self._by_hand:
                self._by_hand.discard(result.call_id)
                return Said(number, time, "assistant", result.for_model, images=result.images)
            case ToolFinished(result):
                told, status = result.for_model, result.status
                return Said(number, time, "tool", told, call_id=result.call_id, status=status, images=result.images)
            case _:
                return None


def conversation(records: Iterable[Envelope]) -> Iterator[Said]:
    """All that was said."""
    heard = Conversation()
    return (said for envelope in records if (said := heard.take(envelope)))


def _answer(number: int, time: float, message: Message) -> Said | None:
    if not message.parts:
        return None
    thought = "".join(part.text for part in message.parts if isinstance(part, Thought))
    images = tuple(part for part in message.parts if isinstance(part, Image))
    return Said(number, time, "assistant", message.text, thought, message.calls, images=images, cut=message.cut)


def _words(prompt: Prompt) -> str:
    return "\n\n".join(_text(block) for block in prompt.blocks if not isinstance(block, Image))


def _text(block: Block) -> str:
    match block:
        case Text(text):
            return text
        case Resource(uri, text):
            return f"{uri}\n{text}"
        case Link(uri):
            return uri
        case _:
            return ""


def _images(blocks: Iterable[Block]) -> tuple[Image, ...]:
    return tuple(block for block in blocks if isinstance(block, Image))
