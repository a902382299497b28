"""A prompt as an agent takes it: blocks it cannot take become ones it can."""

from ostler.vocabulary.prompt import Block, Image, Link, Prompt, Resource, Text
from ostler.wire.acp import Content, ResourceContents, text_content
from ostler.wire.acp_calls import Initialized


def blocks(prompt: Prompt, told: Initialized) -> tuple[Content, ...]:
    """Every block; text and links go to any agent."""
    return tuple(_content(block, told) for block in prompt.blocks)


def _content(block: Block, told: Initialized) -> Content:
    takes = told.agent_capabilities.prompt_capabilities
    match block:
        case Text(text):
            return text_content(text)
        case Image(mime, data, name):
            if not takes.image:
                return text_content(f"[an image that this agent cannot see: {name or mime}]")
            return Content("image", data=data, mime_type=mime)
        case Resource(uri, text, mime):
            if not takes.embedded_context:
                return text_content(f"{uri}:\n{text}")
            return Content("resource", resource=ResourceContents(uri, text, mime_type=mime or None))
        case Link(uri, name, mime):
            return Content("resource_link", uri=uri, name=name or uri, mime_type=mime or None)
