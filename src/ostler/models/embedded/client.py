"""Model client for the embedded model; starts its server process on the first request."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any

from ostler.models.call_ids import CallIds, used_call_ids
from ostler.models.embedded.server import CONTEXT_WINDOW, RunningServer
from ostler.models.embedded.step_protocol import StepParser, encode_request, step_schema
from ostler.models.http_model import HttpModel
from ostler.models.model_types import (
    CallChunk,
    ModelClientDefaults,
    ModelRequest,
    NoData,
    ReplyChunk,
    ReplyFinished,
    TextChunk,
    TokenPrice,
)

MAX_REPLY_TOKENS = 1500
LOADING_TEXT = "loading the embedded model"


class EmbeddedModel(ModelClientDefaults):
    """A `ModelClient` whose server process starts with the first request and ends with `aclose`."""

    def __init__(
        self, name: str, start_server: Callable[[], Awaitable[RunningServer]], *, notice_interval: float = 5.0
    ) -> None:
        """`notice_interval` is the time in seconds between loading notices."""
        self._name = name
        self._notice_interval = notice_interval
        self._start_server = start_server
        self._server: RunningServer | None = None
        self._client: HttpModel | None = None
        self._schema: Mapping[str, Any] = {}

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

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ReplyChunk, None]:
        """Stream one reply: a step as text and at most one call."""
        if self._server is None or not self._server.is_alive:
            async with aclosing(self._load()) as notices:
                async for notice in notices:
                    yield notice
        client = await self._client_for(step_schema(request) if request.tools else {})
        parser = StepParser(CallIds(used_call_ids(request)))
        has_call = False
        async with aclosing(client.stream(encode_request(request))) as chunks:
            async for chunk in chunks:
                if not request.tools or not isinstance(chunk, TextChunk | ReplyFinished):
                    yield _reading_notice(chunk) if isinstance(chunk, NoData) else chunk
                    continue
                step_chunks = parser.feed(chunk.text) if isinstance(chunk, TextChunk) else parser.finish()
                for step_chunk in step_chunks:
                    has_call = has_call or isinstance(step_chunk, CallChunk)
                    yield step_chunk
                if isinstance(chunk, ReplyFinished):
                    yield ReplyFinished("calls") if has_call else chunk

    async def aclose(self) -> None:
        """Stop the server process."""
        await self._close_client()
        server, self._server = self._server, None
        if server is not None:
            await server.stop()

    async def _load(self) -> AsyncGenerator[NoData, None]:
        """Start the server process, yielding a notice at intervals while it loads the weights."""
        await self.aclose()
        yield NoData(0.0, LOADING_TEXT)
        starting, started = asyncio.ensure_future(self._start_server()), time.monotonic()
        try:
            while not (await asyncio.wait([starting], timeout=self._notice_interval))[0]:
                seconds = time.monotonic() - started
                yield NoData(round(seconds, 1), f"{LOADING_TEXT} for {seconds:.0f} s")
            self._server = starting.result()
        finally:
            if starting.cancel():
                await asyncio.wait([starting])

    async def _client_for(self, schema: Mapping[str, Any]) -> HttpModel:
        """Return a client whose replies must match the schema."""
        assert self._server is not None, "the server must be running"
        if self._client is None or self._schema != schema:
            await self._close_client()
            self._client, self._schema = _make_http_model(self._name, self._server, schema), schema
        return self._client

    async def _close_client(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()


def _reading_notice(no_data: NoData) -> NoData:
    """Explain the silence: on a slow machine the model needs long to read the prompt."""
    return NoData(no_data.seconds, f"the embedded model has been reading the prompt for {no_data.seconds:.0f} s")


def _make_http_model(name: str, server: RunningServer, schema: Mapping[str, Any]) -> HttpModel:
    from ostler.models.client_factory import NetworkConfig, make_client
    from ostler.models.model_settings import ModelSettings, Sampling
    from ostler.models.retry import RetryPolicy
    from ostler.models.stall_detector import StallTimeouts

    response_format = {"type": "json_schema", "json_schema": {"name": "step", "schema": schema}}
    return make_client(
        api_kind="openai",
        base_url=server.base_url,
        model=name,
        api_key=server.api_key,
        context_window=CONTEXT_WINDOW,
        extra={"response_format": response_format} if schema else {},
        settings=ModelSettings("embedded", Sampling(MAX_REPLY_TOKENS, temperature=0.0), TokenPrice()),
        # Prompts are read slowly on a busy machine, and a retry would start from the beginning.
        network=NetworkConfig(
            environ={}, timeouts=StallTimeouts(first=1800.0, silent=600.0), retry_policy=RetryPolicy(attempts=1)
        ),
    )
