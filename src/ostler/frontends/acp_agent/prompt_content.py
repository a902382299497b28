"""What an editor says in a prompt, in our words."""

from collections.abc import Sequence

from ostler.core.prompt import EmbeddedResource, ImageContent, PromptContent, ResourceLink, TextContent
from ostler.wire.acp import ContentBlock
from ostler.wire.jsonrpc import INVALID_PARAMS, RpcError


def convert_prompt(prompt: Sequence[ContentBlock]) -> list[PromptContent]:
    """Each block as ours; what was not offered to be taken is refused."""
    blocks = [_convert_block(content) for content in prompt]
    if not any(not isinstance(block, TextContent) or block.text.strip() for block in blocks):
        raise RpcError(INVALID_PARAMS, "the prompt is empty")
    return blocks


def prompt_text(blocks: Sequence[PromptContent]) -> str:
    """The words alone, as they were typed around everything else."""
    return "".join(block.text for block in blocks if isinstance(block, TextContent)).strip()


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
            raise RpcError(INVALID_PARAMS, f"a prompt cannot hold {content.type or 'this'} here")


def _convert_resource(content: ContentBlock) -> PromptContent:
    found = content.resource
    assert found is not None
    mime = found.mime_type or ""
    if found.text is not None:
        return EmbeddedResource(found.uri, found.text, mime)
    if found.blob is not None and mime.startswith("image/"):
        return ImageContent(mime, found.blob, found.uri)
    return ResourceLink(found.uri, mime=mime)
