"""A model whose replies get no longer than what the budget has left, and whose requests fit whoever is to answer."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

import msgspec

from ostler.backends.engine.token_estimate import byte_size
from ostler.core.errors import BackendError
from ostler.models.client_wrapper import ModelClientWrapper
from ostler.models.model_types import (
    CallChunk,
    FallbackStarted,
    ModelClient,
    ModelRequest,
    ReplyChunk,
    ReplyFinished,
    TextChunk,
    ThoughtChunk,
    Usage,
)


class ReplyLimit(msgspec.Struct, frozen=True):
    """What is left for a reply. `tokens` is what the server is told, where it would not stop earlier by itself.

    `bytes` are about as much of the reply, for a server that does not stop.
    """

    bytes: int
    tokens: int | None = None


OnReplySize = Callable[[int], None]

# A reply that nobody has begun, for which room must be made anew.
RECOUNT = "room_anew"


class ReplyLimitedModel(ModelClientWrapper):
    """Unbound, it passes everything. `cut` tells whether the last reply was ended by its room."""

    def __init__(self, model: ModelClient, check_fallback: Callable[[], Awaitable[None]]) -> None:
        """`handed` raises where the request does not fit another model that is about to get it."""
        super().__init__(model)
        self.hit_limit = False
        self._check_fallback = check_fallback
        self._limit: ReplyLimit | None = None
        self._is_limited = False
        self._on_size: OnReplySize = lambda size: None

    def set_limit(self, limit: ReplyLimit | None, on_size: OnReplySize, *, is_limited: bool) -> None:
        """For the calls that follow; `told` hears how many bytes a reply had as soon as it is over.

        `limited`: there is a limit, also where it leaves room for any reply of this model.
        """
        self._limit, self._on_size, self._is_limited, self.hit_limit = limit, on_size, is_limited, False

    async def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        chunks, size, counted, whole = self._client.stream(self._with_limit(request)), 0, 0, False
        try:
            async for chunk in chunks:
                size += _chunk_size(chunk)
                if isinstance(chunk, Usage):
                    counted = chunk.tokens_out
                elif isinstance(chunk, ReplyFinished):
                    whole = True
                    self.hit_limit = chunk.reason == "length" and self._reached_limit(size, counted)
                yield chunk
                if isinstance(chunk, FallbackStarted):
                    await self._check_fallback()
                    self._require_recount()
        finally:
            if isinstance(chunks, AsyncGenerator):
                await chunks.aclose()
            if size or whole:
                self._on_size(size)

    def _require_recount(self) -> None:
        """Another model is about to answer, whose tokens may cost more: what is left is worth another reply."""
        if self._is_limited:
            raise BackendError(f"what is left for {self.name} is to be counted anew", code=RECOUNT)

    def _with_limit(self, request: ModelRequest) -> ModelRequest:
        room = self._limit
        if room is None:
            return request
        tokens = [most for most in (request.max_tokens, room.tokens) if most is not None]
        return msgspec.structs.replace(request, max_tokens=min(tokens, default=None), max_bytes=room.bytes)

    def _reached_limit(self, size: int, counted: int) -> bool:
        """A model has a longest reply of its own, which may come first; no estimate is wrong by half."""
        room = self._limit
        return room is not None and (size * 2 >= room.bytes or bool(room.tokens and counted * 2 >= room.tokens))


def _chunk_size(chunk: ReplyChunk) -> int:
    if isinstance(chunk, TextChunk | ThoughtChunk):
        return byte_size(chunk.text)
    return byte_size(chunk.tool) + byte_size(chunk.arguments) if isinstance(chunk, CallChunk) else 0
