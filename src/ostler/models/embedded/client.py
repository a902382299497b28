"""The embedded model as a `ModelClient`: the usual adapter, over loopback, to a process of our own."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any

from ostler.models.call_ids import CallIds, used_call_ids
from ostler.models.embedded.server import CONTEXT_WINDOW, RunningServer
from ostler.models.embedded.step_protocol import StepParser, encode_request, step_schema
from ostler.models.http_model import HttpModel
from ostler.models.model_settings import TokenPrice
from ostler.models.model_types import CallChunk, ModelRequest, NoData, ReplyChunk, ReplyFinished, TextChunk

MAX_REPLY_TOKENS = 1500
LOADING_TEXT = "the embedded model is being loaded"


class EmbeddedModel:
    """Its process is started with the first request, serves the rest of the session and ends with it."""

    def __init__(
        self, name: str, start_server: Callable[[], Awaitable[RunningServer]], *, notice_interval: float = 5.0
    ) -> None:
        """`notice`: the seconds after which it is told again that it loads."""
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
        """The window in tokens."""
        return CONTEXT_WINDOW

    @property
    def price(self) -> TokenPrice:
        """It costs nothing."""
        return TokenPrice()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        """One reply: a step, told as words and at most one call."""
        if self._server is None or not self._server.is_alive:
            async with aclosing(self._load()) as waiting:
                async for silence in waiting:
                    yield silence
        client = await self._client_for(step_schema(request) if request.tools else {})
        ear = StepParser(CallIds(used_call_ids(request)))
        called = False
        async with aclosing(client.stream(encode_request(request))) as chunks:
            async for chunk in chunks:
                if not request.tools or not isinstance(chunk, TextChunk | ReplyFinished):
                    yield _reading_notice(chunk) if isinstance(chunk, NoData) else chunk
                    continue
                heard = ear.feed(chunk.text) if isinstance(chunk, TextChunk) else ear.finish()
                for one in heard:
                    called = called or isinstance(one, CallChunk)
                    yield one
                if isinstance(chunk, ReplyFinished):
                    yield ReplyFinished("calls") if called else chunk

    async def aclose(self) -> None:
        """End the process."""
        await self._close_client()
        serving, self._server = self._server, None
        if serving is not None:
            await serving.stop()

    async def _load(self) -> AsyncGenerator[NoData, None]:
        """Start its process; gigabytes are read meanwhile, which is told."""
        await self.aclose()
        yield NoData(0.0, LOADING_TEXT)
        starting, begun = asyncio.ensure_future(self._start_server()), time.monotonic()
        try:
            while not (await asyncio.wait([starting], timeout=self._notice_interval))[0]:
                seconds = time.monotonic() - begun
                yield NoData(round(seconds, 1), f"{LOADING_TEXT} since {seconds:.0f} s")
            self._server = starting.result()
        finally:
            if starting.cancel():
                await asyncio.wait([starting])

    async def _client_for(self, schema: Mapping[str, Any]) -> HttpModel:
        """A client whose replies are held to the schema."""
        assert self._server is not None, "it is loaded first"
        if self._client is None or self._schema != schema:
            await self._close_client()
            self._client, self._schema = _make_http_model(self._name, self._server, schema), schema
        return self._client

    async def _close_client(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()


def _reading_notice(no_data: NoData) -> NoData:
    """Its silence is no fault: it reads a few words a second where there is little to compute with."""
    return NoData(no_data.seconds, f"the embedded model reads since {no_data.seconds:.0f} s")


def _make_http_model(name: str, server: RunningServer, schema: Mapping[str, Any]) -> HttpModel:
    from ostler.models.client_factory import NetworkConfig, make_client
    from ostler.models.model_settings import ModelSettings, Sampling
    from ostler.models.retry import RetryPolicy
    from ostler.models.stall_detector import StallTimeouts

    form = {"type": "json_schema", "json_schema": {"name": "step", "schema": schema}}
    return make_client(
        api_kind="openai",
        base_url=server.base_url,
        model=name,
        api_key=server.api_key,
        context_window=CONTEXT_WINDOW,
        extra={"response_format": form} if schema else {},
        settings=ModelSettings("embedded", Sampling(MAX_REPLY_TOKENS, temperature=0.0), TokenPrice()),
        # It reads slowly on a busy machine, and asking it again would only make it begin again.
        network=NetworkConfig(
            environ={}, timeouts=StallTimeouts(first=1800.0, silent=600.0), retry_policy=RetryPolicy(attempts=1)
        ),
    )
