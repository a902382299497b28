"""Turns events into display blocks for frontends, in the order they started."""

from typing import Literal, TypeVar

import msgspec

from ostler.core.display import Display
from ostler.core.events import (
    Event,
    MessageDone,
    MessageSnapshot,
    Notice,
    PermissionAsked,
    PermissionDecided,
    ServerStateChanged,
    TextDelta,
    ThoughtDelta,
    TodosChanged,
    ToolCalled,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from ostler.core.message import Message, ThoughtPart
from ostler.core.tools import Todo, ToolCall


class TranscriptBlock(msgspec.Struct):
    """A block of the transcript. A `final` block does not change any more."""

    id: str
    final: bool = False


B = TypeVar("B", bound=TranscriptBlock)


class PromptBlock(TranscriptBlock):
    """The user's prompt."""

    text: str = ""


class TextBlock(TranscriptBlock):
    """Text of the model: a `plan` if tool calls belong to it, else the `answer`. `truncated`: the stream broke off."""

    segment: Literal["plan", "answer"] = "answer"
    text: str = ""
    truncated: bool = False


class ThoughtBlock(TranscriptBlock):
    """The model's reasoning."""

    text: str = ""


class CallBlock(TranscriptBlock):
    """A tool call, from request to result. `title` is the caller's name for it, if it differs from the tool's."""

    call: ToolCall | None = None
    title: str = ""
    status: Literal["waiting", "asking", "running", "ok", "failed", "denied", "cancelled", "unknown"] = "waiting"
    display: Display = Display()


class TodosBlock(TranscriptBlock):
    """The todo list; `starter` if Ostler made it itself."""

    items: tuple[Todo, ...] = ()
    starter: bool = False


class NoticeBlock(TranscriptBlock):
    """A message to the user."""

    level: str = "info"
    text: str = ""


class TurnEndBlock(TranscriptBlock):
    """How a turn ended."""

    turn_end: TurnEnded | None = None


class Transcript:
    """Collects the blocks of a session from its events."""

    def __init__(self) -> None:
        self.blocks: list[TranscriptBlock] = []
        self._by_id: dict[str, TranscriptBlock] = {}

    def apply(self, event: Event) -> TranscriptBlock | None:
        """Apply an event. Return the block it added or changed, or None."""
        match event:
            case TurnStarted(turn_id, prompt):
                return self._add(PromptBlock(turn_id, True, prompt.text))
            case TextDelta() | ThoughtDelta() | MessageSnapshot():
                return self._apply_delta(event)
            case MessageDone(message):
                return self._apply_message(message)
            case TodosChanged(items, starter):
                return self._add(TodosBlock(f"todos-{len(self.blocks)}", True, items, starter))
            case Notice(level, text):
                return self._add(NoticeBlock(f"notice-{len(self.blocks)}", True, level, text))
            case ServerStateChanged() if event.failure:
                return self._add(NoticeBlock(f"notice-{len(self.blocks)}", True, "warning", event.failure))
            case TurnEnded(turn_id):
                return self._add(TurnEndBlock(f"{turn_id}/end", True, event))
            case _:
                return self._apply_call(event)

    def _apply_call(self, event: Event) -> TranscriptBlock | None:
        match event:
            case ToolCalled(call, title):
                block = self._get_or_add(CallBlock, call.id)
                block.call, block.title = call, title
                return block
            case PermissionAsked(_, permission) if permission.call_id:
                return self._set_status(permission.call_id, "asking")
            case PermissionDecided(_, permission) if permission.call_id:
                return self._set_status(permission.call_id, "waiting")
            case ToolStarted(call_id):
                return self._set_status(call_id, "running")
            case ToolProgress(call_id, display):
                block = self._get_or_add(CallBlock, call_id)
                block.display = display
                return block
            case ToolFinished(result):
                block = self._get_or_add(CallBlock, result.call_id)
                block.display, block.status, block.final = result.for_human, result.status, True
                return block
            case _:
                return None

    def _apply_delta(self, event: TextDelta | ThoughtDelta | MessageSnapshot) -> TranscriptBlock | None:
        if isinstance(event, ThoughtDelta):
            block: ThoughtBlock | TextBlock = self._get_or_add(ThoughtBlock, f"{event.message_id}/thought")
            block.text += event.text
        elif isinstance(event, TextDelta):
            block = self._get_or_add(TextBlock, f"{event.message_id}/text")
            block.text += event.text
        else:
            if event.thought:
                self._get_or_add(ThoughtBlock, f"{event.message_id}/thought").text = event.thought
            block = self._get_or_add(TextBlock, f"{event.message_id}/text")
            block.text = event.text
        return block

    def _apply_message(self, message: Message) -> TranscriptBlock | None:
        """Replace the streamed text by the final message; text of an abandoned attempt is removed."""
        thought = "".join(part.text for part in message.parts if isinstance(part, ThoughtPart))
        if thought or f"{message.id}/thought" in self._by_id:
            block = self._get_or_add(ThoughtBlock, f"{message.id}/thought")
            block.text, block.final = thought, True
        if not message.text and f"{message.id}/text" not in self._by_id:
            return None
        text = self._get_or_add(TextBlock, f"{message.id}/text")
        text.text, text.final, text.truncated = message.text, True, message.truncated
        text.segment = "plan" if message.is_intermediate else "answer"
        return text

    def _set_status(self, call_id: str, status: Literal["waiting", "asking", "running"]) -> CallBlock:
        block = self._get_or_add(CallBlock, call_id)
        block.status = status
        return block

    def _get_or_add(self, kind: type[B], block_id: str) -> B:
        block = self._by_id.get(block_id)
        if not isinstance(block, kind):
            block = kind(block_id)
            self._add(block)
        return block

    def _add(self, block: TranscriptBlock) -> TranscriptBlock:
        self._by_id[block.id] = block
        self.blocks.append(block)
        return block
