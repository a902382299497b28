"""The embedded model as a `ModelClient`: the usual adapter, over loopback, to a process of our own."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any

from ostler.models.call_ids import CallIds, used_ids
from ostler.models.embedded.server import CONTEXT, Serving
from ostler.models.embedded.steps import StepEar, step_schema, write_request
from ostler.models.http_model import HttpModel
from ostler.models.terms import Price
from ostler.models.words import CallChunk, Chunk, Finished, Request, Silence, TextChunk

LONGEST_REPLY = 1500
LOADING = "the embedded model is being loaded"


class EmbeddedModel:
    """Its process is started with the first request, serves the rest of the session and ends with it."""

    def __init__(self, name: str, start: Callable[[], Awaitable[Serving]], *, notice: float = 5.0) -> None:
        """`notice`: the seconds after which it is told again that it loads."""
        self._name = name
        self._notice = notice
        self._start = start
        self._serving: Serving | None = None
        self._client: HttpModel | None = None
        self._schema: Mapping[str, Any] = {}

    @property
    def name(self) -> str:
        """The model's id."""
        return self._name

    @property
    def context_limit(self) -> int:
        """The window in tokens."""
        return CONTEXT

    @property
    def price(self) -> Price:
        """It costs nothing."""
        return Price()

    async def stream(self, request: Request) -> AsyncIterator[Chunk]:
        """One reply: a step, told as words and at most one call."""
        if self._serving is None or not self._serving.alive:
            async with aclosing(self._load()) as waiting:
                async for silence in waiting:
                    yield silence
        client = await self._ready(step_schema(request) if request.tools else {})
        ear = StepEar(CallIds(used_ids(request)))
        called = False
        async with aclosing(client.stream(write_request(request))) as chunks:
            async for chunk in chunks:
                if not request.tools or not isinstance(chunk, TextChunk | Finished):
                    yield _reading(chunk) if isinstance(chunk, Silence) else chunk
                    continue
                heard = ear.hear(chunk.text) if isinstance(chunk, TextChunk) else ear.finish()
                for one in heard:
                    called = called or isinstance(one, CallChunk)
                    yield one
                if isinstance(chunk, Finished):
                    yield Finished("calls") if called else chunk

    async def aclose(self) -> None:
        """End the process."""
        await self._hang_up()
        serving, self._serving = self._serving, None
        if serving is not None:
            await serving.stop()

    async def _load(self) -> AsyncGenerator[Silence, None]:
        """Start its process; gigabytes are read meanwhile, which is told."""
        await self.aclose()
        yield Silence(0.0, LOADING)
        starting, begun = asyncio.ensure_future(self._start()), time.monotonic()
        try:
            while not (await asyncio.wait([starting], timeout=self._notice))[0]:
                seconds = time.monotonic() - begun
                yield Silence(round(seconds, 1), f"{LOADING} since {seconds:.0f} s")
            self._serving = starting.result()
        finally:
            if starting.cancel():
                await asyncio.wait([starting])

    async def _ready(self, schema: Mapping[str, Any]) -> HttpModel:
        """A client whose replies are held to the schema."""
        assert self._serving is not None, "it is loaded first"
        if self._client is None or self._schema != schema:
            await self._hang_up()
            self._client, self._schema = _client(self._name, self._serving, schema), schema
        return self._client

    async def _hang_up(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()


def _reading(waiting: Silence) -> Silence:
    """Its silence is no fault: it reads a few words a second where there is little to compute with."""
    return Silence(waiting.seconds, f"the embedded model reads since {waiting.seconds:.0f} s")


def _client(name: str, serving: Serving, schema: Mapping[str, Any]) -> HttpModel:
    from ostler.models.make import Network, make_client
    from ostler.models.patience import Patience
    from ostler.models.retry import Retries
    from ostler.models.terms import Sampling, Terms

    form = {"type": "json_schema", "json_schema": {"name": "step", "schema": schema}}
    return make_client(
        api_kind="openai",
        base_url=serving.base_url,
        model=name,
        api_key=serving.key,
        context=CONTEXT,
        extra={"response_format": form} if schema else {},
        terms=Terms("embedded", Sampling(LONGEST_REPLY, temperature=0.0), Price()),
        # It reads slowly on a busy machine, and asking it again would only make it begin again.
        network=Network(environ={}, patience=Patience(first=1800.0, silent=600.0), retries=Retries(attempts=1)),
    )
