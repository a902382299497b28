"""Connects the ACP peer to stdin and stdout and serves until the input ends."""

import asyncio

from ostler.core.protocols import SessionManager
from ostler.frontends.acp_agent.editor_client import WorkspaceProvider
from ostler.frontends.acp_agent.handler import AcpAgentHandler
from ostler.frontends.acp_agent.stdio import StdioTransport
from ostler.interaction.signals import ALL_STOP_SIGNALS, handled_signals
from ostler.wire.jsonrpc import JsonRpcPeer

CLOSE_TIMEOUT_SECONDS = 1.2
FLUSH_TIMEOUT_SECONDS = 0.3


class AcpAgentFrontend:
    """Serves one editor until its input ends, a signal arrives, or the editor violates the protocol."""

    def __init__(self, transport: StdioTransport, workspaces: WorkspaceProvider, version: str) -> None:
        self._transport = transport
        self._workspaces = workspaces
        self._version = version

    async def run(self, manager: SessionManager) -> int:
        agent = AcpAgentHandler(manager, self._workspaces, self._version)
        agent.peer = JsonRpcPeer(self._transport.send, agent, is_server=True)
        ended = asyncio.Event()

        def feed(data: bytes) -> None:
            agent.peer.feed(data)
            if agent.peer.closed:
                ended.set()

        self._transport.start(feed, ended.set)
        with handled_signals(dict.fromkeys(ALL_STOP_SIGNALS, ended.set)):
            await ended.wait()
            error = agent.peer.closed
            await asyncio.wait({asyncio.create_task(_close(agent))}, timeout=CLOSE_TIMEOUT_SECONDS)
            self._transport.finish(FLUSH_TIMEOUT_SECONDS)
        if error:
            self._workspaces.log(f"protocol error by the editor: {error}")
        return 1 if error else 0


async def _close(handler: AcpAgentHandler) -> None:
    """Close the sessions first, so that the responses of their turns are still written."""
    await handler.aclose()
    await handler.peer.aclose()
