"""One Socket.IO connection to the connector of a server, over the WebSocket client that all backends use."""

import asyncio
from collections.abc import Callable
from typing import Any

from ostler.core.errors import BackendError
from ostler.http.client import Headers
from ostler.http.dialer import Dialer
from ostler.http.websocket import WebSocket, WebSocketClosed, open_websocket
from ostler.text.sanitise import sanitise
from ostler.wire.agent_zero.connector_events import HANDLER, NAMESPACE, read_reply
from ostler.wire.socketio import PONG, SocketIoPacket, connect_packet, event_packet, read_packet

SOCKET_ROUTE = "/socket.io/"
MAX_MESSAGE_BYTES = 16 * 1024 * 1024
OPEN_SECONDS = 10.0
CALL_SECONDS = 30.0
MAX_PING_SECONDS = 300.0


class ConnectorSocket:
    """An open connection. `on_event` gets each event; `closed` is set when the connection has ended."""

    def __init__(self, socket: WebSocket, on_event: Callable[[str, Any], None]) -> None:
        self.closed = asyncio.Event()
        self._socket = socket
        self._on_event = on_event
        self._calls: dict[int, asyncio.Future[Any]] = {}
        self._count = 0
        self._ping_seconds = 45.0
        self._reading: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Do the handshakes of Engine.IO and of the namespace. Raises `BackendError`."""
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                opened = await self._expect("open")
                self._ping_seconds = _ping_seconds(opened.data)
                self._socket.send(connect_packet(NAMESPACE, {"handlers": [HANDLER]}))
                await self._expect("connected")
        except TimeoutError:
            raise BackendError(f"the connector did not answer within {OPEN_SECONDS:g} s", code="timeout") from None
        except WebSocketClosed as error:
            raise BackendError(f"the connector closed the connection: {error}", code="disconnected") from None
        self._reading = asyncio.ensure_future(self._read())

    async def call(self, event: str, data: dict[str, Any]) -> dict[str, Any]:
        """Send an event and return the data of the reply. Raises `BackendError`; its code is `disconnected` if the
        connection ended, so that the event may have been received.
        """
        self._count += 1
        reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._calls[self._count] = reply
        try:
            self.send(event, data, self._count)
            async with asyncio.timeout(CALL_SECONDS):
                value, problem = read_reply(await reply)
        except TimeoutError:
            raise BackendError(f"the connector did not answer {event} in time", code="timeout") from None
        finally:
            self._calls.pop(self._count, None)
            reply.cancel()
        if problem:
            raise BackendError(f"the connector refused {event}: {sanitise(problem)[:400]}", code="refused")
        return value

    def send(self, event: str, data: Any, ack_id: int | None = None) -> None:
        """Send an event. Raises `BackendError` if the connection has ended."""
        try:
            self._socket.send(event_packet(NAMESPACE, event, data, ack_id))
        except WebSocketClosed as error:
            raise _lost(error) from None

    async def aclose(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        await self._socket.aclose()

    async def _expect(self, kind: str) -> SocketIoPacket:
        while True:
            packet = await self._next()
            if packet.kind == kind:
                return packet
            if packet.kind in ("refused", "disconnected", "close"):
                text = packet.data.get("message") if isinstance(packet.data, dict) else ""
                raise BackendError(
                    f"the connector refused the connection: {sanitise(str(text or 'no reason given'))[:400]}",
                    code="refused",
                    hint="check that connection.api_url is the address of the web page, also behind a proxy",
                )

    async def _next(self) -> SocketIoPacket:
        """Return the next packet that is not a ping. Raises `WebSocketClosed` also after a silence."""
        while True:
            message = await self._socket.receive(self._ping_seconds)
            if message is None:
                raise WebSocketClosed(1006, f"the server sent nothing for {self._ping_seconds:.0f} s")
            packet = read_packet(message, NAMESPACE) if isinstance(message, str) else SocketIoPacket("other")
            if packet.kind != "ping":
                return packet
            self._socket.send(PONG)

    async def _read(self) -> None:
        error: WebSocketClosed | None = None
        try:
            while (packet := await self._next()).kind not in ("disconnected", "close"):
                self._handle(packet)
        except WebSocketClosed as caught:
            error = caught
        finally:
            for reply in self._calls.values():
                if not reply.done():
                    reply.set_exception(_lost(error))
            self.closed.set()
            self._socket.abort()

    def _handle(self, packet: SocketIoPacket) -> None:
        if packet.kind == "event":
            self._on_event(packet.event, packet.data)
        elif packet.kind == "ack" and packet.ack_id is not None:
            reply = self._calls.get(packet.ack_id)
            if reply is not None and not reply.done():
                reply.set_result(packet.data)


async def open_connector_socket(
    dialer: Dialer, path: str, headers: Headers, on_event: Callable[[str, Any], None]
) -> ConnectorSocket:
    """Connect to the Socket.IO route below `path`. Raises `BackendError`, `HandshakeRefused` for an HTTP answer."""
    target = f"{path}{SOCKET_ROUTE}?EIO=4&transport=websocket"
    socket = await open_websocket(dialer, target, headers, max_message=MAX_MESSAGE_BYTES, timeout=OPEN_SECONDS)
    connection = ConnectorSocket(socket, on_event)
    try:
        await connection.open()
    except BaseException:
        socket.abort()
        raise
    return connection


def _ping_seconds(opened: Any) -> float:
    """Return the longest silence of a living server, which pings at the interval that it announces."""
    values = [opened.get(name) for name in ("pingInterval", "pingTimeout")] if isinstance(opened, dict) else []
    total = sum(value for value in values if isinstance(value, int | float) and 0 < value < 1e9) / 1000
    return min(max(total, 1.0), MAX_PING_SECONDS) if total else 45.0


def _lost(error: WebSocketClosed | None) -> BackendError:
    text = str(error) if error else "it was closed by the server"
    return BackendError(f"the connection to the connector was lost: {text}", code="disconnected")
