"""The face: a peer on standard streams, from the first frame to the end of the input."""

import asyncio
import signal

from ostler.core.protocols import SessionManager
from ostler.frontends.acp_agent.editor_client import WorkspaceProvider
from ostler.frontends.acp_agent.handler import AcpAgentHandler
from ostler.frontends.acp_agent.stdio import StdioTransport
from ostler.wire.jsonrpc import JsonRpcPeer

CLOSE_TIMEOUT_SECONDS = 1.2
FLUSH_TIMEOUT_SECONDS = 0.3
STOP_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


class AcpAgentFrontend:
    """Serves one editor; ends when its input does, by a signal, or when nothing more can be made of its input."""

    def __init__(self, transport: StdioTransport, workspaces: WorkspaceProvider, version: str) -> None:
        self._transport = transport
        self._workspaces = workspaces
        self._version = version

    async def run(self, manager: SessionManager) -> int:
        agent = AcpAgentHandler(manager, self._workspaces, self._version)
        agent.peer = JsonRpcPeer(self._transport.send, agent, is_server=True)
        over = asyncio.Event()

        def feed(data: bytes) -> None:
            agent.peer.feed(data)
            if agent.peer.closed:
                over.set()

        self._transport.start(feed, over.set)
        loop = asyncio.get_running_loop()
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, over.set)
        await over.wait()
        broken = agent.peer.closed
        await asyncio.wait({asyncio.create_task(_close(agent))}, timeout=CLOSE_TIMEOUT_SECONDS)
        self._transport.finish(FLUSH_TIMEOUT_SECONDS)
        if broken:
            self._workspaces.log(f"the editor broke the protocol: {broken}")
        return 1 if broken else 0


async def _close(handler: AcpAgentHandler) -> None:
    """The turns first, so that their answers are still written."""
    await handler.aclose()
    await handler.peer.aclose()
