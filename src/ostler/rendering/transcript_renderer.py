"""Turns session events into the lines that are appended to the scrollback."""

from typing import Literal

from ostler.core.events import Event, MessageDone, MessageSnapshot, TextDelta, TurnEnded
from ostler.core.message import Message
from ostler.rendering.blocks import render_block, shorten
from ostler.rendering.message_stream import MessageRenderer
from ostler.rendering.style import Styler
from ostler.rendering.tool_calls import ToolCallRenderer
from ostler.session.transcript import (
    CallBlock,
    PromptBlock,
    TextBlock,
    ThoughtBlock,
    TodosBlock,
    Transcript,
    TranscriptBlock,
)
from ostler.text.sanitise import sanitise
from ostler.text.truncate import truncate_middle

PROMPT_LINES = 60
PROMPT_COLUMNS = 2000


class TranscriptRenderer:
    """Renders the events of one session; each line is emitted once."""

    def __init__(self, paint: Styler) -> None:
        self.show_prompts = True  # unless the next prompt is already on the screen
        self._paint = paint
        self._transcript = Transcript()
        self._printed: set[str] = set()
        self._streams: dict[str, MessageRenderer] = {}
        self.calls = ToolCallRenderer(paint)
        self._has_output = False

    @property
    def partial_line(self) -> str:
        """The incomplete line of the message that is streaming; one that was interrupted may still have its own."""
        lines = (stream.partial_line for stream in reversed(self._streams.values()))
        return next((line for line in lines if line), "")

    def render(self, event: Event) -> list[str]:
        """Return the lines that an event adds."""
        match event:
            case TextDelta(message_id, text):
                return self._with_gap(message_id, self._stream_for(message_id).feed(text))
            case MessageSnapshot(message_id, text):
                return self._with_gap(message_id, self._stream_for(message_id).catch_up(text))
            case MessageDone(message):
                self._transcript.apply(event)
                return self._finish_message(message)
            case TurnEnded():
                block = self._transcript.apply(event)
                return [*self._finish_incomplete(), *(render_block(block, self._paint) if block else [])]
            case _:
                return self._render_block(self._transcript.apply(event))

    def _render_block(self, block: TranscriptBlock | None) -> list[str]:
        match block:
            case None | TextBlock() | ThoughtBlock():
                return []
            case PromptBlock(text=text):
                return self.render_prompt(text) if self.show_prompts else []
            case CallBlock():
                return self._render_call(block)
            case TodosBlock() if self.calls.running:
                return []  # the call's result shows the list
            case _:
                return render_block(block, self._paint)

    def render_prompt(self, text: str) -> list[str]:
        """Render a prompt of the user."""
        lines = shorten(sanitise(text).split("\n"), PROMPT_LINES, Styler(enabled=False))
        first, *more = (truncate_middle(line, PROMPT_COLUMNS).text for line in lines)
        gap = [""] if self._has_output else []
        self._has_output = True
        return [*gap, self._paint(f"> {first}", "bold"), *(self._paint(f"  {line}".rstrip(), "bold") for line in more)]

    def _stream_for(self, message_id: str) -> MessageRenderer:
        if message_id not in self._streams:
            self._streams[message_id] = MessageRenderer(self._paint)
        return self._streams[message_id]

    def _finish_message(self, message: Message) -> list[str]:
        stream = self._stream_for(message.id)
        segment: Literal["plan", "answer"] = "plan" if message.is_intermediate else "answer"
        lines = stream.finish(message.text, segment, truncated=message.truncated) if message.text else []
        lines = self._with_gap(message.id, lines)
        del self._streams[message.id]
        return lines

    def _with_gap(self, message_id: str, lines: list[str]) -> list[str]:
        """Add an empty line before each message, except at the start of the output."""
        if lines:
            self.calls.on_text()
        if not lines or message_id in self._printed:
            return lines
        self._printed.add(message_id)
        gap = [""] if self._has_output else []
        self._has_output = True
        return [*gap, *lines]

    def _finish_incomplete(self) -> list[str]:
        """Return the rest of messages that were interrupted."""
        lines: list[str] = []
        for message_id, stream in self._streams.items():
            if stream.text:
                lines += self._with_gap(message_id, stream.finish(stream.text, "plan", truncated=True))
        self._streams.clear()
        return lines

    def _render_call(self, block: CallBlock) -> list[str]:
        lines = self.calls.render(block)
        self._has_output = self._has_output or bool(lines)
        return lines
