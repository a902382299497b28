"""Streams one HTTP reply as chunks, whatever format the server used."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from ostler.core.errors import BackendError
from ostler.http.client import HttpResponse
from ostler.http.sse import EventTooLongError, SseSplitter
from ostler.models.chunk_collector import ChunkCollector
from ostler.models.malformed_events import is_done, is_json, split_events, split_json_lines
from ostler.models.model_errors import ErrorResponse, ModelError, clean_line
from ostler.models.model_types import ModelRequest, ReplyChunk
from ostler.models.secret_mask import NO_SECRETS, SecretMask
from ostler.models.sse_merge import SseMerger
from ostler.models.stall_detector import StallDetector

_MAX_ERROR_BODY = 65_536
_MAX_DOCUMENT = 32 * 1024 * 1024
_MIN_PROGRESS_BYTES = 512  # this many bytes of an incomplete event are progress


class ReplyReader:
    """Parses one reply of an API. It never raises; errors are stored in `collector.error`."""

    def __init__(self, server: str, request: ModelRequest, secret_mask: SecretMask = NO_SECRETS) -> None:
        self.collector = ChunkCollector(server, request)
        self.ended = False  # the server marked the end of the stream
        self._secret_mask = secret_mask

    @property
    def complete(self) -> bool:
        """Whether the server sent a finish reason, or ended a reply that is not empty; only usage may follow."""
        return bool(self.collector.finish_reason or (self.ended and self.collector.progress))

    def feed(self, events: list[bytes]) -> None:
        """Parse the events of one socket read."""
        raise NotImplementedError

    def feed_document(self, body: bytes) -> None:
        """Parse a reply that was not streamed."""
        raise NotImplementedError

    def finish(self) -> list[ReplyChunk]:
        """Return the last chunks of a complete reply."""
        return self.collector.finish()

    def _flush_text(self, run: list[str]) -> None:
        if run:
            self.collector.add_text("".join(run))
            run.clear()

    def _fail_unreadable(self, what: str) -> None:
        """Fail the reply, unless its finish reason has already arrived."""
        if not self.collector.finish_reason:
            self.collector.fail(ModelError(f"{self.collector.server} sent {what}", code="malformed"))


async def stream_reply(
    response: HttpResponse, reader: ReplyReader, stall_detector: StallDetector, secret_mask: SecretMask
) -> AsyncGenerator[ReplyChunk, None]:
    """Yield the chunks of a response. On failure, yield what was parsed, then raise `BackendError` without secrets."""
    try:
        while not await response.read_head(stall_detector.tick):
            if notice := stall_detector.no_data():
                yield notice
        if not 200 <= response.status < 300:
            body = await response.read_rest(_MAX_ERROR_BODY, timeout=5.0)
            raise ErrorResponse(response.server, response.status, response.headers, body, secret_mask).to_error()
        async with aclosing(_stream_content(response, reader, stall_detector, secret_mask)) as chunks:
            async for chunk in chunks:
                yield chunk
        if reader.ended:
            await response.read_rest(_MAX_ERROR_BODY, timeout=0.25)
        for chunk in reader.finish():
            yield chunk
    finally:
        response.close()


async def _stream_content(
    response: HttpResponse, reader: ReplyReader, stall_detector: StallDetector, secret_mask: SecretMask
) -> AsyncGenerator[ReplyChunk, None]:
    """Yield the chunks of a successful response, without the last ones of `reader.finish`."""
    feeder = _BodyFeeder(response.server, reader, stall_detector)
    failure: BackendError | None = None
    try:
        async with aclosing(response.iter_data(stall_detector.tick)) as reads:
            async for data in reads:
                feeder.feed(data)
                for chunk in reader.collector.take_chunks():
                    yield chunk
                collector = reader.collector
                if reader.ended or collector.is_full or collector.error or (reader.complete and not data):
                    break
                if notice := feeder.check_stall():
                    yield notice
            else:
                feeder.finish()
    except BackendError as error:
        failure = None if reader.complete else error
    failure = reader.collector.error or failure
    if failure is None and not reader.complete:
        stray_text = clean_line(reader.collector.stray_text, secret_mask)
        suffix = f" with the message: {stray_text}" if stray_text else ""
        failure = ModelError(f"{response.server} ended its reply too early{suffix}", code="cut", hint="try again")
    if failure is not None:
        for chunk in reader.collector.flush():
            yield chunk
        raise failure


class _BodyFeeder:
    """Detects the format of a body (events, one JSON document or a web page) and feeds it to the reader."""

    def __init__(self, server: str, reader: ReplyReader, stall_detector: StallDetector) -> None:
        self._server = server
        self._reader = reader
        self._stall_detector = stall_detector
        self._events = SseSplitter(merge_events=SseMerger().merge)
        self._format = ""
        self._document_parts: list[bytes] = []
        self._size = 0
        self._progress = 0
        self._unparsed_bytes = 0

    def feed(self, data: bytes) -> None:
        if not self._format:
            self._format = _detect_format(data)
        if self._format == "events":
            self._feed_events(data)
        elif self._format == "document":
            self._add_to_document(data)
        elif self._format == "page":
            self._reader.collector.fail(_web_page_error(self._server))

    def finish(self) -> None:
        """Feed the remaining data at the end of the body."""
        if self._format == "events":
            # An incomplete last event is dropped: it means a truncated reply, not a malformed one.
            self._reader.feed([event for event in _split_all(self._events.flush()) if is_done(event) or is_json(event)])
        elif self._format == "document":
            body = b"".join(self._document_parts)
            if events := split_json_lines(body):
                self._reader.feed(events)
            else:
                self._reader.feed_document(body)

    def check_stall(self) -> ReplyChunk | None:
        """Return a notice if one is due because the last read had no part of the reply."""
        progress = self._reader.collector.progress + self._size
        if progress != self._progress or self._unparsed_bytes >= _MIN_PROGRESS_BYTES:
            self._progress, self._unparsed_bytes = progress, 0
            self._stall_detector.data_received()
            return None
        return self._stall_detector.no_data()

    def _feed_events(self, data: bytes) -> None:
        try:
            events = self._events.feed(data)
        except EventTooLongError:
            self._reader.collector.fail(ModelError(f"{self._server} sent an event that is too long", code="malformed"))
            return
        if events:
            self._reader.feed(events if b"\n" not in b"".join(events) else _split_all(events))
        elif self._events.has_partial_data:
            self._unparsed_bytes += len(data)

    def _add_to_document(self, data: bytes) -> None:
        self._document_parts.append(data)
        self._size += len(data)
        if self._size > _MAX_DOCUMENT:
            self._reader.collector.fail(ModelError(f"{self._server} sent a reply that is too long", code="malformed"))


def _split_all(events: list[bytes]) -> list[bytes]:
    return [part for event in events for part in split_events(event)]


def _detect_format(data: bytes) -> str:
    first = data.lstrip()[:1]
    if not first:
        return ""
    return {b"{": "document", b"[": "document", b"<": "page"}.get(first, "events")


def _web_page_error(server: str) -> ModelError:
    return ModelError(
        f"{server} answered with a web page",
        code="wrong_url",
        hint="the base URL seems wrong: it usually ends with /v1",
    )
