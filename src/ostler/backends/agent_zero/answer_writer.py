"""Builds the messages of a turn from pieces of the answer and the reasoning."""

import os
from collections.abc import Callable, Sequence

from ostler.core.events import Event, MessageDone, TextDelta, ThoughtDelta
from ostler.core.message import CallPart, Message, MessagePart, ThoughtPart
from ostler.core.prompt import TextContent
from ostler.core.tools import ToolCall


class AnswerWriter:
    """The message that is being received, if any."""

    def __init__(self, emit: Callable[[Event], None]) -> None:
        self._emit = emit
        self._id_token = os.urandom(4).hex()  # ids must be unique in a journal that earlier processes wrote
        self._count = 0
        self._parts: list[MessagePart] = []

    @property
    def text(self) -> str:
        """The text of the message so far."""
        return "".join(part.text for part in self._parts if isinstance(part, TextContent))

    def add_piece(self, text: str) -> None:
        """Add the next part of the answer."""
        self._add(TextContent, text)
        self._emit(TextDelta(self._id, text))

    def add_answer(self, text: str) -> None:
        """Add a complete answer; what was already received in pieces is not repeated."""
        received = self.text
        if text.startswith(received):
            text = text[len(received) :]
        elif text.strip() == received.strip():
            text = ""
        elif received:
            text = f"\n\n{text}"
        if text:
            self.add_piece(text)

    def retract(self, text: str) -> None:
        """Remove a text from the message if it is still open; text that was streamed stays on the screen."""
        for index, part in enumerate(self._parts):
            if isinstance(part, TextContent) and text in part.text:
                before, _, after = part.text.rpartition(text)
                joined = before.rstrip("\n") + after if not after else before + after.lstrip("\n")
                self._parts[index : index + 1] = [TextContent(joined)] if joined else []
                return

    def add_thought(self, text: str) -> None:
        self._add(ThoughtPart, text)
        self._emit(ThoughtDelta(self._id, text))

    def finish(self, calls: Sequence[ToolCall] = (), *, truncated: bool = False) -> None:
        """Emit the complete message with the calls that follow it."""
        parts = (*self._parts, *map(CallPart, calls))
        if parts:
            self._emit(MessageDone(Message(self._id, parts, truncated=truncated)))
            self._parts = []
            self._count += 1

    @property
    def _id(self) -> str:
        return f"zero-{self._id_token}-{self._count}"

    def _add(self, kind: type[TextContent] | type[ThoughtPart], text: str) -> None:
        last = self._parts[-1] if self._parts else None
        if isinstance(last, kind):
            self._parts[-1] = kind(last.text + text)
        else:
            self._parts.append(kind(text))
