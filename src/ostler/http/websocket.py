"""WebSocket client over the connections of a `Dialer`, with the protocol of the websockets library."""

import asyncio
from typing import TYPE_CHECKING

from ostler.core.errors import BackendError, OstlerError
from ostler.http.client import Headers
from ostler.http.socket_connection import SocketConnection

if TYPE_CHECKING:
    from websockets.client import ClientProtocol
    from websockets.frames import Frame
    from websockets.http11 import Request

    from ostler.http.dialer import Dialer

_CLOSE_SECONDS = 2.0
_ABNORMAL = 1006
_MAX_UNSENT = 64 * 1024 * 1024  # bytes of answers to pings that the peer does not read


class WebSocketClosed(OstlerError):
    """The connection has ended; `close_code` is 1006 if it ended without a closing handshake."""

    def __init__(self, close_code: int, reason: str = "") -> None:
        super().__init__(reason or f"the connection was closed ({close_code})", code="closed")
        self.close_code = close_code


class HandshakeRefused(BackendError):
    """The server answered the handshake with an HTTP status instead."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(f"the server refused the WebSocket ({status})", code=f"http_{status}")
        self.status = status
        self.body = body


class WebSocket:
    """One open WebSocket, for one reader at a time. Pings are answered while it is read."""

    def __init__(self, connection: SocketConnection, protocol: "ClientProtocol") -> None:
        self._connection = connection
        self._protocol = protocol
        self._frames: list[Frame] = []
        self._collect()
        self._flush()
        self._parts: list[bytes] = []
        self._is_text = True

    async def receive(self, timeout: float | None = None) -> str | bytes | None:
        """Return the next message, or None on timeout. Raises `WebSocketClosed` at the end."""
        while True:
            while self._frames:
                message = self._take(self._frames.pop(0))
                if message is not None:
                    return message
            if self._protocol.parser_exc is not None:
                raise self._closed()
            if not await self._read(timeout):
                return None

    def send(self, text: str) -> None:
        """Send a text message; the transport buffers it. Raises `WebSocketClosed`."""
        self._check_open()
        self._protocol.send_text(text.encode())
        self._flush()

    @property
    def unsent_bytes(self) -> int:
        """Number of bytes that the peer has not accepted yet."""
        return self._connection.transport.get_write_buffer_size()

    async def aclose(self) -> None:
        """Close with a handshake; a peer that does not answer soon is disconnected."""
        from websockets.protocol import OPEN

        if self._protocol.state is OPEN:
            self._protocol.send_close(1000)
            self._flush()
            try:
                async with asyncio.timeout(_CLOSE_SECONDS):
                    while await self._read(None):
                        self._frames.clear()
            except (TimeoutError, WebSocketClosed):
                pass
        self.abort()
        await asyncio.sleep(0)

    def abort(self) -> None:
        """Disconnect immediately."""
        self._connection.abort()

    async def _read(self, timeout: float | None) -> bool:
        """Read data and parse it. Return False on timeout. Raises `WebSocketClosed` at the end."""
        try:
            data = await self._connection.read(timeout)
        except OSError as error:
            raise WebSocketClosed(_ABNORMAL, str(error)) from None
        if data is None:
            return False
        if data:
            self._protocol.receive_data(data)
        else:
            self._protocol.receive_eof()
        self._collect()
        self._flush()
        if self.unsent_bytes > _MAX_UNSENT:
            raise WebSocketClosed(_ABNORMAL, "the server sends pings and does not read the answers")
        if not data and not self._frames:
            raise self._closed()
        return True

    def _collect(self) -> None:
        """Store the received frames; the first event is the response to the handshake."""
        from websockets.frames import Frame

        self._frames += [event for event in self._protocol.events_received() if isinstance(event, Frame)]

    def _take(self, frame: "Frame") -> str | bytes | None:
        """Return the message that a frame completes, if any. Raises `WebSocketClosed` at a close frame."""
        from websockets.frames import Opcode

        if frame.opcode is Opcode.CLOSE:
            raise self._closed()
        if frame.opcode not in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
            return None
        if frame.opcode is not Opcode.CONT:
            self._is_text = frame.opcode is Opcode.TEXT
        self._parts.append(bytes(frame.data))
        if not frame.fin:
            return None
        data, self._parts = b"".join(self._parts), []
        if not self._is_text:
            return data
        try:
            return data.decode()
        except UnicodeDecodeError:
            self._protocol.fail(1007, "invalid UTF-8")
            self._flush()
            raise WebSocketClosed(1007, "the server sent invalid UTF-8") from None

    def _check_open(self) -> None:
        from websockets.protocol import OPEN

        if self._protocol.state is not OPEN or self._connection.transport.is_closing():
            raise self._closed()

    def _closed(self) -> WebSocketClosed:
        close = self._protocol.close_rcvd or self._protocol.close_sent
        return WebSocketClosed(close.code, close.reason) if close else WebSocketClosed(_ABNORMAL)

    def _flush(self) -> None:
        if self._connection.transport.is_closing():
            return
        for data in self._protocol.data_to_send():
            if data:
                self._connection.write(data)


async def open_websocket(
    dialer: "Dialer", target: str, headers: Headers = (), *, max_message: int, timeout: float = 10.0
) -> WebSocket:
    """Open a WebSocket. Raises `HandshakeRefused` for an HTTP answer and `BackendError` for other failures."""
    from websockets.client import ClientProtocol
    from websockets.uri import parse_uri

    origin = dialer.origin
    scheme = "wss" if origin.scheme == "https" else "ws"
    protocol = ClientProtocol(parse_uri(f"{scheme}://{origin.address}{target}"), max_size=max_message)
    request = protocol.connect()
    request.headers["User-Agent"] = "ostler"
    for name, value in headers:
        request.headers[name] = value
    connection = await dialer.connect(tunnel=True)
    try:
        async with asyncio.timeout(timeout):
            await _shake_hands(connection, protocol, request, origin.address)
    except TimeoutError:
        connection.abort()
        raise BackendError(f"{origin.address} did not answer within {timeout:g} s", code="timeout") from None
    except BaseException:
        connection.abort()
        raise
    return WebSocket(connection, protocol)


async def _shake_hands(
    connection: SocketConnection, protocol: "ClientProtocol", request: "Request", address: str
) -> None:
    from websockets.http11 import Response
    from websockets.protocol import CONNECTING

    protocol.send_request(request)
    connection.write(b"".join(protocol.data_to_send()))
    while True:
        try:
            data = await connection.read()
        except OSError as error:
            raise BackendError(f"{address} closed the connection ({error})", code="disconnected") from None
        if data:
            protocol.receive_data(data)
        else:
            protocol.receive_eof()
        if protocol.handshake_exc is not None:
            response = next((event for event in protocol.events_received() if isinstance(event, Response)), None)
            if response is not None:
                raise HandshakeRefused(response.status_code, bytes(response.body or b""))
            raise BackendError(f"{address} did not accept a WebSocket", code="protocol")
        if protocol.state is not CONNECTING:
            return
        if not data:
            raise BackendError(f"{address} closed the connection during the handshake", code="disconnected")
