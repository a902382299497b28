"""A whole message of the model: the parts text, thought and call; results are events of their own."""

import msgspec

from ostler.core.prompt import ImageContent, TextContent
from ostler.core.tools import ToolCall


class ThoughtPart(msgspec.Struct, frozen=True, tag="thought", omit_defaults=True):
    """Reasoning, kept apart from the answer; `seal` is what an API wants back with it, untouched."""

    text: str
    signature: str = msgspec.field(name="seal", default="")


class CallPart(msgspec.Struct, frozen=True, tag="call"):
    """A call the model made at this place of its message."""

    call: ToolCall


MessagePart = TextContent | ThoughtPart | CallPart | ImageContent


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the model said in one step, or a piece of it. `cut` says that the stream broke off.

    A reply whose calls start while it goes on is kept in pieces; `continues` says that the message before is the same
    reply's, so that to the model both are one.
    """

    id: str
    parts: tuple[MessagePart, ...]
    model: str = ""
    truncated: bool = msgspec.field(name="cut", default=False)
    continues: bool = False

    @property
    def text(self) -> str:
        """The answer's words alone."""
        return "".join(part.text for part in self.parts if isinstance(part, TextContent))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls, in order."""
        return tuple(part.call for part in self.parts if isinstance(part, CallPart))

    @property
    def is_intermediate(self) -> bool:
        """Whether its reply has calls, in it or before it: then its words are no answer yet."""
        return self.continues or bool(self.calls)
