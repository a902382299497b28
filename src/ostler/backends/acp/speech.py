"""Puts an agent's chunks together: deltas while they come, a whole message when something else begins."""

import os
from collections.abc import Callable

from ostler.backends.acp.showing import words
from ostler.vocabulary.events import Event, MessageDone, TextDelta, ThoughtDelta
from ostler.vocabulary.message import Message, Part, Thought
from ostler.vocabulary.prompt import Image
from ostler.vocabulary.prompt import Text as TextPart
from ostler.wire.acp import Content


class Speech:
    """The message that is being said, if one is."""

    def __init__(self, emit: Callable[[Event], None]) -> None:
        self._emit = emit
        self._origin = os.urandom(4).hex()  # ids must be new in a journal that other processes wrote before
        self._count = 0
        self._theirs: str | None = None
        self._parts: list[tuple[type[TextPart] | type[Thought], list[str]]] = []
        self._images: list[Image] = []

    def text(self, content: Content, message_id: str | None) -> None:
        """More of the answer."""
        self._begin(message_id)
        if content.type == "image" and content.data:
            self._images.append(Image(content.mime_type or "image/png", content.data))
            return
        said = words(content)
        self._add(TextPart, said)
        self._emit(TextDelta(self._id, said))

    def thought(self, content: Content, message_id: str | None) -> None:
        """More of the reasoning; an agent's own id for it is that of another message than the answer's."""
        self._begin(message_id)
        said = words(content)
        self._add(Thought, said)
        self._emit(ThoughtDelta(self._id, said))

    def finish(self, *, cut: bool = False) -> None:
        """The message is whole, or broke off."""
        if not self._parts and not self._images:
            return
        parts: list[Part] = [kind("".join(pieces)) for kind, pieces in self._parts]
        self._emit(MessageDone(Message(self._id, (*parts, *self._images), cut=cut)))
        self._parts, self._images, self._theirs = [], [], None

    @property
    def _id(self) -> str:
        return f"said-{self._origin}-{self._count}"

    def _begin(self, message_id: str | None) -> None:
        if self._theirs is not None and message_id is not None and message_id != self._theirs:
            self.finish()
        if not self._parts and not self._images:
            self._count += 1
        self._theirs = message_id or self._theirs

    def _add(self, kind: type[TextPart] | type[Thought], text: str) -> None:
        if not self._parts or self._parts[-1][0] is not kind:
            self._parts.append((kind, []))
        self._parts[-1][1].append(text)
