"""Connections of uvicorn that know the user at the other end of a Unix socket.

They end if no request arrives, and if the other side does not read what is sent to it.
"""

import asyncio
import logging
import os
import socket
from typing import TYPE_CHECKING, Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from ostler.frontends.server.unix_socket import PEER_UID, peer_uid

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send


log = logging.getLogger("ostler.server")
HEAD_SECONDS = 15.0  # for the head of a request; uvicorn would wait for ever
UNREAD_SECONDS = 40.0  # how long nothing may be read; longer than `ServingConfig.send_timeout`
CLOSING_SECONDS = 3.0  # for a client to read the reason why it is closed
BUFFER_BYTES = 32 * 1024  # of this process, for one connection
SOCKET_BYTES = 128 * 1024  # of the system, for one connection


class _PeerProtocol(asyncio.Protocol):
    """Aborts a connection that is not read. Without it, closing would wait for ever until everything was sent."""

    app: Any
    _transport: asyncio.Transport
    _unread_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(BUFFER_BYTES)
        connection = transport.get_extra_info("socket")
        if connection.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) > SOCKET_BYTES:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BYTES // 2)  # the system doubles it
        self.app = _app_for_peer(self.app, transport)

    def pause_writing(self) -> None:
        self._unread_timer = asyncio.get_running_loop().call_later(UNREAD_SECONDS, self._transport.abort)
        super().pause_writing()

    def resume_writing(self) -> None:
        self._stop_unread_timer()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_unread_timer()
        super().connection_lost(exc)

    def _stop_unread_timer(self) -> None:
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None


class HttpPeerProtocol(_PeerProtocol, H11Protocol):
    """HTTP requests. Whoever connects and sends no complete head is disconnected, because no token was checked yet."""

    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        is_incomplete = self.conn.their_state is h11.IDLE and bool(self.conn.trailing_data[0])
        if not is_incomplete:
            self._stop_head_timer()
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_head_timer()
        super().connection_lost(exc)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


class WebSocketPeerProtocol(_PeerProtocol, WebSocketsSansIOProtocol):
    """WebSockets, to which an HTTP connection is upgraded."""

    async def send(self, message: Any) -> None:
        """Send a message. A close frame does not wait until a client reads; it has a short time to do so."""
        if message["type"] == "websocket.close":
            self.writable.set()
            self.loop.call_later(CLOSING_SECONDS, self.transport.abort)
        await super().send(message)


def _app_for_peer(app: Any, transport: asyncio.Transport) -> Any:
    """Return the application for a connection: over a Unix socket, one that gets the peer's uid in its scope."""
    connection = transport.get_extra_info("socket")
    if connection is None or connection.family != socket.AF_UNIX:
        return app
    uid = peer_uid(connection)
    if uid != os.geteuid():
        log.warning("a process of the user with uid %s was refused at the Unix socket", uid)
        transport.abort()
        return _refuse
    return _with_uid(app, uid)


def _with_uid(app: "ASGIApp", uid: int) -> "ASGIApp":
    async def call(scope: "Scope", receive: "Receive", send: "Send") -> None:
        await app({**scope, PEER_UID: uid}, receive, send)

    return call


async def _refuse(scope: "Scope", receive: "Receive", send: "Send") -> None:
    """Answer nothing: the connection was aborted."""
