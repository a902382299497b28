"""A connection to an agent without a session, for questions about the agent itself."""

from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any

from ostler.backends.acp.agent_client import AcpAgentClient
from ostler.stdio_rpc.program import Launch, start_program
from ostler.wire.acp_requests import ClientCapabilities
from ostler.wire.jsonrpc import METHOD_NOT_FOUND, Mirror, Params, RpcError


class _NoSessionHandler:
    """The client side of a connection without a session, which serves no requests."""

    def handle_request(self, method: str, params: Params) -> Awaitable[Any]:
        raise RpcError(METHOD_NOT_FOUND, f"method {method!r} is not supported by this client")

    def handle_notification(self, method: str, params: Params) -> None:
        """Ignore it: there is no session."""


@asynccontextmanager
async def connect_agent(launch: Launch, version: str, mirror: Mirror | None = None) -> AsyncIterator[AcpAgentClient]:
    """Start and initialize an agent, and stop it at the end."""
    process = await start_program(launch, _NoSessionHandler(), mirror=mirror)
    try:
        agent = AcpAgentClient(process)
        await agent.initialize(ClientCapabilities(), version)
        yield agent
    finally:
        await process.stop()
