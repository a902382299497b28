"""Model wrapper that limits the length of replies to the remaining budget."""

from collections.abc import AsyncGenerator, Awaitable, Callable

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
    """The limit of a reply. `tokens` is sent to the server, if the model could exceed it.

    `bytes` is the same limit in bytes, for servers that ignore `tokens`.
    """

    bytes: int
    tokens: int | None = None


OnReplySize = Callable[[int], None]

# Error code: a fallback model takes over, so the budget must be reserved again.
RECOUNT = "room_anew"


class ReplyLimitedModel(ModelClientWrapper):
    """Without a limit, passes everything through. `hit_limit` tells whether the limit ended the last reply."""

    def __init__(self, model: ModelClient, check_fallback: Callable[[], Awaitable[None]]) -> None:
        """`check_fallback` raises if the request does not fit the fallback model that takes over."""
        super().__init__(model)
        self.hit_limit = False
        self._check_fallback = check_fallback
        self._limit: ReplyLimit | None = None
        self._is_limited = False
        self._on_size: OnReplySize = lambda size: None

    def set_limit(self, limit: ReplyLimit | None, on_size: OnReplySize, *, is_limited: bool) -> None:
        """Set the limit for the following calls; `on_size` is called with a reply's size in bytes when it ends.

        `is_limited` tells whether there is a budget, even if it does not restrict this model's replies.
        """
        self._limit, self._on_size, self._is_limited, self.hit_limit = limit, on_size, is_limited, False

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ReplyChunk, None]:
        chunks, size, counted, complete = self._client.stream(self._with_limit(request)), 0, 0, False
        try:
            async for chunk in chunks:
                size += _chunk_size(chunk)
                if isinstance(chunk, Usage):
                    counted = chunk.tokens_out
                elif isinstance(chunk, ReplyFinished):
                    complete = True
                    self.hit_limit = chunk.reason == "length" and self._reached_limit(size, counted)
                yield chunk
                if isinstance(chunk, FallbackStarted):
                    await self._check_fallback()
                    self._require_recount()
        finally:
            await chunks.aclose()
            if size or complete:
                self._on_size(size)

    def _require_recount(self) -> None:
        """Raise an error so that the budget is reserved again: the fallback model may have another price."""
        if self._is_limited:
            raise BackendError(f"the remaining budget must be recomputed for {self.name}", code=RECOUNT)

    def _with_limit(self, request: ModelRequest) -> ModelRequest:
        limit = self._limit
        if limit is None:
            return request
        tokens = [count for count in (request.max_tokens, limit.tokens) if count is not None]
        return msgspec.structs.replace(request, max_tokens=min(tokens, default=None), max_bytes=limit.bytes)

    def _reached_limit(self, size: int, counted: int) -> bool:
        """Return whether our limit ended the reply (at least half of it was used), not the model's own maximum."""
        limit = self._limit
        return limit is not None and (size * 2 >= limit.bytes or bool(limit.tokens and counted * 2 >= limit.tokens))


def _chunk_size(chunk: ReplyChunk) -> int:
    if isinstance(chunk, TextChunk | ThoughtChunk):
        return byte_size(chunk.text)
    return byte_size(chunk.tool) + byte_size(chunk.arguments) if isinstance(chunk, CallChunk) else 0
