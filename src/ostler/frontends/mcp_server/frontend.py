"""Connects the MCP peer to stdin and stdout and serves until the input ends."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from ostler.frontends.mcp_server.handler import McpServerHandler
from ostler.interaction.signals import ALL_STOP_SIGNALS, handled_signals
from ostler.wire.jsonrpc import MCP_CANCEL, JsonRpcPeer

FLUSH_TIMEOUT_SECONDS = 0.3


class Transport(Protocol):
    """Standard input and output."""

    def start(self, feed: Callable[[bytes], None], on_end: Callable[[], None]) -> None: ...

    def send(self, line: bytes) -> None: ...

    def finish(self, timeout: float) -> None: ...


async def serve(transport: Transport, handler: McpServerHandler) -> int:
    """Serve one client until its input ends, a signal arrives, or it violates the protocol."""
    peer = handler.peer = JsonRpcPeer(
        transport.send, handler, is_server=True, cancel_method=MCP_CANCEL, accept_batches=True
    )
    ended = asyncio.Event()

    def feed(data: bytes) -> None:
        peer.feed(data)
        if peer.closed:
            ended.set()

    transport.start(feed, ended.set)
    with handled_signals(dict.fromkeys(ALL_STOP_SIGNALS, ended.set)):
        await ended.wait()
        error = peer.closed
        await peer.aclose()
        await handler.aclose()
        transport.finish(FLUSH_TIMEOUT_SECONDS)
    return 1 if error else 0
