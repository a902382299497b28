"""Connections of uvicorn that know which user is at the other end of a Unix socket."""

import asyncio
import os
import socket
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from ostler.frontends.server.unix_socket import PEER_UID, peer_uid

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send


class HttpPeerProtocol(H11Protocol):
    """HTTP requests."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.app: Any = _app_for_peer(self.app, transport)


class WebSocketPeerProtocol(WebSocketsSansIOProtocol):
    """WebSockets, to which an HTTP connection is upgraded."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.app: Any = _app_for_peer(self.app, transport)


def _app_for_peer(app: Any, transport: asyncio.BaseTransport) -> Any:
    """Return the application for a connection: over a Unix socket, one that gets the peer's uid in its scope."""
    connection = transport.get_extra_info("socket")
    if connection is None or connection.family != socket.AF_UNIX:
        return app
    uid = peer_uid(connection)
    if uid != os.geteuid():
        transport.abort() if isinstance(transport, asyncio.Transport) else transport.close()
        return _refuse
    return _with_uid(app, uid)


def _with_uid(app: "ASGIApp", uid: int) -> "ASGIApp":
    async def call(scope: "Scope", receive: "Receive", send: "Send") -> None:
        await app({**scope, PEER_UID: uid}, receive, send)

    return call


async def _refuse(scope: "Scope", receive: "Receive", send: "Send") -> None:
    """Answer nothing: the connection was aborted."""
