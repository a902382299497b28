"""What every model behind HTTP has in common: attempts, learning from refusals, and asking the server about itself."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import msgspec

from ostler.models.failures import ModelFailure
from ostler.models.hidden import Hidden
from ostler.models.http import HttpClient
from ostler.models.origin import BaseUrl
from ostler.models.patience import Patience, StallWatch
from ostler.models.prefix_watch import PrefixWatch
from ostler.models.retry import Retries, with_retries
from ostler.models.speech import least_of
from ostler.models.terms import Price, Terms
from ostler.models.words import Chunk, Noted, Request, Silence, Usage
from ostler.vocabulary.errors import OstlerError

if TYPE_CHECKING:
    from ostler.models.catalog import ModelEntry
    from ostler.models.stream_reply import Reader
    from ostler.models.windows import Window

_LEARNING_SECONDS = 5.0
_LET_ASK = 1.0  # seconds in which the first request goes out, where one does
# A window may also be too small only for the reply that was asked for.
_TEACHING = ("bad_request", "context_length")
_log = logging.getLogger("ostler.models")


class Setup(msgspec.Struct, frozen=True):
    """What a client is made of. `extra` goes into each request's body as it is."""

    http: HttpClient
    base: BaseUrl
    model: str
    key: str = ""
    context: int | None = None
    headers: tuple[tuple[str, str], ...] = ()
    extra: Mapping[str, Any] = {}
    terms: Terms = Terms()
    patience: Patience = Patience()
    retries: Retries = Retries()
    clock: Callable[[], float] = time.monotonic
    explain_cache: bool = False
    hidden: Hidden = Hidden()


class HttpModel:
    """A `ModelClient`; an API tells it how requests are written, replies are read and refusals are answered.

    `reasoning` says how the server told it apart from its answers, once it has.
    """

    kind: ClassVar[str]
    endpoint: ClassVar[str]

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._window: Window | None = None
        self._learning: asyncio.Task[int] | None = None
        self._may_learn = asyncio.Event()
        setup.http.on_sent = self._may_learn.set
        self._asked_again = False
        self.reasoning: Literal["", "field", "tags"] = ""
        self._watch = PrefixWatch() if setup.explain_cache else None

    @property
    def name(self) -> str:
        """The model's id."""
        return self._setup.model

    @property
    def context_limit(self) -> int:
        """The window: what the server runs the model with at most, else as set, as told, or by the model's name."""
        told, wanted = self._window, self._setup.context
        if told and (told.firm or not wanted):
            return min(told.size, wanted or told.size)
        if wanted:
            return wanted
        from ostler.models.windows import known_window

        return known_window(self.name)

    @property
    def price(self) -> Price | None:
        """What tokens cost, where somebody knows it."""
        return self._setup.terms.price

    @property
    def longest_reply(self) -> int | None:
        """The most tokens that a reply may have, where that is set."""
        extra = self._setup.extra
        own = self._setup.terms.sampling.max_tokens
        return least_of(own, extra.get("max_tokens"), extra.get("max_completion_tokens"))

    def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        """One reply, ending with `Finished`; retried where that is harmless."""
        request = self._setup.terms.sampling.fill(request)
        return with_retries(lambda number: self._attempt(request, number), self._setup.retries)

    async def models(self) -> tuple["ModelEntry", ...]:
        """The models that the server has."""
        from ostler.models.catalog import list_models

        return await list_models(self._setup.http, self._setup.base, self._headers())

    async def learn_window(self) -> int:
        """Ask the server for the window; from then on `context_limit` tells it."""
        from ostler.models.windows import ask_window

        setup = self._setup
        told = await ask_window(setup.http, setup.base, self.name, self._headers(), wanted=setup.context or 0)
        self._window = told or self._window
        return self.context_limit

    def learn_soon(self) -> None:
        """Ask for the window beside whatever else is going on; nobody waits for it, and failing changes nothing.

        Where it was set, only servers of this machine or network are asked: some cut silently what they cannot hold.
        """
        if self._setup.context and self._setup.http.origin.scheme == "https":
            return
        if self._learning is None or self._learning.done():
            self._learning = asyncio.get_running_loop().create_task(self._learn_beside())

    async def _learn_beside(self) -> int:
        """Once a request is under way, so that it need not wait for the question; soon where there is none."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._may_learn.wait(), _LET_ASK)
        return await self.learn_window()

    async def learned(self) -> None:
        """Wait a little for the window that was asked for, for whoever is about to say much."""
        self._may_learn.set()
        if self._learning is not None and not self._learning.done():
            await asyncio.wait([self._learning], timeout=_LEARNING_SECONDS)

    def _learn_again(self) -> None:
        """A model that has answered is loaded, and the server then knows with which window."""
        if self._window and not self._window.firm and not self._asked_again:
            self._asked_again = True
            self.learn_soon()

    async def aclose(self) -> None:
        """End the connection."""
        if self._learning is not None:
            self._learning.cancel()
            with suppress(asyncio.CancelledError, OstlerError):
                await self._learning
        await self._setup.http.aclose()

    async def _attempt(self, request: Request, number: int) -> AsyncGenerator[Chunk, None]:
        """One attempt; a refusal that tells how to ask better is answered at once and does not count.

        One that comes in the middle of a reply is none.
        """
        begun = False
        while True:
            where = self._setup.http.origin.where
            body, target = self._body(request), self._setup.base.endpoint(self.endpoint)
            watch = StallWatch(self._setup.patience, where, self._setup.clock)
            self._log_request(where, number, len(body))
            if self._watch:
                yield Noted(self._watch.compare(body))
            try:
                response = await self._setup.http.send("POST", target, self._headers(), body)
                from ostler.models.stream_reply import stream_reply  # all that hears is read while the request travels

                reader = self._reader(request)
                async with aclosing(stream_reply(response, reader, watch, self._setup.hidden)) as chunks:
                    async for chunk in chunks:
                        begun = begun or not isinstance(chunk, Silence)
                        yield self._priced(chunk) if isinstance(chunk, Usage) else chunk
                self.reasoning = reader.gather.reasoning or self.reasoning
                self._learn_again()
                return
            except ModelFailure as failure:
                if failure.fault.code == "not_found":
                    raise await self._missing() from None
                if begun or failure.fault.code not in _TEACHING or not self._learn(failure.said, request):
                    raise

    def _priced(self, usage: Usage) -> Usage:
        return self.price.of(usage) if self.price else usage

    def _log_request(self, where: str, number: int, size: int) -> None:
        provider = self._setup.terms.provider or where
        message = "provider %s, apiKind %s: %s at %s, attempt %d, %d bytes"
        _log.info(message, provider, self.kind, self.name, where, number, size)

    async def _missing(self) -> Exception:
        from ostler.models.catalog import explain_missing

        return await explain_missing(self._setup.http, self._setup.base, self._headers(), self.name)

    def _headers(self) -> tuple[tuple[str, str], ...]:
        return (("content-type", "application/json"), *self._key_headers(), *self._setup.headers)

    def _key_headers(self) -> tuple[tuple[str, str], ...]:
        raise NotImplementedError

    def _body(self, request: Request) -> bytes:
        raise NotImplementedError

    def _reader(self, request: Request) -> "Reader":
        raise NotImplementedError

    def _learn(self, said: str, request: Request) -> bool:
        """Whether the next request will differ because of what the refusal said."""
        raise NotImplementedError
