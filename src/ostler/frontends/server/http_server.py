"""Runs the server with uvicorn until a signal arrives, and drains it within seconds."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import uvicorn
from starlette.types import ASGIApp

from ostler.frontends.server.hubs import SessionHubs
from ostler.frontends.server.peer_protocols import HEAD_SECONDS, HttpPeerProtocol, WebSocketPeerProtocol
from ostler.http.server_closing import stop_accepting
from ostler.interaction.signals import ALL_STOP_SIGNALS, handled_signals

PING_SECONDS = 20.0
GRACE_SECONDS = 1
CANCEL_SECONDS = 0.5  # for requests that were cancelled after that time


class _Uvicorn(uvicorn.Server):
    """Leaves signals alone, because the sessions are released first, and reports that it listens."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Stop serving."""
        self.should_exit = True
        self._stopping.set()

    async def main_loop(self) -> None:
        """Update the `date` header each second until `stop`. uvicorn's own loop wakes up ten times a second."""
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await self._stopping.wait()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen. uvicorn's own way has no limit for the TLS handshake."""
        await super().startup([])
        loop, config = asyncio.get_running_loop(), self.config
        for listener in sockets or ():
            self.servers.append(
                await loop.create_server(
                    self._make_protocol,
                    sock=listener,
                    ssl=config.ssl,
                    backlog=config.backlog,
                    ssl_handshake_timeout=HEAD_SECONDS if config.ssl else None,
                )
            )
        self._on_ready()

    def _make_protocol(self) -> asyncio.Protocol:
        return HttpPeerProtocol(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)


async def serve_until_signal(
    app: ASGIApp,
    hubs: SessionHubs,
    sockets: list[socket.socket],
    on_ready: Callable[[], None],
    *,
    certificate: str = "",
    key: str = "",
) -> int:
    """Serve until a signal arrives. Turns that run then are continued by the next process."""
    stopped = asyncio.Event()
    with handled_signals(dict.fromkeys(ALL_STOP_SIGNALS, stopped.set)):
        await serve_http(app, hubs, sockets, stopped, on_ready, certificate=certificate, key=key)
    return 0


async def serve_http(
    app: ASGIApp,
    hubs: SessionHubs,
    sockets: list[socket.socket],
    stopped: asyncio.Event,
    on_ready: Callable[[], None] = lambda: None,
    *,
    certificate: str = "",
    key: str = "",
) -> None:
    """Serve until `stopped` is set, then drain."""
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        http=HttpPeerProtocol,
        ws=WebSocketPeerProtocol,
        proxy_headers=False,  # else every local process could pretend to be another client
        ws_max_size=hubs.parts.config.max_read,
        ws_ping_interval=PING_SECONDS,
        ws_ping_timeout=PING_SECONDS,
        ws_per_message_deflate=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
        server_header=False,
        ssl_certfile=certificate or None,
        ssl_keyfile=key or None,
    )
    server = _Uvicorn(config, on_ready)
    await hubs.start()
    serving = asyncio.create_task(server.serve(sockets), name="http server")
    stopping = asyncio.create_task(stopped.wait(), name="wait for a signal")
    try:
        await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        await drain(hubs, server, serving)


async def drain(hubs: SessionHubs, server: _Uvicorn, serving: "asyncio.Task[None]") -> None:
    """Release all sessions, then stop; neither waits long for clients that do not read."""
    for listener in server.servers:
        await stop_accepting(listener.sockets)
        listener.close()
    with suppress(TimeoutError):
        async with asyncio.timeout(hubs.parts.config.drain - GRACE_SECONDS - CANCEL_SECONDS):
            await hubs.drain()
    server.stop()
    await asyncio.wait([serving], timeout=GRACE_SECONDS + 0.5)
    if cancelled := tuple(server.server_state.tasks):
        await asyncio.wait(cancelled, timeout=CANCEL_SECONDS)
    server.force_exit = True
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
