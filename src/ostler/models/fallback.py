"""Goes on with another profile's model where one cannot answer, while nothing was said that would be said twice."""

import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, suppress

import msgspec

from ostler.models.failures import REPEATABLE
from ostler.models.terms import Price
from ostler.models.words import CallChunk, Chunk, Handed, ModelClient, Request, TextChunk
from ostler.vocabulary.errors import BackendError, OstlerError
from ostler.vocabulary.tools import ToolSpec

# A profile that failed is left alone for so long: asking it before every step would cost its retries each time.
REST_SECONDS = 300.0

_OTHERS_MAY_HELP = REPEATABLE | {"quota"}
_log = logging.getLogger("ostler.models")


class Standby(msgspec.Struct, frozen=True):
    """A profile by name, and how its client is made; nobody makes it before it is needed."""

    name: str
    make: Callable[[], ModelClient]


class WithFallback:
    """A `ModelClient` over several: the first that is not resting answers, and its name and window are this one's."""

    def __init__(
        self,
        first: ModelClient,
        others: Sequence[Standby],
        *,
        name: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`name` is the first one's profile."""
        self._clients: list[ModelClient | None] = [first, *(None for _ in others)]
        self._others = others
        self._names = [name or first.name, *(other.name for other in others)]
        self._clock = clock
        self._rests_until: dict[int, float] = {}
        self._at = 0

    @property
    def name(self) -> str:
        """The id of the model that answered last."""
        return self._client(self._at).name

    @property
    def context_limit(self) -> int:
        """The window of the model that answered last."""
        return self._client(self._at).context_limit

    @property
    def price(self) -> Price | None:
        """What tokens of the model that answered last cost."""
        return getattr(self._client(self._at), "price", None)

    @property
    def longest_reply(self) -> int | None:
        """The most tokens that a reply of the model that answered last may have, where that is set."""
        return getattr(self._client(self._at), "longest_reply", None)

    async def learned(self) -> None:
        """Wait a little for the window of the model that answers next, where it was asked for."""
        self._at = self._first_awake()
        if wait := getattr(self._client(self._at), "learned", None):
            await wait()

    def guide_size(self, tools: Sequence[ToolSpec]) -> int | None:
        """The bytes in which its dialect tells of tools."""
        measure = getattr(self._client(self._at), "guide_size", None)
        return measure(tools) if measure else None

    async def stream(self, request: Request) -> AsyncIterator[Chunk]:
        """One reply; a `Handed` tells before each change who begins it, anew or again.

        Whoever stops listening then and asks again is answered by that one.
        """
        if (first := self._first_awake()) != self._at:
            yield self._hand_to(first, "a profile that failed is tried again")
        while True:
            spoken = False
            try:
                async with aclosing(_generator(self._client(self._at), request)) as chunks:
                    async for chunk in chunks:
                        spoken = spoken or isinstance(chunk, TextChunk | CallChunk)
                        yield chunk
                return
            except BackendError as error:
                if spoken or error.fault.code not in _OTHERS_MAY_HELP:
                    raise
                self._rests_until[self._at] = self._clock() + REST_SECONDS
                if self._at + 1 == len(self._clients):
                    raise
                reason = error.fault.message
            yield self._hand_to(self._at + 1, reason)

    def _hand_to(self, at: int, reason: str) -> Handed:
        self._at = at
        self._rests_until.pop(at, None)
        _log.warning("%s; going on with the profile %s", reason, self._names[at])
        return Handed(self._names[at], self.name, reason)

    async def aclose(self) -> None:
        """End all connections."""
        for client in self._clients:
            if client is not None:
                with suppress(OstlerError):
                    await client.aclose()

    def _first_awake(self) -> int:
        """The first profile that did not fail lately, or the first of all when every one did."""
        now = self._clock()
        return next((at for at in range(len(self._clients)) if self._rests_until.get(at, now) <= now), 0)

    def _client(self, at: int) -> ModelClient:
        client = self._clients[at]
        if client is None:
            client = self._clients[at] = self._others[at - 1].make()
        return client


async def _generator(client: ModelClient, request: Request) -> AsyncGenerator[Chunk, None]:
    """The client's reply; closing it closes what is below."""
    chunks = client.stream(request)
    try:
        async for chunk in chunks:
            yield chunk
    finally:
        close = getattr(chunks, "aclose", None)
        if close is not None:
            await close()
