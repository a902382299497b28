"""A whole message of the model: the parts text, thought and call; results are events of their own."""

import msgspec

from ostler.vocabulary.prompt import Image
from ostler.vocabulary.prompt import Text as TextPart
from ostler.vocabulary.tools import ToolCall


class Thought(msgspec.Struct, frozen=True, tag="thought", omit_defaults=True):
    """Reasoning, kept apart from the answer; `seal` is what an API wants back with it, untouched."""

    text: str
    seal: str = ""


class Called(msgspec.Struct, frozen=True, tag="call"):
    """A call the model made at this place of its message."""

    call: ToolCall


Part = TextPart | Thought | Called | Image


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the model said in one step, or a piece of it. `cut` says that the stream broke off.

    A reply whose calls start while it goes on is kept in pieces; `continues` says that the message before is the same
    reply's, so that to the model both are one.
    """

    id: str
    parts: tuple[Part, ...]
    model: str = ""
    cut: bool = False
    continues: bool = False

    @property
    def text(self) -> str:
        """The answer's words alone."""
        return "".join(part.text for part in self.parts if isinstance(part, TextPart))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls, in order."""
        return tuple(part.call for part in self.parts if isinstance(part, Called))

    @property
    def has_more_to_do(self) -> bool:
        """Whether its reply has calls, in it or before it: then its words are no answer yet."""
        return self.continues or bool(self.calls)
