"""Helpers for model tests: a request, and functions to inspect a reply."""

from ostler.core.prompt import TextContent
from ostler.core.tools import ToolSpec
from ostler.models.model_types import ModelRequest, TextChunk, ThoughtChunk, UserMessage

READ = ToolSpec("read", "read", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
BASH = ToolSpec("bash", "execute", "Run a command.", {"type": "object", "properties": {"command": {"type": "string"}}})


def make_request(text="hi", *, history=None, **values):
    return ModelRequest("be brief", history or (UserMessage((TextContent(text),)),), (READ, BASH), **values)


async def collect(client, request=None, into=None):
    """Return all chunks of one reply and close the client."""
    chunks = [] if into is None else into
    try:
        async for chunk in client.stream(request or make_request()):
            chunks.append(chunk)
    finally:
        await client.aclose()
    return chunks


def text_of(chunks):
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk))


def thoughts_of(chunks):
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, ThoughtChunk))


def of_type(chunks, kind):
    return [chunk for chunk in chunks if isinstance(chunk, kind)]
