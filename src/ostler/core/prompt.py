"""What a person, or whoever plays one, says to begin or steer a turn."""

from typing import Literal

import msgspec


class TextContent(msgspec.Struct, frozen=True, tag="text"):
    """Plain words."""

    text: str


class ImageContent(msgspec.Struct, frozen=True, tag="image", omit_defaults=True):
    """A picture, base64 encoded."""

    mime: str
    data: str
    name: str = ""


class EmbeddedResource(msgspec.Struct, frozen=True, tag="resource", omit_defaults=True):
    """A text brought along whole, such as a file that was mentioned."""

    uri: str
    text: str
    mime: str = ""


class ResourceLink(msgspec.Struct, frozen=True, tag="link", omit_defaults=True):
    """A pointer that is passed on and never fetched by us."""

    uri: str
    name: str = ""
    mime: str = ""


PromptContent = TextContent | ImageContent | EmbeddedResource | ResourceLink


class PromptTarget(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who works on a prompt, where it says so: for its turn alone, or from then on if `lasting`.

    `task` are words that a subagent works out first; the prompt itself is then only what was typed.
    """

    agent: str = ""
    model: str = ""
    for_session: bool = msgspec.field(name="lasting", default=False)
    task: str = ""


class Prompt(msgspec.Struct, frozen=True, omit_defaults=True):
    """One prompt: what begins a turn, or steers one."""

    id: str
    blocks: tuple[PromptContent, ...]
    origin: Literal["person", "parent", "far_side"] = "person"
    target: PromptTarget | None = msgspec.field(name="cast", default=None)

    @property
    def text(self) -> str:
        """The words alone, for titles and plain screens."""
        return "\n".join(block.text for block in self.blocks if isinstance(block, TextContent))
