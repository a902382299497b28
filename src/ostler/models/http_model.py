"""What every model behind HTTP has in common: attempts, learning from refusals, and asking the server about itself."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import msgspec

from ostler.core.errors import OstlerError
from ostler.models.base_url import BaseUrl
from ostler.models.http import HttpClient
from ostler.models.model_errors import ModelError
from ostler.models.model_settings import ModelSettings, TokenPrice
from ostler.models.model_types import ModelRequest, NoData, ReplyChunk, RequestNote, Usage
from ostler.models.prefix_comparer import PrefixComparer
from ostler.models.request_content import min_limit
from ostler.models.retry import RetryPolicy, stream_with_retries
from ostler.models.secret_mask import SecretMask
from ostler.models.stall_detector import StallDetector, StallTimeouts

if TYPE_CHECKING:
    from ostler.models.context_windows import ContextWindow
    from ostler.models.server_models import ModelEntry
    from ostler.models.stream_reply import ReplyReader

_WINDOW_WAIT_SECONDS = 5.0
_FIRST_REQUEST_WAIT = 1.0  # seconds in which the first request goes out, where one does
# A window may also be too small only for the reply that was asked for.
_ADAPTABLE_CODES = ("bad_request", "context_length")
_log = logging.getLogger("ostler.models")


class HttpModelConfig(msgspec.Struct, frozen=True):
    """What a client is made of. `extra` goes into each request's body as it is."""

    http: HttpClient
    base_url: BaseUrl
    model: str
    api_key: str = ""
    context_window: int | None = None
    headers: tuple[tuple[str, str], ...] = ()
    extra: Mapping[str, Any] = {}
    settings: ModelSettings = ModelSettings()
    timeouts: StallTimeouts = StallTimeouts()
    retry_policy: RetryPolicy = RetryPolicy()
    clock: Callable[[], float] = time.monotonic
    explain_cache: bool = False
    secret_mask: SecretMask = SecretMask()


