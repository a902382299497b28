"""Base class of HTTP model clients: retries, changes a request that the server rejects, fetches the context window."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from ostler.core.errors import OstlerError
from ostler.http.client import HttpClient
from ostler.http.url import BaseUrl
from ostler.models.model_errors import ModelError
from ostler.models.model_settings import ModelSettings
from ostler.models.model_types import (
    ModelClientDefaults,
    ModelRequest,
    NoData,
    ReasoningForm,
    ReplyChunk,
    RequestNote,
    TokenPrice,
    Usage,
)
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
_MAX_CHECKED_BYTES = 4 * 1024 * 1024
_SIZE_WAIT_SECONDS = 0.3
_FIRST_REQUEST_WAIT = 1.0  # seconds to wait for the first request
# `context_length` can also mean that the requested reply length does not fit.
_ADAPTABLE_CODES = ("bad_request", "context_length")
_log = logging.getLogger("ostler.models")


class HttpModelConfig(msgspec.Struct, frozen=True):
    """Configuration of a client. `extra` is merged into each request's body."""

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


class HttpModel(ModelClientDefaults):
    """A `ModelClient` over HTTP. A subclass encodes requests, reads replies and adapts to refusals.

    `reasoning` is how the server marked reasoning in earlier replies; empty until it did.
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
        self._reasoning: ReasoningForm = ""
        self._prefix_comparer = PrefixComparer() if config.explain_cache else None

    @property
    def name(self) -> str:
        """The model's id."""
        return self._config.model

    @property
    def context_limit(self) -> int:
        """The context window: configured or reported by the server, else by the model's name.

        A window that the server enforces limits the configured one.
        """
        reported, configured = self._window, self._config.context_window
        if reported and (reported.is_enforced or not configured):
            return min(reported.size, configured or reported.size)
        if configured:
            return configured
        from ostler.models.context_windows import window_by_name

        return window_by_name(self.name)

    @property
    def reasoning(self) -> ReasoningForm:
        return self._reasoning

    @property
    def has_temperature(self) -> bool:
        """Whether the profile sets the temperature."""
        return self._config.settings.sampling.temperature is not None or "temperature" in self._config.extra

    @property
    def is_small(self) -> bool:
        """Whether the model is small: by its name, else by what the server reported, else by the configured window."""
        from ostler.models.model_size import is_small, parameters_by_name

        reported = self._window
        parameters = parameters_by_name(self.name) or (reported.parameters if reported else 0)
        enforced = reported.size if reported and reported.is_enforced else 0
        return is_small(parameters, self._config.context_window or enforced)

    async def wait_for_size(self) -> None:
        """Wait a moment for the server's answer if the model's name does not tell its size."""
        from ostler.models.model_size import parameters_by_name

        if (
            self._config.http.origin.is_loopback
            and not parameters_by_name(self.name)
            and not self._window
            and self._window_task
        ):
            self._request_sent.set()
            await asyncio.wait([self._window_task], timeout=_SIZE_WAIT_SECONDS)

    @property
    def price(self) -> TokenPrice | None:
        """The token price, or None if it is unknown."""
        return self._config.settings.price

    @property
    def max_reply_tokens(self) -> int | None:
        """The maximum tokens in a reply, or None without a limit."""
        extra = self._config.extra
        configured = self._config.settings.sampling.max_tokens
        return min_limit(configured, extra.get("max_tokens"), extra.get("max_completion_tokens"))

    def stream(self, request: ModelRequest) -> AsyncGenerator[ReplyChunk, None]:
        """Stream one reply, ending with `ReplyFinished`. Retries where that is safe."""
        request = self._config.settings.sampling.apply_defaults(request)
        return stream_with_retries(lambda number: self._attempt(request, number), self._config.retry_policy)

    async def models(self) -> tuple["ModelEntry", ...]:
        """List the server's models. Raises `BackendError`."""
        from ostler.models.server_models import list_models

        return await list_models(self._config.http, self._config.base_url, self._headers())

    async def check_answers(self, timeout: float) -> None:
        """Check that the server answers a request for its models, with any status. Raises `BackendError`."""
        config = self._config
        target = config.base_url.endpoint("models")
        await config.http.fetch("GET", target, self._headers(), timeout=timeout, limit=_MAX_CHECKED_BYTES)

    async def fetch_window(self) -> int:
        """Ask the server for the context window, store it and return `context_limit`."""
        from ostler.models.context_windows import fetch_window

        config = self._config
        window = await fetch_window(
            config.http, config.base_url, self.name, self._headers(), requested=config.context_window or 0
        )
        self._window = window or self._window
        return self.context_limit

    def start_window_fetch(self) -> None:
        """Fetch the context window in the background; errors are ignored.

        If a window is configured, only plain HTTP servers are asked: some local ones silently truncate long prompts.
        """
        if self._config.context_window and self._config.http.origin.scheme == "https":
            return
        if self._window_task is None or self._window_task.done():
            self._window_task = asyncio.get_running_loop().create_task(self._fetch_window_later())

    async def _fetch_window_later(self) -> int:
        """Fetch the window after the first request is sent, so that the request is not delayed, or after a second."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._request_sent.wait(), _FIRST_REQUEST_WAIT)
        return await self.fetch_window()

    async def wait_for_window(self) -> None:
        """Wait a few seconds for a window fetch in progress, before a long request is built."""
        self._request_sent.set()
        if self._window_task is not None and not self._window_task.done():
            await asyncio.wait([self._window_task], timeout=_WINDOW_WAIT_SECONDS)

    def _refetch_window(self) -> None:
        """Fetch the window again, once: after the first reply the model is loaded and its real window known."""
        if self._window and not self._window.is_enforced and not self._window_refetched:
            self._window_refetched = True
            self.start_window_fetch()

    async def aclose(self) -> None:
        """Close the connection."""
        if self._window_task is not None:
            self._window_task.cancel()
            with suppress(asyncio.CancelledError, OstlerError):
                await self._window_task
        await self._config.http.aclose()

    async def _attempt(self, request: ModelRequest, number: int) -> AsyncGenerator[ReplyChunk, None]:
        """Run one attempt. If the server rejects the request and it can be adapted, send it again immediately.

        Once the reply has started, a rejection is an error.
        """
        started = False
        while True:
            server = self._config.http.origin.address
            body, target = self._encode_body(request), self._config.base_url.endpoint(self.endpoint)
            stall_detector = StallDetector(self._config.timeouts, server, self._config.clock)
            self._log_request(server, number, len(body))
            if self._prefix_comparer:
                yield RequestNote(self._prefix_comparer.compare(body))
            try:
                response = await self._config.http.send("POST", target, self._headers(), body)
                from ostler.models.stream_reply import stream_reply  # imported while waiting

                reader = self._make_reader(request)
                async with aclosing(stream_reply(response, reader, stall_detector, self._config.secret_mask)) as chunks:
                    async for chunk in chunks:
                        started = started or not isinstance(chunk, NoData)
                        yield self.price.add_cost(chunk) if isinstance(chunk, Usage) and self.price else chunk
                self._reasoning = reader.collector.reasoning or self._reasoning
                self._refetch_window()
                return
            except ModelError as failure:
                if failure.fault.code == "not_found":
                    raise await self._not_found_error() from None
                if (
                    started
                    or failure.fault.code not in _ADAPTABLE_CODES
                    or not self._adapt(failure.server_text, request)
                ):
                    raise

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
        """Adapt later requests to an error response. Return True if the next request will differ."""
        raise NotImplementedError
