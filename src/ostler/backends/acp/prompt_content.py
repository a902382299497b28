"""Converts a prompt into ACP content blocks that the agent supports."""

from ostler.core.prompt import EmbeddedResource, ImageContent, Prompt, PromptContent, ResourceLink, TextContent
from ostler.wire.acp import ContentBlock, ResourceContents, text_content
from ostler.wire.acp_requests import InitializeResponse


def to_content_blocks(prompt: Prompt, agent_info: InitializeResponse) -> tuple[ContentBlock, ...]:
    """Convert all blocks; unsupported ones become text."""
    return tuple(_to_content_block(block, agent_info) for block in prompt.blocks)


def _to_content_block(block: PromptContent, agent_info: InitializeResponse) -> ContentBlock:
    supported = agent_info.agent_capabilities.prompt_capabilities
    match block:
        case TextContent(text):
            return text_content(text)
        case ImageContent(mime, data, name):
            if not supported.image:
                return text_content(f"[image omitted, not supported by this agent: {name or mime}]")
            return ContentBlock("image", data=data, mime_type=mime)
        case EmbeddedResource(uri, text, mime):
            if not supported.embedded_context:
                return text_content(f"{uri}:\n{text}")
            return ContentBlock("resource", resource=ResourceContents(uri, text, mime_type=mime or None))
        case ResourceLink(uri, name, mime):
            return ContentBlock("resource_link", uri=uri, name=name or uri, mime_type=mime or None)
