"""The WebSocket client against the server of the websockets library."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus

import pytest
from websockets.asyncio.server import Request, Response, ServerConnection, serve
from websockets.utils import accept_key

from ostler.core.errors import BackendError
from ostler.http.dialer import Dialer
from ostler.http.url import ServerOrigin
from ostler.http.websocket import HandshakeRefused, WebSocket, WebSocketClosed, open_websocket

Handler = Callable[[ServerConnection], Awaitable[None]]


@asynccontextmanager
async def connected(handler: Handler, *, max_message: int = 1 << 20) -> AsyncIterator[WebSocket]:
    async with serve(handler, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        websocket = await open_websocket(_dialer(port), "/stream", max_message=max_message)
        try:
            yield websocket
        finally:
            await websocket.aclose()


def _dialer(port: int) -> Dialer:
    return Dialer(ServerOrigin("http", "127.0.0.1", port))


async def _echo(peer: ServerConnection) -> None:
    async for message in peer:
        await peer.send(message)


async def test_messages_of_all_sizes_are_echoed() -> None:
    async with connected(_echo) as websocket:
        for text in ("", "a", "ü" * 70, "x" * 200_000):
            websocket.send(text)
            assert await websocket.receive(5) == text


async def test_fragments_are_joined() -> None:
    async def in_parts(peer: ServerConnection) -> None:
        await peer.send(["first ", "sec", "ond"])
        await peer.wait_closed()

    async with connected(in_parts) as websocket:
        assert await websocket.receive(5) == "first second"


async def test_messages_sent_with_the_handshake_are_received() -> None:
    """The first messages can arrive in the same read as the response."""

    closed = asyncio.Event()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        key = next(line.split(": ")[1] for line in head.splitlines() if line.lower().startswith("sec-websocket-key"))
        upgrade = "HTTP/1.1 101 Go\r\nUpgrade: websocket\r\nConnection: Upgrade"
        writer.write(f"{upgrade}\r\nSec-WebSocket-Accept: {accept_key(key)}\r\n\r\n".encode())
        writer.write(b"\x81\x03one\x81\x03two")
        with suppress(OSError):
            await reader.read()
        writer.close()
        closed.set()

    async with await asyncio.start_server(accept, "127.0.0.1", 0) as server:
        websocket = await open_websocket(_dialer(server.sockets[0].getsockname()[1]), "/", max_message=100)
        assert [await websocket.receive(5), await websocket.receive(5)] == ["one", "two"]
        websocket.abort()
        await closed.wait()


async def test_silence_returns_none() -> None:
    async with connected(_echo) as websocket:
        assert await websocket.receive(0.01) is None
        websocket.send("later")
        assert await websocket.receive(5) == "later"


async def test_close_code_and_reason_of_the_server_are_reported() -> None:
    async def close(peer: ServerConnection) -> None:
        await peer.close(1013, "read faster")

    async with connected(close) as websocket:
        with pytest.raises(WebSocketClosed) as caught:
            await websocket.receive(5)
    assert (caught.value.close_code, str(caught.value)) == (1013, "read faster")


async def test_peer_that_sends_pings_and_reads_nothing_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ostler.http.websocket._MAX_UNSENT", 100_000)

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        key = next(line.split(": ")[1] for line in head.splitlines() if line.lower().startswith("sec-websocket-key"))
        upgrade = "HTTP/1.1 101 Go\r\nUpgrade: websocket\r\nConnection: Upgrade"
        writer.write(f"{upgrade}\r\nSec-WebSocket-Accept: {accept_key(key)}\r\n\r\n".encode())
        with suppress(OSError):
            while not writer.is_closing():
                writer.write((b"\x89\x7d" + b"p" * 125) * 1000)
                await writer.drain()
        writer.close()

    async with await asyncio.start_server(flood, "127.0.0.1", 0) as server:
        websocket = await open_websocket(_dialer(server.sockets[0].getsockname()[1]), "/", max_message=1000)
        with pytest.raises(WebSocketClosed, match="does not read"):
            await websocket.receive(20)
        websocket.abort()


async def test_end_without_handshake_is_abnormal() -> None:
    async def vanish(peer: ServerConnection) -> None:
        peer.transport.abort()

    async with connected(vanish) as websocket:
        with pytest.raises(WebSocketClosed) as caught:
            await websocket.receive(5)
        assert caught.value.close_code == 1006
        with pytest.raises(WebSocketClosed):
            websocket.send("too late")


async def test_larger_message_than_allowed_closes_the_connection() -> None:
    async def flood(peer: ServerConnection) -> None:
        await peer.send("x" * 10_000)
        await peer.wait_closed()

    async with connected(flood, max_message=1_000) as websocket:
        with pytest.raises(WebSocketClosed) as caught:
            await websocket.receive(5)
    assert caught.value.close_code == 1009


async def test_http_answer_is_refused_with_status_and_body() -> None:
    def unauthorised(peer: ServerConnection, request: Request) -> Response:
        return peer.respond(HTTPStatus.UNAUTHORIZED, "no token")

    async with serve(_echo, "127.0.0.1", 0, process_request=unauthorised) as server:
        with pytest.raises(HandshakeRefused) as caught:
            await open_websocket(_dialer(server.sockets[0].getsockname()[1]), "/", max_message=100)
    assert (caught.value.status, caught.value.body) == (401, b"no token")


async def test_server_that_never_answers_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.raises(BackendError, match="did not answer"):
        await open_websocket(_dialer(listener.getsockname()[1]), "/", max_message=100, timeout=0.05)


async def test_headers_reach_the_server() -> None:
    async def tell(peer: ServerConnection) -> None:
        assert peer.request
        await peer.send(peer.request.headers["Authorization"])

    async with serve(tell, "127.0.0.1", 0) as server:
        websocket = await open_websocket(
            _dialer(server.sockets[0].getsockname()[1]), "/", [("Authorization", "Bearer x")], max_message=100
        )
        assert await websocket.receive(5) == "Bearer x"
        await websocket.aclose()
