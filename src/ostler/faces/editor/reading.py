"""What an editor says in a prompt, in our words."""

from collections.abc import Sequence

from ostler.vocabulary.prompt import Block, Image, Link, Resource, Text
from ostler.wire.acp import Content
from ostler.wire.jsonrpc import INVALID_PARAMS, RpcError


def blocks_of(prompt: Sequence[Content]) -> list[Block]:
    """Each block as ours; what was not offered to be taken is refused."""
    blocks = [_block(content) for content in prompt]
    if not any(not isinstance(block, Text) or block.text.strip() for block in blocks):
        raise RpcError(INVALID_PARAMS, "the prompt is empty")
    return blocks


def words_of(blocks: Sequence[Block]) -> str:
    """The words alone, as they were typed around everything else."""
    return "".join(block.text for block in blocks if isinstance(block, Text)).strip()


def _block(content: Content) -> Block:
    match content.type:
        case "text":
            return Text(content.text or "")
        case "image" if content.data:
            return Image(content.mime_type or "image/png", content.data, content.uri or "")
        case "resource_link" if content.uri:
            return Link(content.uri, content.name or "", content.mime_type or "")
        case "resource" if content.resource:
            return _resource(content)
        case _:
            raise RpcError(INVALID_PARAMS, f"a prompt cannot hold {content.type or 'this'} here")


def _resource(content: Content) -> Block:
    found = content.resource
    assert found is not None
    mime = found.mime_type or ""
    if found.text is not None:
        return Resource(found.uri, found.text, mime)
    if found.blob is not None and mime.startswith("image/"):
        return Image(mime, found.blob, found.uri)
    return Link(found.uri, mime=mime)