class HttpModel:
    """A `ModelClient`; an API tells it how requests are written, replies are read and refusals are answered.

    `reasoning` says how the server told it apart from its answers, once it has.
    """

    kind: ClassVar[str]
    endpoint: ClassVar[str]

    def __init__(self, config: HttpModelConfig) -> None:
        self._config = config
        self._window: ContextWindow | None = None
        self._window_task: asyncio.Task[int] | None = None
        self._request_sent = asyncio.Event()
        config.http.on_sent = self._request_sent.set
        self._window_refetched = False
        self.reasoning: Literal["", "field", "tags"] = ""
        self._prefix_comparer = PrefixComparer() if config.explain_cache else None

    @property
    def name(self) -> str:
        """The model's id."""
        return self._config.model

    @property
    def context_limit(self) -> int:
        """The window: what the server runs the model with at most, else as set, as told, or by the model's name."""
        told, wanted = self._window, self._config.context_window
        if told and (told.is_enforced or not wanted):
            return min(told.size, wanted or told.size)
        if wanted:
            return wanted
        from ostler.models.context_windows import window_by_name

        return window_by_name(self.name)

    @property
    def price(self) -> TokenPrice | None:
        """What tokens cost, where somebody knows it."""
        return self._config.settings.price

    @property
    def max_reply_tokens(self) -> int | None:
        """The most tokens that a reply may have, where that is set."""
        extra = self._config.extra
        own = self._config.settings.sampling.max_tokens
        return min_limit(own, extra.get("max_tokens"), extra.get("max_completion_tokens"))

    def stream(self, request: ModelRequest) -> AsyncGenerator[ReplyChunk, None]:
        """One reply, ending with `Finished`; retried where that is harmless."""
        request = self._config.settings.sampling.apply_defaults(request)
        return stream_with_retries(lambda number: self._attempt(request, number), self._config.retry_policy)

    async def models(self) -> tuple["ModelEntry", ...]:
        """The models that the server has."""
        from ostler.models.server_models import list_models

        return await list_models(self._config.http, self._config.base_url, self._headers())

    async def fetch_window(self) -> int:
        """Ask the server for the window; from then on `context_limit` tells it."""
        from ostler.models.context_windows import fetch_window

        setup = self._config
        told = await fetch_window(
            setup.http, setup.base_url, self.name, self._headers(), requested=setup.context_window or 0
        )
        self._window = told or self._window
        return self.context_limit

    def start_window_fetch(self) -> None:
        """Ask for the window beside whatever else is going on; nobody waits for it, and failing changes nothing.

        Where it was set, only servers of this machine or network are asked: some cut silently what they cannot hold.
        """
        if self._config.context_window and self._config.http.origin.scheme == "https":
            return
        if self._window_task is None or self._window_task.done():
            self._window_task = asyncio.get_running_loop().create_task(self._fetch_window_later())

    async def _fetch_window_later(self) -> int:
        """Once a request is under way, so that it need not wait for the question; soon where there is none."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._request_sent.wait(), _FIRST_REQUEST_WAIT)
        return await self.fetch_window()

    async def wait_for_window(self) -> None:
        """Wait a little for the window that was asked for, for whoever is about to say much."""
        self._request_sent.set()
        if self._window_task is not None and not self._window_task.done():
            await asyncio.wait([self._window_task], timeout=_WINDOW_WAIT_SECONDS)

    def _refetch_window(self) -> None:
        """A model that has answered is loaded, and the server then knows with which window."""
        if self._window and not self._window.is_enforced and not self._window_refetched:
            self._window_refetched = True
            self.start_window_fetch()

    async def aclose(self) -> None:
        """End the connection."""
        if self._window_task is not None:
            self._window_task.cancel()
            with suppress(asyncio.CancelledError, OstlerError):
                await self._window_task
        await self._config.http.aclose()

    async def _attempt(self, request: ModelRequest, number: int) -> AsyncGenerator[ReplyChunk, None]:
        """One attempt; a refusal that tells how to ask better is answered at once and does not count.

        One that comes in the middle of a reply is none.
        """
        begun = False
        while True:
            where = self._config.http.origin.address
            body, target = self._encode_body(request), self._config.base_url.endpoint(self.endpoint)
            watch = StallDetector(self._config.timeouts, where, self._config.clock)
            self._log_request(where, number, len(body))
            if self._prefix_comparer:
                yield RequestNote(self._prefix_comparer.compare(body))
            try:
                response = await self._config.http.send("POST", target, self._headers(), body)
                from ostler.models.stream_reply import stream_reply  # all that hears is read while the request travels

                reader = self._make_reader(request)
                async with aclosing(stream_reply(response, reader, watch, self._config.secret_mask)) as chunks:
                    async for chunk in chunks:
                        begun = begun or not isinstance(chunk, NoData)
                        yield self._add_cost(chunk) if isinstance(chunk, Usage) else chunk
                self.reasoning = reader.collector.reasoning or self.reasoning
                self._refetch_window()
                return
            except ModelError as failure:
                if failure.fault.code == "not_found":
                    raise await self._not_found_error() from None
                if begun or failure.fault.code not in _ADAPTABLE_CODES or not self._adapt(failure.server_text, request):
                    raise

    def _add_cost(self, usage: Usage) -> Usage:
        return self.price.add_cost(usage) if self.price else usage

    def _log_request(self, server: str, number: int, size: int) -> None:
        provider = self._config.settings.provider or server
        message = "provider %s, apiKind %s: %s at %s, attempt %d, %d bytes"
        _log.info(message, provider, self.kind, self.name, server, number, size)

    async def _not_found_error(self) -> Exception:
        from ostler.models.server_models import explain_not_found

        return await explain_not_found(self._config.http, self._config.base_url, self._headers(), self.name)

    def _headers(self) -> tuple[tuple[str, str], ...]:
        return (("content-type", "application/json"), *self._auth_headers(), *self._config.headers)

    def _auth_headers(self) -> tuple[tuple[str, str], ...]:
        raise NotImplementedError

    def _encode_body(self, request: ModelRequest) -> bytes:
        raise NotImplementedError

    def _make_reader(self, request: ModelRequest) -> "ReplyReader":
        raise NotImplementedError

    def _adapt(self, error_text: str, request: ModelRequest) -> bool:
        """Whether the next request will differ because of what the refusal said."""
        raise NotImplementedError
