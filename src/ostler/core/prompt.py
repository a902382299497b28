"""A prompt that starts or steers a turn, and its content blocks."""

from typing import Literal

import msgspec


class TextContent(msgspec.Struct, frozen=True, tag="text"):
    """Plain text."""

    text: str


class ImageContent(msgspec.Struct, frozen=True, tag="image", omit_defaults=True):
    """An image, base64 encoded."""

    mime: str
    data: str
    name: str = ""


class EmbeddedResource(msgspec.Struct, frozen=True, tag="resource", omit_defaults=True):
    """A resource with its full text, such as a mentioned file."""

    uri: str
    text: str
    mime: str = ""


class ResourceLink(msgspec.Struct, frozen=True, tag="link", omit_defaults=True):
    """A link that is passed on without being fetched."""

    uri: str
    name: str = ""
    mime: str = ""


PromptContent = TextContent | ImageContent | EmbeddedResource | ResourceLink


class PromptTarget(msgspec.Struct, frozen=True, omit_defaults=True):
    """The agent and model for a prompt: for its turn only, or for the rest of the session with `for_session`.

    `task` is the text that a subagent works on first; the prompt itself then contains only the typed text. With
    `selects_only` the prompt contains nothing else, so the turn ends after the selection.
    """

    agent: str = ""
    model: str = ""
    for_session: bool = msgspec.field(name="lasting", default=False)
    task: str = ""
    selects_only: bool = False


class Prompt(msgspec.Struct, frozen=True, omit_defaults=True):
    """A prompt that starts or steers a turn; `who` is the name of the user who sent it, empty for the local user.

    `notes` are for the model only: what a client of a server has for it besides the prompt.
    """

    id: str
    blocks: tuple[PromptContent, ...]
    origin: Literal["person", "parent", "far_side"] = "person"
    target: PromptTarget | None = msgspec.field(name="cast", default=None)
    who: str = ""
    notes: tuple[str, ...] = ()

    @property
    def blocks_for_model(self) -> tuple[PromptContent, ...]:
        """The notes, then the blocks."""
        return (TextContent("\n\n".join(self.notes)), *self.blocks) if self.notes else self.blocks

    @property
    def text(self) -> str:
        """The text blocks, joined with newlines."""
        return "\n".join(block.text for block in self.blocks if isinstance(block, TextContent))
