"""What the tests of this room share: a request, and ways to look at a reply."""

from ostler.models.words import Request, TextChunk, ThoughtChunk, UserSaid
from ostler.vocabulary.prompt import Text
from ostler.vocabulary.tools import ToolSpec

READ = ToolSpec("read", "read", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
BASH = ToolSpec("bash", "execute", "Run a command.", {"type": "object", "properties": {"command": {"type": "string"}}})


def ask(text="hi", *, history=None, **values):
    return Request("be brief", history or (UserSaid((Text(text),)),), (READ, BASH), **values)


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
