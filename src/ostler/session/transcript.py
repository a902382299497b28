"""What a person sees: events gathered into blocks that any face can draw, in the order they began."""

from typing import Literal, TypeVar

import msgspec

from ostler.vocabulary.display import Display
from ostler.vocabulary.events import (
    Event,
    MessageDone,
    MessageSoFar,
    Notice,
    PermissionAsked,
    PermissionDecided,
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
from ostler.vocabulary.message import Message, Thought
from ostler.vocabulary.tools import Todo, ToolCall


class Block(msgspec.Struct):
    """One thing on the screen. `settled` means that it will not change any more."""

    id: str
    settled: bool = False


B = TypeVar("B", bound=Block)


class PromptBlock(Block):
    """What the person said."""

    text: str = ""


class TextBlock(Block):
    """What the model says: a plan while calls follow it, else the answer; `cut` when the stream broke off."""

    segment: Literal["plan", "answer"] = "answer"
    text: str = ""
    cut: bool = False


class ThoughtBlock(Block):
    """The model's reasoning."""

    text: str = ""


class CallBlock(Block):
    """One call from its making to its result; `title` is what whoever made it calls it, if that is another name."""

    call: ToolCall | None = None
    title: str = ""
    status: Literal["waiting", "asking", "running", "ok", "failed", "denied", "cancelled", "unknown"] = "waiting"
    display: Display = Display()


class TodosBlock(Block):
    """The plan as a checklist."""

    items: tuple[Todo, ...] = ()


class NoticeBlock(Block):
    """Something a person should know."""

    level: str = "info"
    text: str = ""


class EndBlock(Block):
    """How a turn ended."""

    ended: TurnEnded | None = None


class Transcript:
    """Feed it events; it returns the block each one changed."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._by_id: dict[str, Block] = {}

    def take(self, event: Event) -> Block | None:
        """The block that is new or changed, if any."""
        match event:
            case TurnStarted(turn_id, prompt):
                return self._add(PromptBlock(turn_id, True, prompt.text))
            case TextDelta() | ThoughtDelta() | MessageSoFar():
                return self._said(event)
            case MessageDone(message):
                return self._message(message)
            case TodosChanged(items):
                return self._add(TodosBlock(f"todos-{len(self.blocks)}", True, items))
            case Notice(level, text):
                return self._add(NoticeBlock(f"notice-{len(self.blocks)}", True, level, text))
            case TurnEnded(turn_id):
                return self._add(EndBlock(f"{turn_id}/end", True, event))
            case _:
                return self._call(event)

    def _call(self, event: Event) -> Block | None:
        match event:
            case ToolCalled(call, title):
                block = self._get(CallBlock, call.id)
                block.call, block.title = call, title
                return block
            case PermissionAsked(_, permission) if permission.call_id:
                return self._status(permission.call_id, "asking")
            case PermissionDecided(_, permission) if permission.call_id:
                return self._status(permission.call_id, "waiting")
            case ToolStarted(call_id):
                return self._status(call_id, "running")
            case ToolProgress(call_id, display):
                block = self._get(CallBlock, call_id)
                block.display = display
                return block
            case ToolFinished(result):
                block = self._get(CallBlock, result.call_id)
                block.display, block.status, block.settled = result.for_human, result.status, True
                return block
            case _:
                return None

    def _said(self, event: TextDelta | ThoughtDelta | MessageSoFar) -> Block | None:
        if isinstance(event, ThoughtDelta):
            block: ThoughtBlock | TextBlock = self._get(ThoughtBlock, f"{event.message_id}/thought")
            block.text += event.text
        elif isinstance(event, TextDelta):
            block = self._get(TextBlock, f"{event.message_id}/text")
            block.text += event.text
        else:
            if event.thought:
                self._get(ThoughtBlock, f"{event.message_id}/thought").text = event.thought
            block = self._get(TextBlock, f"{event.message_id}/text")
            block.text = event.text
        return block

    def _message(self, message: Message) -> Block | None:
        """The message as it is; what came of it before and does not count, as where an attempt was given up, goes."""
        thought = "".join(part.text for part in message.parts if isinstance(part, Thought))
        if thought or f"{message.id}/thought" in self._by_id:
            block = self._get(ThoughtBlock, f"{message.id}/thought")
            block.text, block.settled = thought, True
        if not message.text and f"{message.id}/text" not in self._by_id:
            return None
        text = self._get(TextBlock, f"{message.id}/text")
        text.text, text.settled, text.cut = message.text, True, message.cut
        text.segment = "plan" if message.has_more_to_do else "answer"
        return text

    def _status(self, call_id: str, status: Literal["waiting", "asking", "running"]) -> CallBlock:
        block = self._get(CallBlock, call_id)
        block.status = status
        return block

    def _get(self, kind: type[B], block_id: str) -> B:
        block = self._by_id.get(block_id)
        if not isinstance(block, kind):
            block = kind(block_id)
            self._add(block)
        return block

    def _add(self, block: Block) -> Block:
        self._by_id[block.id] = block
        self.blocks.append(block)
        return block
