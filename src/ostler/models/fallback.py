"""Goes on with another profile's model where one cannot answer, while nothing was said that would be said twice."""

import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, suppress

import msgspec

from ostler.core.errors import BackendError, OstlerError
from ostler.core.tools import ToolSpec
from ostler.models.model_errors import RETRYABLE_CODES
from ostler.models.model_settings import TokenPrice
from ostler.models.model_types import CallChunk, FallbackStarted, ModelClient, ModelRequest, ReplyChunk, TextChunk

# A profile that failed is left alone for so long: asking it before every step would cost its retries each time.
COOLDOWN_SECONDS = 300.0

_FALLBACK_CODES = RETRYABLE_CODES | {"quota"}
_log = logging.getLogger("ostler.models")


class FallbackProfile(msgspec.Struct, frozen=True):
    """A profile by name, and how its client is made; nobody makes it before it is needed."""

    name: str
    make: Callable[[], ModelClient]


class FallbackModel:
    """A `ModelClient` over several: the first that is not resting answers, and its name and window are this one's."""

    def __init__(
        self,
        primary: ModelClient,
        fallbacks: Sequence[FallbackProfile],
        *,
        name: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`name` is the first one's profile."""
        self._clients: list[ModelClient | None] = [primary, *(None for _ in fallbacks)]
        self._fallbacks = fallbacks
        self._profile_names = [name or primary.name, *(other.name for other in fallbacks)]
        self._clock = clock
        self._cooldown_until: dict[int, float] = {}
        self._current = 0

    @property
    def name(self) -> str:
        """The id of the model that answered last."""
        return self._get_client(self._current).name

    @property
    def context_limit(self) -> int:
        """The window of the model that answered last."""
        return self._get_client(self._current).context_limit

    @property
    def price(self) -> TokenPrice | None:
        """What tokens of the model that answered last cost."""
        return getattr(self._get_client(self._current), "price", None)

    @property
    def max_reply_tokens(self) -> int | None:
        """The most tokens that a reply of the model that answered last may have, where that is set."""
        return getattr(self._get_client(self._current), "max_reply_tokens", None)

    async def wait_for_window(self) -> None:
        """Wait a little for the window of the model that answers next, where it was asked for."""
        self._current = self._first_available()
        if wait := getattr(self._get_client(self._current), "wait_for_window", None):
            await wait()

    def guide_size(self, tools: Sequence[ToolSpec]) -> int | None:
        """The bytes in which its dialect tells of tools."""
        measure = getattr(self._get_client(self._current), "guide_size", None)
        return measure(tools) if measure else None

    async def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        """One reply; a `Handed` tells before each change who begins it, anew or again.

        Whoever stops listening then and asks again is answered by that one.
        """
        if (first := self._first_available()) != self._current:
            yield self._switch_to(first, "a profile that failed is tried again")
        while True:
            spoken = False
            try:
                async with aclosing(_closing_stream(self._get_client(self._current), request)) as chunks:
                    async for chunk in chunks:
                        spoken = spoken or isinstance(chunk, TextChunk | CallChunk)
                        yield chunk
                return
            except BackendError as error:
                if spoken or error.fault.code not in _FALLBACK_CODES:
                    raise
                self._cooldown_until[self._current] = self._clock() + COOLDOWN_SECONDS
                if self._current + 1 == len(self._clients):
                    raise
                reason = error.fault.message
            yield self._switch_to(self._current + 1, reason)

    def _switch_to(self, index: int, reason: str) -> FallbackStarted:
        self._current = index
        self._cooldown_until.pop(index, None)
        _log.warning("%s; going on with the profile %s", reason, self._profile_names[index])
        return FallbackStarted(self._profile_names[index], self.name, reason)

    async def aclose(self) -> None:
        """End all connections."""
        for client in self._clients:
            if client is not None:
                with suppress(OstlerError):
                    await client.aclose()

    def _first_available(self) -> int:
        """The first profile that did not fail lately, or the first of all when every one did."""
        now = self._clock()
        return next((at for at in range(len(self._clients)) if self._cooldown_until.get(at, now) <= now), 0)

    def _get_client(self, index: int) -> ModelClient:
        client = self._clients[index]
        if client is None:
            client = self._clients[index] = self._fallbacks[index - 1].make()
        return client


async def _closing_stream(client: ModelClient, request: ModelRequest) -> AsyncGenerator[ReplyChunk, None]:
    """The client's reply; closing it closes what is below."""
    chunks = client.stream(request)
    try:
        async for chunk in chunks:
            yield chunk
    finally:
        close = getattr(chunks, "aclose", None)
        if close is not None:
            await close()
