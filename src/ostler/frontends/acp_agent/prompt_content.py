"""Converts ACP prompt content to prompt blocks."""

from collections.abc import Sequence

from ostler.core.prompt import EmbeddedResource, ImageContent, PromptContent, ResourceLink, TextContent
from ostler.wire.acp import ContentBlock
from ostler.wire.jsonrpc import INVALID_PARAMS, RpcError


def convert_prompt(prompt: Sequence[ContentBlock]) -> list[PromptContent]:
    """Convert the blocks of a prompt. Raises `RpcError` for an empty prompt or unsupported content."""
    blocks = [_convert_block(content) for content in prompt]
    if not any(not isinstance(block, TextContent) or block.text.strip() for block in blocks):
        raise RpcError(INVALID_PARAMS, "the prompt is empty")
    return blocks


def prompt_text(blocks: Sequence[PromptContent], separator: str = "") -> str:
    """Return only the text of a prompt."""
    return separator.join(block.text for block in blocks if isinstance(block, TextContent)).strip()


def starts_with_command(blocks: Sequence[PromptContent]) -> bool:
    """Return whether the first text block begins like a slash command."""
    first = next((block.text for block in blocks if isinstance(block, TextContent)), "")
    return first.lstrip().startswith("/")


def later_text(blocks: Sequence[PromptContent]) -> str:
    """Return the text after the first text block, which the user did not type."""
    return "\n".join([block.text for block in blocks if isinstance(block, TextContent)][1:])


def _convert_block(content: ContentBlock) -> PromptContent:
    match content.type:
        case "text":
            return TextContent(content.text or "")
        case "image" if content.data:
            return ImageContent(content.mime_type or "image/png", content.data, content.uri or "")
        case "resource_link" if content.uri:
            return ResourceLink(content.uri, content.name or "", content.mime_type or "")
        case "resource" if content.resource:
            return _convert_resource(content)
        case _:
            raise RpcError(INVALID_PARAMS, f"{content.type or 'this'} content is not supported in prompts")


def _convert_resource(content: ContentBlock) -> PromptContent:
    resource = content.resource
    assert resource is not None
    mime = resource.mime_type or ""
    if resource.text is not None:
        return EmbeddedResource(resource.uri, resource.text, mime)
    if resource.blob is not None and mime.startswith("image/"):
        return ImageContent(mime, resource.blob, resource.uri)
    return ResourceLink(resource.uri, mime=mime)
