"""A message of the model: text, reasoning, images and tool calls in order."""

import msgspec

from ostler.core.prompt import ImageContent, TextContent
from ostler.core.tools import ToolCall


class ThoughtPart(msgspec.Struct, frozen=True, tag="thought", omit_defaults=True):
    """Reasoning, separate from the answer. An API that signs it expects `signature` back unchanged."""

    text: str
    signature: str = msgspec.field(name="seal", default="")


class CallPart(msgspec.Struct, frozen=True, tag="call"):
    """A tool call at this position of the message."""

    call: ToolCall


MessagePart = TextContent | ThoughtPart | CallPart | ImageContent


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """A reply of the model, or a part of one. `truncated` means that the stream broke off.

    A reply whose calls start while it is still streaming is saved as several messages. `continues` marks a message that
    belongs to the same reply as the one before it; they are sent back to the model as one.
    """

    id: str
    parts: tuple[MessagePart, ...]
    model: str = ""
    truncated: bool = msgspec.field(name="cut", default=False)
    continues: bool = False

    @property
    def text(self) -> str:
        """The text parts, joined."""
        return "".join(part.text for part in self.parts if isinstance(part, TextContent))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls, in order."""
        return tuple(part.call for part in self.parts if isinstance(part, CallPart))

    @property
    def is_intermediate(self) -> bool:
        """Whether the reply has tool calls up to here; then the text is not the final answer."""
        return self.continues or bool(self.calls)
