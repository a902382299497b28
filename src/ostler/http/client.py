"""Small HTTP/1.1 client for one server, with a kept-alive connection; h11 parses the response heads."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, suppress
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from ostler.core.errors import BackendError, UsageError
from ostler.http.body import FramingError, HttpBody, make_body
from ostler.http.socket_connection import SocketConnection
from ostler.text.lazy_regex import lazy_regex

if TYPE_CHECKING:
    import h11

    from ostler.http.content_encoding import ContentDecoder
    from ostler.http.dialer import Dialer

_MAX_HEAD = 65_536
_MAX_IDLE_SECONDS = 60.0

Headers = Sequence[tuple[str, str]]
_TOKEN = r"[-!#$%&'*+.^_`|~0-9a-zA-Z]+"
_LINE = lazy_regex(rf"{_TOKEN} [\x21-\x7e]+ HTTP/1\.1")
# As in RFC 9110, but only ASCII: servers disagree on the meaning of other bytes.
_FIELD = lazy_regex(rf"{_TOKEN}: (?:[\x21-\x7e]+(?:[ \t]+[\x21-\x7e]+)*)?")


def request_head(method: str, target: str, headers: Sequence[tuple[str, str]]) -> bytes:
    """Return the head, up to the empty line. Raises `ValueError`, without the value, if a character is forbidden."""
    line, fields = f"{method} {target} HTTP/1.1", [f"{name}: {value}" for name, value in headers]
    if not _LINE.fullmatch(line) or not all(map(_FIELD.fullmatch, fields)):
        raise ValueError("a character that HTTP forbids")
    return "\r\n".join((line, *fields, "", "")).encode("ascii")


class HttpDocument(msgspec.Struct, frozen=True):
    """A complete response. Headers that occur more than once are joined with commas, `set-cookie` with newlines."""

    status: int
    headers: dict[str, str]
    body: bytes


class HttpClient:
    """Sends requests to one server. A connection whose response was read to its end is reused."""

    def __init__(self, dialer: "Dialer") -> None:
        """`on_sent` can be replaced by a callback; it is called after each request."""
        self.on_sent: Callable[[], None] = lambda: None
        self.dialer = dialer
        self.origin = dialer.origin
        self._idle_connection: SocketConnection | None = None
        self._idle_since = 0.0

    async def send(
        self, method: str, target: str, headers: Headers = (), body: bytes = b"", *, repeatable: bool = True
    ) -> "HttpResponse":
        """Send a request and return its response, whose head has not been read yet.

        A request that is not `repeatable` gets a new connection, because on one that the server has closed meanwhile it
        would have to be sent again, and may then arrive twice.
        """
        data = self._encode_request(method, target, headers, body)
        idle = self._take_idle() if repeatable else None
        response = HttpResponse(self, data, idle or await self.dialer.connect(), reused=idle is not None)
        self.on_sent()
        return response

    async def fetch(
        self,
        method: str,
        target: str,
        headers: Headers = (),
        body: bytes = b"",
        *,
        timeout: float,
        limit: int,
        repeatable: bool = True,
    ) -> HttpDocument:
        """Return a small document. Raises `BackendError` on timeout or if it is larger than `limit`."""
        try:
            async with asyncio.timeout(timeout):
                response = await self.send(method, target, headers, body, repeatable=repeatable)
                return await response.read_document(limit)
        except TimeoutError:
            raise BackendError(f"{self.origin.address} did not answer within {timeout:g} s", code="timeout") from None

    def release(self, connection: SocketConnection) -> None:
        """Make a connection available again after its response was read to the end."""
        if self._idle_connection is not None or not connection.is_idle:
            connection.abort()
            return
        self._idle_connection = connection
        self._idle_since = asyncio.get_running_loop().time()

    async def aclose(self) -> None:
        """Close the idle connection."""
        if self._idle_connection is not None:
            self._idle_connection.abort()
            self._idle_connection = None
            await asyncio.sleep(0)

    def _take_idle(self) -> SocketConnection | None:
        connection, self._idle_connection = self._idle_connection, None
        if connection is None:
            return None
        if connection.is_idle and asyncio.get_running_loop().time() - self._idle_since < _MAX_IDLE_SECONDS:
            return connection
        connection.abort()
        return None

    def _encode_request(self, method: str, target: str, headers: Headers, body: bytes) -> bytes:
        target, proxy_headers = self.dialer.request_target(target)
        head = [("host", self.origin.authority), ("user-agent", "ostler"), ("accept-encoding", "identity")]
        length = [("content-length", str(len(body)))] if body or method == "POST" else []
        try:
            return b"".join((request_head(method, target, [*head, *proxy_headers, *headers, *length]), body))
        except ValueError:
            raise UsageError(
                f"the request to {self.origin.address} contains characters that HTTP forbids",
                hint="check the key and the extra headers for line breaks and special characters",
            ) from None


class HttpResponse:
    """A response. `status` and `headers` (lower case) are set once `read_head` has returned True."""

    def __init__(self, client: HttpClient, request: bytes, connection: SocketConnection, *, reused: bool) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self._client = client
        self._request = request
        self._connection = connection
        self._reused = reused
        self._has_received = False
        self._body: HttpBody | None = None
        self._decoder: ContentDecoder | None = None
        self._first_data = b""
        self._keep_alive = False
        self._ended = False
        connection.write(request)

    @cached_property
    def _parser(self) -> "h11.Connection":
        """Parser of the response head. h11 only parses a response after a request, so it gets a dummy one."""
        import h11  # imported while the request is under way

        parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=_MAX_HEAD)
        parser.send(h11.Request(method="GET", target="/", headers=[("host", "-")]))
        parser.send(h11.EndOfMessage())
        return parser

    @property
    def server(self) -> str:
        """Host and port of the server, for messages."""
        return self._client.origin.address

    async def read_head(self, timeout: float | None = None) -> bool:
        """Wait for the head. Return False on timeout; the call can then be repeated."""
        import h11

        while True:
            event = self._next_event()
            if event is h11.NEED_DATA:
                data = await self._receive_head(timeout)
                if data is None:
                    return False
                self._parser.receive_data(data)
            elif isinstance(event, h11.Response):
                self._start_body(event)
                return True
            elif not isinstance(event, h11.InformationalResponse) or event.status_code == 101:
                raise self._malformed_error("an unexpected HTTP message")

    async def iter_data(self, tick: float | None = None) -> AsyncGenerator[bytes, None]:
        """Yield the content of each socket read, or b"" if nothing arrived for `tick` seconds."""
        body, data, self._first_data = self._body, self._first_data, b""
        assert body is not None, "call read_head first"
        while not self._ended:
            content = self._decode_body(body, data)
            if self._decoder is not None:
                for piece in self._decompress(self._decoder, content):
                    yield piece
            elif content:
                yield content
            more = await self._read_body(body, tick)
            if more is None:
                yield b""
            data = more or b""
        if self._decoder is not None and self._decoder.is_incomplete:
            raise self._closed_error("in the middle of its reply")

    async def read_rest(self, limit: int, timeout: float) -> bytes:
        """Return the rest of the content within limit and timeout. After a full read the connection is reused."""
        parts: list[bytes] = []
        with suppress(TimeoutError, BackendError):
            async with asyncio.timeout(timeout), aclosing(self.iter_data()) as reads:
                async for data in reads:
                    parts.append(data)
                    limit -= len(data)
                    if limit < 0:
                        break
        self.close()
        return b"".join(parts)

    async def read_document(self, limit: int) -> HttpDocument:
        """Return head and content. Raises `BackendError` if the content is larger than `limit`."""
        try:
            await self.read_head()
            parts: list[bytes] = []
            async for data in self.iter_data():
                parts.append(data)
                limit -= len(data)
                if limit < 0:
                    raise BackendError(f"{self.server} sent an oversized response", code="malformed")
            return HttpDocument(self.status, self.headers, b"".join(parts))
        finally:
            self.close()

    def close(self) -> None:
        """Stop reading. Aborts the connection unless the response was complete."""
        if not self._ended:
            self._ended = True
            self._connection.abort()

    def _next_event(self) -> object:
        import h11

        try:
            return self._parser.next_event()
        except h11.RemoteProtocolError:
            raise self._malformed_error("an invalid HTTP response") from None

    def _start_body(self, event: "h11.Response") -> None:
        self.status = event.status_code
        for name, value in event.headers:
            key, text = name.decode("ascii"), value.decode("latin-1")
            separator = "\n" if key == "set-cookie" else ", "
            self.headers[key] = f"{self.headers[key]}{separator}{text}" if key in self.headers else text
        self._decoder = self._make_decoder(self.headers.get("content-encoding", "").strip().lower())
        self._first_data = self._parser.trailing_data[0]
        self._body = make_body(self.status, self.headers)
        tokens = self.headers.get("connection", "").lower()
        self._keep_alive = event.http_version == b"1.1" and "close" not in tokens and not self._body.ends_on_close

    def _make_decoder(self, encoding: str) -> "ContentDecoder | None":
        if encoding in ("", "identity"):
            return None
        from ostler.http.content_encoding import SUPPORTED_ENCODINGS, ContentDecoder  # needed only here

        if encoding not in SUPPORTED_ENCODINGS:
            raise self._malformed_error(f"a reply compressed with {encoding[:20]!r}, which was not requested")
        return ContentDecoder()

    def _decompress(self, decoder: "ContentDecoder", data: bytes) -> Iterator[bytes]:
        try:
            yield from decoder.decode(data)
        except FramingError as error:
            raise self._malformed_error(f"a reply that cannot be read ({error})") from None

    async def _receive_head(self, timeout: float | None) -> bytes | None:
        """Return bytes of the head. A reused connection that fails before the first byte is replaced once."""
        broken: OSError | None = None
        try:
            data = await self._connection.read(timeout)
            if data != b"":
                self._has_received = self._has_received or data is not None
                return data
        except OSError as error:
            broken = error
        if self._reused and not self._has_received:
            self._reused = False
            self._connection.abort()
            self._connection = await self._client.dialer.connect()
            self._connection.write(self._request)
            return await self._receive_head(timeout)
        early_close = None if self._has_received else self._client.dialer.early_close_error(broken)
        raise early_close or self._closed_error("before it answered")

    async def _read_body(self, body: HttpBody, tick: float | None) -> bytes | None:
        if self._ended:
            return b""
        try:
            data = await self._connection.read(tick)
        except OSError:
            raise self._closed_error("in the middle of its reply") from None
        if data == b"":
            if not body.ends_on_close:
                raise self._closed_error("in the middle of its reply")
            self._finish(body)
        return data

    def _decode_body(self, body: HttpBody, data: bytes) -> bytes:
        """Return the content in these bytes. At the end of the body, release the connection."""
        try:
            content = body.feed(data) if data else b""
        except FramingError as error:
            raise self._malformed_error(f"a reply with broken framing ({error})") from None
        if body.done:
            self._finish(body)
        return content

    def _finish(self, body: HttpBody) -> None:
        self._ended = True
        if self._keep_alive and not body.trailing_data:
            self._client.release(self._connection)
        else:
            self._connection.abort()

    def _closed_error(self, when: str) -> BackendError:
        self.close()
        hint = "try again, or check the server's log"
        if self._client.origin.scheme == "http" and not self._has_received:
            hint = f"if it expects TLS, use https:// in {self._client.dialer.setting}; else {hint}"
        return BackendError(f"{self.server} closed the connection {when}", code="closed", hint=hint)

    def _malformed_error(self, what: str) -> BackendError:
        self.close()
        return BackendError(
            f"{self.server} sent {what}", code="malformed", hint=f"check {self._client.dialer.setting} and its port"
        )
