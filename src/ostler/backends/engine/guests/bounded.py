"""A model whose replies get no longer than what the budget has left, and whose requests fit whoever is to answer."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

import msgspec

from ostler.backends.engine.measure import byte_size
from ostler.models.over import Over
from ostler.models.words import CallChunk, Chunk, Finished, Handed, ModelClient, Request, TextChunk, ThoughtChunk, Usage
from ostler.vocabulary.errors import BackendError


class Room(msgspec.Struct, frozen=True):
    """What is left for a reply. `tokens` is what the server is told, where it would not stop earlier by itself.

    `bytes` are about as much of the reply, for a server that does not stop.
    """

    bytes: int
    tokens: int | None = None


Told = Callable[[int], None]

# A reply that nobody has begun, for which room must be made anew.
ANEW = "room_anew"


class Bounded(Over):
    """Unbound, it passes everything. `cut` tells whether the last reply was ended by its room."""

    def __init__(self, model: ModelClient, handed: Callable[[], Awaitable[None]]) -> None:
        """`handed` raises where the request does not fit another model that is about to get it."""
        super().__init__(model)
        self.cut = False
        self._handed = handed
        self._room: Room | None = None
        self._limited = False
        self._told: Told = lambda size: None

    def bind(self, room: Room | None, told: Told, *, limited: bool) -> None:
        """For the calls that follow; `told` hears how many bytes a reply had as soon as it is over.

        `limited`: there is a limit, also where it leaves room for any reply of this model.
        """
        self._room, self._told, self._limited, self.cut = room, told, limited, False

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
                    self._make_room()
        finally:
            if isinstance(chunks, AsyncGenerator):
                await chunks.aclose()
            if size or whole:
                self._told(size)

    def _make_room(self) -> None:
        """Another model is about to answer, whose tokens may cost more: what is left is worth another reply."""
        if self._limited:
            raise BackendError(f"what is left for {self.name} is to be counted anew", code=ANEW)

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
