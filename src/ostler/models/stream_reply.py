"""One reply: chunks as they arrive, whatever the server makes of it."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Protocol

from ostler.models.failures import ModelFailure, Refusal, clean
from ostler.models.gather import Gather
from ostler.models.hidden import Hidden
from ostler.models.http import Response
from ostler.models.odd_events import apart, is_done, is_json, lines_of
from ostler.models.patience import StallWatch
from ostler.models.sse import EventTooLong, SseSplitter
from ostler.models.words import Chunk
from ostler.vocabulary.errors import BackendError

_MAX_REFUSAL = 65_536
_MAX_DOCUMENT = 32 * 1024 * 1024
_LITTLE = 512  # bytes that make an unfinished event a sign of life


class Reader(Protocol):
    """Understands one API's replies. It never raises: what is wrong goes to `gather.failure`."""

    gather: Gather
    over: bool  # nothing follows

    @property
    def complete(self) -> bool:
        """Whether the reply has said how it ends; only usage may follow."""

    def feed(self, events: list[bytes]) -> None: ...

    def document(self, body: bytes) -> None:
        """A reply that came whole, as JSON."""

    def finish(self) -> list[Chunk]:
        """The last chunks of a complete reply."""


async def stream_reply(
    response: Response, reader: Reader, watch: StallWatch, hidden: Hidden
) -> AsyncGenerator[Chunk, None]:
    """Where it breaks, what was understood comes first and then the `BackendError`, which shows nothing `hidden`."""
    try:
        while not await response.head(watch.tick):
            if waiting := watch.quiet():
                yield waiting
        if not 200 <= response.status < 300:
            body = await response.rest(_MAX_REFUSAL, within=5.0)
            raise Refusal(response.where, response.status, response.headers, body, hidden).failure()
        async with aclosing(_content(response, reader, watch, hidden)) as chunks:
            async for chunk in chunks:
                yield chunk
        if reader.over:
            await response.rest(_MAX_REFUSAL, within=0.25)
        for chunk in reader.finish():
            yield chunk
    finally:
        response.close()


async def _content(
    response: Response, reader: Reader, watch: StallWatch, hidden: Hidden
) -> AsyncGenerator[Chunk, None]:
    """The chunks of a reply, until it is over or ends."""
    feeder = _Feeder(response.where, reader, watch)
    failure: BackendError | None = None
    try:
        async with aclosing(response.reads(watch.tick)) as reads:
            async for data in reads:
                feeder.feed(data)
                for chunk in reader.gather.take():
                    yield chunk
                gather = reader.gather
                if reader.over or gather.full or gather.failure or (reader.complete and not data):
                    break
                if waiting := feeder.waiting():
                    yield waiting
            else:
                feeder.end()
    except BackendError as error:
        failure = None if reader.complete else error
    failure = reader.gather.failure or failure
    if failure is None and not reader.complete:
        aside = clean(reader.gather.aside, hidden)
        said = f", saying: {aside}" if aside else ""
        failure = ModelFailure(f"{response.where} broke off its reply{said}", code="cut", hint="try again")
    if failure is not None:
        for chunk in reader.gather.rest():
            yield chunk
        raise failure


class _Feeder:
    """Takes a body for what it is: events, one JSON document, or a web page."""

    def __init__(self, where: str, reader: Reader, watch: StallWatch) -> None:
        self._where = where
        self._reader = reader
        self._watch = watch
        self._events = SseSplitter()
        self._form = ""
        self._document: list[bytes] = []
        self._size = 0
        self._weight = 0
        self._unheard = 0

    def feed(self, data: bytes) -> None:
        if not self._form:
            self._form = _form_of(data)
        if self._form == "events":
            self._feed_events(data)
        elif self._form == "document":
            self._keep(data)
        elif self._form == "page":
            self._reader.gather.fail(_page(self._where))

    def end(self) -> None:
        """The body has ended: what was waiting for more is read as it is."""
        if self._form == "events":
            # Half an event at the end is no wrong one, nor a part of the reply: that was cut.
            self._reader.feed([event for event in _apart(self._events.flush()) if is_done(event) or is_json(event)])
        elif self._form == "document":
            body = b"".join(self._document)
            if events := lines_of(body):
                self._reader.feed(events)
            else:
                self._reader.document(body)

    def waiting(self) -> Chunk | None:
        """What to show if the last read brought nothing of the reply."""
        weight = self._reader.gather.weight + self._size
        if weight != self._weight or self._unheard >= _LITTLE:
            self._weight, self._unheard = weight, 0
            self._watch.heard()
            return None
        return self._watch.quiet()

    def _feed_events(self, data: bytes) -> None:
        comments = self._events.comments
        try:
            events = self._events.feed(data)
        except EventTooLong:
            self._reader.gather.fail(ModelFailure(f"{self._where} sent an event without end", code="malformed"))
            return
        if events:
            self._reader.feed(events if b"\n" not in b"".join(events) else _apart(events))
        elif self._events.comments == comments:
            self._unheard += len(data)

    def _keep(self, data: bytes) -> None:
        self._document.append(data)
        self._size += len(data)
        if self._size > _MAX_DOCUMENT:
            self._reader.gather.fail(ModelFailure(f"{self._where} sent a reply without end", code="malformed"))


def _apart(events: list[bytes]) -> list[bytes]:
    return [piece for event in events for piece in apart(event)]


def _form_of(data: bytes) -> str:
    first = data.lstrip()[:1]
    if not first:
        return ""
    return {b"{": "document", b"[": "document", b"<": "page"}.get(first, "events")


def _page(where: str) -> ModelFailure:
    return ModelFailure(
        f"{where} answered with a web page",
        code="wrong_url",
        hint="the base URL seems wrong: it usually ends with /v1",
    )
