"""Model client for the embedded model; starts its server process on the first request."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from ostler.models.embedded.prefix_cache import PrefixCache
from ostler.models.embedded.server import CONTEXT_WINDOW, RunningServer
from ostler.models.http_model import HttpModel
from ostler.models.model_types import ModelClientDefaults, ModelRequest, NoData, ReplyChunk, TokenPrice

MAX_REPLY_TOKENS = 1500
LOADING_TEXT = "loading the embedded model"


class EmbeddedModel(ModelClientDefaults):
    """A `ModelClient` whose server process starts with the first request and ends with `aclose`."""

    def __init__(
        self,
        name: str,
        start_server: Callable[[], Awaitable[RunningServer]],
        *,
        prefix_cache: PrefixCache | None = None,
        notice_interval: float = 5.0,
    ) -> None:
        """`notice_interval` is the time in seconds between loading notices."""
        self._name = name
        self._notice_interval = notice_interval
        self._start_server = start_server
        self._prefix_cache = prefix_cache
        self._server: RunningServer | None = None
        self._client: HttpModel | None = None

    @property
    def name(self) -> str:
        """The model's id."""
        return self._name

    @property
    def context_limit(self) -> int:
        """The context window in tokens."""
        return CONTEXT_WINDOW

    @property
    def price(self) -> TokenPrice:
        """The price, which is zero."""
        return TokenPrice()

    @property
    def max_reply_tokens(self) -> int:
        """The maximum tokens in a reply."""
        return MAX_REPLY_TOKENS

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ReplyChunk, None]:
        """Stream one reply, after notices while the model is loaded and while it reads the prompt."""
        if self._server is None or not self._server.is_alive:
            async with aclosing(self._load(request.system)) as notices:
                async for notice in notices:
                    yield notice
        assert self._client is not None, "the server must be running"
        has_progress = False
        async with aclosing(self._client.stream(request)) as chunks:
            async for chunk in chunks:
                if not isinstance(chunk, NoData):
                    yield chunk
                elif chunk.reason.startswith("reading"):
                    has_progress = True
                    yield chunk
                elif not has_progress:
                    yield _reading_notice(chunk)

    async def aclose(self) -> None:
        """Stop the server process."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()
        server, self._server = self._server, None
        if server is not None:
            await server.stop()

    async def _load(self, system: str) -> AsyncGenerator[NoData, None]:
        """Start the server process, yielding a notice at intervals while it loads the weights."""
        await self.aclose()
        yield NoData(0.0, LOADING_TEXT)
        starting, started = asyncio.ensure_future(self._start(system)), time.monotonic()
        try:
            while not (await asyncio.wait([starting], timeout=self._notice_interval))[0]:
                seconds = time.monotonic() - started
                yield NoData(round(seconds, 1), f"{LOADING_TEXT} for {seconds:.0f} s")
            starting.result()
        finally:
            if starting.cancel():
                await asyncio.wait([starting])

    async def _start(self, system: str) -> None:
        self._server = await self._start_server()
        self._client = _make_http_model(self._name, self._server)
        if self._prefix_cache:
            await self._prefix_cache.prepare(self._server, system)


def _reading_notice(no_data: NoData) -> NoData:
    """Explain the silence: on a slow machine the model needs long to read the prompt."""
    return NoData(no_data.seconds, f"the embedded model has been reading the prompt for {no_data.seconds:.0f} s")


def _make_http_model(name: str, server: RunningServer) -> HttpModel:
    from ostler.models.client_factory import NetworkConfig, make_client
    from ostler.models.model_settings import ModelSettings, Sampling
    from ostler.models.retry import RetryPolicy
    from ostler.models.stall_detector import StallTimeouts

    return make_client(
        api_kind="openai",
        base_url=server.base_url,
        model=name,
        api_key=server.api_key,
        context_window=CONTEXT_WINDOW,
        extra={"return_progress": True},
        settings=ModelSettings("embedded", Sampling(MAX_REPLY_TOKENS, temperature=0.0), TokenPrice()),
        # Prompts are read slowly on a busy machine, and a retry would start from the beginning.
        network=NetworkConfig(
            environ={}, timeouts=StallTimeouts(first=1800.0, silent=600.0), retry_policy=RetryPolicy(attempts=1)
        ),
    )
