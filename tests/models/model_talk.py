"""What the tests of this room share: a request, and ways to look at a reply."""

from ostler.core.prompt import TextContent
from ostler.core.tools import ToolSpec
from ostler.models.model_types import ModelRequest, TextChunk, ThoughtChunk, UserMessage

READ = ToolSpec("read", "read", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
BASH = ToolSpec("bash", "execute", "Run a command.", {"type": "object", "properties": {"command": {"type": "string"}}})


def ask(text="hi", *, history=None, **values):
    return ModelRequest("be brief", history or (UserMessage((TextContent(text),)),), (READ, BASH), **values)


async def collect(client, request=None, into=None):
    """All chunks of one reply; the client is closed."""
    chunks = [] if into is None else into
    try:
        async for chunk in client.stream(request or ask()):
            chunks.append(chunk)
    finally:
        await client.aclose()
    return chunks


def words(chunks):
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk))


def thoughts(chunks):
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, ThoughtChunk))


def only(chunks, kind):
    return [chunk for chunk in chunks if isinstance(chunk, kind)]
