"""A model whose replies get no longer than what the budget has left, and whose requests fit whoever is to answer."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

import msgspec

from ostler.backends.engine.measure import byte_size
from ostler.models.over import Over
from ostler.models.words import CallChunk, Chunk, Finished, Handed, ModelClient, Request, TextChunk, ThoughtChunk, Usage


class Room(msgspec.Struct, frozen=True):
    """What is left for a reply. `tokens` is what the server is told, where it would not stop earlier by itself.

    `bytes` are about as much of the reply, for a server that does not stop.
    """

    bytes: int
    tokens: int | None = None


Told = Callable[[int], None]


class Bounded(Over):
    """Unbound, it passes everything. `cut` tells whether the last reply was ended by its room."""

    def __init__(self, model: ModelClient, handed: Callable[[], Awaitable[None]]) -> None:
        """`handed` raises where the request does not fit another model that is about to get it."""
        super().__init__(model)
        self.cut = False
        self._handed = handed
        self._room: Room | None = None
        self._told: Told = lambda size: None

    def bind(self, room: Room | None, told: Told) -> None:
        """For the calls that follow; `told` hears how many bytes a reply had as soon as it is over."""
        self._room, self._told, self.cut = room, told, False

    async def stream(self, request: Request) -> AsyncIterator[Chunk]:
        chunks, size, counted, whole = self._client.stream(self._within(request)), 0, 0, False
        try:
            async for chunk in chunks:
                size += _size(chunk)
                if isinstance(chunk, Usage):
                    counted = chunk.tokens_out
                elif isinstance(chunk, Finished):
                    whole = True
                    self.cut = chunk.reason == "length" and self._filled(size, counted)
                yield chunk
                if isinstance(chunk, Handed):
                    await self._handed()
        finally:
            if isinstance(chunks, AsyncGenerator):
                await chunks.aclose()
            if size or whole:
                self._told(size)

    def _within(self, request: Request) -> Request:
        room = self._room
        if room is None:
            return request
        tokens = [most for most in (request.max_tokens, room.tokens) if most is not None]
        return msgspec.structs.replace(request, max_tokens=min(tokens, default=None), most_bytes=room.bytes)

    def _filled(self, size: int, counted: int) -> bool:
        """A model has a longest reply of its own, which may come first; no estimate is wrong by half."""
        room = self._room
        return room is not None and (size * 2 >= room.bytes or bool(room.tokens and counted * 2 >= room.tokens))


def _size(chunk: Chunk) -> int:
    if isinstance(chunk, TextChunk | ThoughtChunk):
        return byte_size(chunk.text)
    return byte_size(chunk.tool) + byte_size(chunk.arguments) if isinstance(chunk, CallChunk) else 0
