"""A small HTTP/1.1 client for one server: h11 reads the heads of answers, one kept connection carries a whole turn."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from ostler.models.body import BadFraming, Body, body_of
from ostler.models.origin import Origin
from ostler.models.request_head import request_head
from ostler.models.wire import Wire
from ostler.vocabulary.errors import BackendError, UsageError

if TYPE_CHECKING:
    import h11

    from ostler.models.dial import Dialer

_MAX_HEAD = 65_536
_KEEP_IDLE_SECONDS = 60.0

Headers = Sequence[tuple[str, str]]


class Document(msgspec.Struct, frozen=True):
    """A small reply, whole."""

    status: int
    headers: dict[str, str]
    body: bytes


class HttpClient:
    """One server. A connection that served a reply to its end serves the next request too."""

    def __init__(self, dialer: "Dialer") -> None:
        """`on_sent` is called when a request has gone out."""
        self.on_sent: Callable[[], None] = lambda: None
        self._dialer = dialer
        self._kept: Wire | None = None
        self._kept_since = 0.0

    @property
    def origin(self) -> Origin:
        """The server that is spoken to."""
        return self._dialer.origin

    async def send(self, method: str, target: str, headers: Headers = (), body: bytes = b"") -> "Response":
        """Send a request; the response is there to be waited for."""
        data = self._encode(method, target, headers, body)
        kept = self._take_kept()
        response = Response(self, data, kept or await self._dialer.dial(), reused=kept is not None)
        self.on_sent()
        return response

    async def fetch(
        self, method: str, target: str, headers: Headers = (), body: bytes = b"", *, timeout: float, limit: int
    ) -> Document:
        """Ask for something small: whole within the time and the size, or a `BackendError`."""
        try:
            async with asyncio.timeout(timeout):
                response = await self.send(method, target, headers, body)
                return await response.document(limit)
        except TimeoutError:
            raise BackendError(f"{self.origin.where} did not answer within {timeout:g} s", code="timeout") from None

    async def dial(self) -> Wire:
        """A new connection, for a request whose kept one turned out to be dead."""
        return await self._dialer.dial()

    def unanswered(self, error: OSError | None) -> BackendError | None:
        """Why a new connection may have ended before a word of an answer, where the way to the server tells."""
        return self._dialer.unanswered(error)

    def keep(self, wire: Wire) -> None:
        """Take back a connection whose reply was read to its end."""
        if self._kept is not None or not wire.idle:
            wire.abort()
            return
        self._kept = wire
        self._kept_since = asyncio.get_running_loop().time()

    async def aclose(self) -> None:
        """End the kept connection."""
        if self._kept is not None:
            self._kept.abort()
            self._kept = None
            await asyncio.sleep(0)

    def _take_kept(self) -> Wire | None:
        wire, self._kept = self._kept, None
        if wire is None:
            return None
        if wire.idle and asyncio.get_running_loop().time() - self._kept_since < _KEEP_IDLE_SECONDS:
            return wire
        wire.abort()
        return None

    def _encode(self, method: str, target: str, headers: Headers, body: bytes) -> bytes:
        target, further = self._dialer.address(target)
        head = [("host", self.origin.authority), ("user-agent", "ostler"), ("accept-encoding", "identity")]
        length = [("content-length", str(len(body)))] if body or method == "POST" else []
        try:
            return b"".join((request_head(method, target, [*head, *further, *headers, *length]), body))
        except ValueError:
            raise UsageError(
                f"the request to {self.origin.where} would hold characters that HTTP forbids",
                hint="check the key and the extra headers for line breaks and special characters",
            ) from None


class Response:
    """A reply on its way. `status` and `headers` (lower case) are set once `head` has returned true."""

    def __init__(self, client: HttpClient, request: bytes, wire: Wire, *, reused: bool) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self._client = client
        self._request = request
        self._wire = wire
        self._reused = reused
        self._heard = False
        self._body: Body | None = None
        self._first = b""
        self._lasting = False
        self._over = False
        wire.write(request)

    @cached_property
    def _parser(self) -> "h11.Connection":
        """Only the answer goes through it, but it must know that a request went out before."""
        import h11  # read while the request is under way

        parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=_MAX_HEAD)
        parser.send(h11.Request(method="GET", target="/", headers=[("host", "-")]))
        parser.send(h11.EndOfMessage())
        return parser

    @property
    def where(self) -> str:
        """The server, as sentences name it."""
        return self._client.origin.where

    async def head(self, within: float | None = None) -> bool:
        """Wait for the head; false when nothing came within that time, and then it may be asked again."""
        import h11

        while True:
            event = self._next_event()
            if event is h11.NEED_DATA:
                data = await self._receive(within)
                if data is None:
                    return False
                self._parser.receive_data(data)
            elif isinstance(event, h11.Response):
                self._begin_body(event)
                return True
            elif not isinstance(event, h11.InformationalResponse) or event.status_code == 101:
                raise self._broken("something that is not an answer")

    async def reads(self, tick: float | None = None) -> AsyncGenerator[bytes, None]:
        """The content, one object for each read of the socket; b"" when nothing came for `tick` seconds."""
        body, data, self._first = self._body, self._first, b""
        assert body is not None, "the head comes first"
        while not self._over:
            content = self._decode(body, data)
            if content:
                yield content
            more = await self._read_body(body, tick)
            if more is None:
                yield b""
            data = more or b""

    async def rest(self, limit: int, within: float) -> bytes:
        """What still comes, as far as size and time allow; read to its end, the connection can serve again."""
        parts: list[bytes] = []
        try:
            async with asyncio.timeout(within), aclosing(self.reads()) as reads:
                async for data in reads:
                    parts.append(data)
                    limit -= len(data)
                    if limit < 0:
                        break
        except (TimeoutError, BackendError):
            pass
        self.close()
        return b"".join(parts)

    async def document(self, limit: int) -> Document:
        """Head and content, whole; a `BackendError` when the content is larger than the limit."""
        try:
            await self.head()
            parts: list[bytes] = []
            async for data in self.reads():
                parts.append(data)
                limit -= len(data)
                if limit < 0:
                    raise BackendError(f"{self.where} sent far more than was asked for", code="malformed")
            return Document(self.status, self.headers, b"".join(parts))
        finally:
            self.close()

    def close(self) -> None:
        """Leave the reply where it is; unless it was over, its connection ends with it."""
        if not self._over:
            self._over = True
            self._wire.abort()

    def _next_event(self) -> object:
        import h11

        try:
            return self._parser.next_event()
        except h11.RemoteProtocolError:
            raise self._broken("something that is not HTTP") from None

    def _begin_body(self, event: "h11.Response") -> None:
        self.status = event.status_code
        for name, value in event.headers:
            key, text = name.decode("ascii"), value.decode("latin-1")
            self.headers[key] = f"{self.headers[key]}, {text}" if key in self.headers else text
        if self.headers.get("content-encoding", "identity").lower() not in ("", "identity"):
            raise self._broken("a compressed reply, which was not asked for")
        self._first = self._parser.trailing_data[0]
        self._body = body_of(self.status, self.headers)
        tokens = self.headers.get("connection", "").lower()
        self._lasting = event.http_version == b"1.1" and "close" not in tokens and not self._body.by_close

    async def _receive(self, within: float | None) -> bytes | None:
        """Bytes of the head. A kept connection that proves dead before the first of them is replaced, once."""
        broken: OSError | None = None
        try:
            data = await self._wire.read(within)
            if data != b"":
                self._heard = self._heard or data is not None
                return data
        except OSError as error:
            broken = error
        if self._reused and not self._heard:
            self._reused = False
            self._wire.abort()
            self._wire = await self._client.dial()
            self._wire.write(self._request)
            return await self._receive(within)
        why = None if self._heard else self._client.unanswered(broken)
        raise why or self._closed("before it answered")

    async def _read_body(self, body: Body, tick: float | None) -> bytes | None:
        if self._over:
            return b""
        try:
            data = await self._wire.read(tick)
        except OSError:
            raise self._closed("in the middle of its reply") from None
        if data == b"":
            if not body.by_close:
                raise self._closed("in the middle of its reply")
            self._finish(body)
        return data

    def _decode(self, body: Body, data: bytes) -> bytes:
        """The content in these bytes; where it ends, the connection is free again."""
        try:
            content = body.feed(data) if data else b""
        except BadFraming as error:
            raise self._broken(f"a reply with broken framing ({error})") from None
        if body.done:
            self._finish(body)
        return content

    def _finish(self, body: Body) -> None:
        self._over = True
        if self._lasting and not body.rest:
            self._client.keep(self._wire)
        else:
            self._wire.abort()

    def _closed(self, when: str) -> BackendError:
        self.close()
        return BackendError(
            f"{self.where} closed the connection {when}", code="closed", hint="try again, or look at the server's log"
        )

    def _broken(self, what: str) -> BackendError:
        self.close()
        return BackendError(f"{self.where} sent {what}", code="malformed", hint="check the base URL and its port")
