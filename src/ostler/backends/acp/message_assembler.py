"""Assembles an agent's text chunks into deltas and complete messages."""

import os
from collections.abc import Callable

from ostler.core.events import Event, MessageDone, TextDelta, ThoughtDelta
from ostler.core.message import CallPart, Message, MessagePart, ThoughtPart
from ostler.core.prompt import ImageContent, TextContent
from ostler.core.tools import ToolCall
from ostler.wire.acp import ContentBlock, content_text


class MessageAssembler:
    """The message that is being received, if any."""

    def __init__(self, emit: Callable[[Event], None]) -> None:
        self._emit = emit
        self._id_token = os.urandom(4).hex()  # ids must be unique in a journal that earlier processes wrote
        self._count = 0
        self._agent_message_id: str | None = None
        self._parts: list[tuple[type[TextContent] | type[ThoughtPart], list[str]]] = []
        self._images: list[ImageContent] = []

    def add_text(self, content: ContentBlock, message_id: str | None) -> None:
        """Add a part of the answer."""
        self._start_message(message_id)
        if content.type == "image" and content.data:
            self._images.append(ImageContent(content.mime_type or "image/png", content.data))
            return
        text = content_text(content)
        self._add(TextContent, text)
        self._emit(TextDelta(self._id, text))

    def add_thought(self, content: ContentBlock, message_id: str | None) -> None:
        """Add a part of the reasoning. A different message id starts a new message."""
        self._start_message(message_id)
        text = content_text(content)
        self._add(ThoughtPart, text)
        self._emit(ThoughtDelta(self._id, text))

    def finish(self, call: ToolCall | None = None, *, truncated: bool = False) -> None:
        """Emit the complete message, with the call that follows it, or marked as truncated if it was interrupted."""
        if not self._parts and not self._images:
            return
        parts: list[MessagePart] = [kind("".join(texts)) for kind, texts in self._parts]
        parts += [CallPart(call)] if call else []
        self._emit(MessageDone(Message(self._id, (*parts, *self._images), truncated=truncated)))
        self._parts, self._images, self._agent_message_id = [], [], None

    @property
    def _id(self) -> str:
        return f"said-{self._id_token}-{self._count}"

    def _start_message(self, message_id: str | None) -> None:
        if self._agent_message_id is not None and message_id is not None and message_id != self._agent_message_id:
            self.finish()
        if not self._parts and not self._images:
            self._count += 1
        self._agent_message_id = message_id or self._agent_message_id

    def _add(self, kind: type[TextContent] | type[ThoughtPart], text: str) -> None:
        if not self._parts or self._parts[-1][0] is not kind:
            self._parts.append((kind, []))
        self._parts[-1][1].append(text)
