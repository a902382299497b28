"""A prompt as an agent takes it: blocks it cannot take become ones it can."""

from ostler.core.prompt import EmbeddedResource, ImageContent, Prompt, PromptContent, ResourceLink, TextContent
from ostler.wire.acp import ContentBlock, ResourceContents, text_content
from ostler.wire.acp_requests import InitializeResponse


def to_content_blocks(prompt: Prompt, agent_info: InitializeResponse) -> tuple[ContentBlock, ...]:
    """Every block; text and links go to any agent."""
    return tuple(_to_content_block(block, agent_info) for block in prompt.blocks)


def _to_content_block(block: PromptContent, agent_info: InitializeResponse) -> ContentBlock:
    takes = agent_info.agent_capabilities.prompt_capabilities
    match block:
        case TextContent(text):
            return text_content(text)
        case ImageContent(mime, data, name):
            if not takes.image:
                return text_content(f"[an image that this agent cannot see: {name or mime}]")
            return ContentBlock("image", data=data, mime_type=mime)
        case EmbeddedResource(uri, text, mime):
            if not takes.embedded_context:
                return text_content(f"{uri}:\n{text}")
            return ContentBlock("resource", resource=ResourceContents(uri, text, mime_type=mime or None))
        case ResourceLink(uri, name, mime):
            return ContentBlock("resource_link", uri=uri, name=name or uri, mime_type=mime or None)
