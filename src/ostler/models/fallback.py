"""Model client that switches to a fallback profile when a model fails before it has answered."""

import logging
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress

import msgspec

from ostler.core.errors import BackendError, OstlerError
from ostler.models.client_wrapper import ModelClientWrapper
from ostler.models.model_errors import RETRYABLE_CODES
from ostler.models.model_types import CallChunk, FallbackStarted, ModelClient, ModelRequest, ReplyChunk, TextChunk

# A failed profile is skipped for this long: trying it before every step would cost its retries each time.
COOLDOWN_SECONDS = 300.0

_FALLBACK_CODES = RETRYABLE_CODES | {"quota"}
_log = logging.getLogger("ostler.models")


class FallbackProfile(msgspec.Struct, frozen=True):
    """A fallback profile. `make` creates its client when it is first needed."""

    name: str
    make: Callable[[], ModelClient]


class FallbackModel(ModelClientWrapper):
    """A `ModelClient` that uses the first profile not in its cooldown; its properties are that model's."""

    def __init__(
        self,
        primary: ModelClient,
        fallbacks: Sequence[FallbackProfile],
        *,
        name: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`name` is the profile of the primary client."""
        self._clients: list[ModelClient | None] = [primary, *(None for _ in fallbacks)]
        self._fallbacks = fallbacks
        self._profile_names = [name or primary.name, *(other.name for other in fallbacks)]
        self._clock = clock
        self._cooldown_until: dict[int, float] = {}
        self._current = 0

    @property
    def _client(self) -> ModelClient:  # type: ignore[override]  # the one that answered last
        return self._get_client(self._current)

    async def wait_for_window(self) -> None:
        """Wait a few seconds for the context window of the model that answers next."""
        self._current = self._first_available()
        await super().wait_for_window()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ReplyChunk, None]:
        """Stream one reply. `FallbackStarted` precedes the reply of each other profile.

        A caller that stops at `FallbackStarted` and calls `stream` again gets the reply of that profile.
        """
        if (first := self._first_available()) != self._current:
            yield self._switch_to(first, "retrying a profile that failed earlier")
        while True:
            has_output = False
            try:
                async with aclosing(self._client.stream(request)) as chunks:
                    async for chunk in chunks:
                        has_output = has_output or isinstance(chunk, TextChunk | CallChunk)
                        yield chunk
                return
            except BackendError as error:
                if has_output or error.fault.code not in _FALLBACK_CODES:
                    raise
                self._cooldown_until[self._current] = self._clock() + COOLDOWN_SECONDS
                if self._current + 1 == len(self._clients):
                    raise
                reason = error.fault.message
            yield self._switch_to(self._current + 1, reason)

    def _switch_to(self, index: int, reason: str) -> FallbackStarted:
        self._current = index
        self._cooldown_until.pop(index, None)
        _log.warning("%s; continuing with profile %s", reason, self._profile_names[index])
        return FallbackStarted(self._profile_names[index], self.name, reason)

    async def aclose(self) -> None:
        """Close all connections."""
        for client in self._clients:
            if client is not None:
                with suppress(OstlerError):
                    await client.aclose()

    def _first_available(self) -> int:
        """Return the index of the first profile that is not in its cooldown, or 0 if all are."""
        now = self._clock()
        return next((index for index in range(len(self._clients)) if self._cooldown_until.get(index, now) <= now), 0)

    def _get_client(self, index: int) -> ModelClient:
        client = self._clients[index]
        if client is None:
            client = self._clients[index] = self._fallbacks[index - 1].make()
        return client
