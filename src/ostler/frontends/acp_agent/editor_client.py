"""The editor as seen from a session, and the protocol through which the frontend gets services and workspaces."""

from collections.abc import Callable
from typing import Any, Protocol

from ostler.core.protocols import Workspace
from ostler.interaction.services import CommandServices
from ostler.wire.acp_requests import ClientCapabilities
from ostler.wire.jsonrpc import JsonRpcPeer, OutgoingParams

MAX_RESPONSE_BYTES = 1024 * 1024


class EditorClient:
    """The editor's capabilities and requests to it, for one session."""

    def __init__(self, peer: JsonRpcPeer, capabilities: ClientCapabilities) -> None:
        self._peer = peer
        self.capabilities = capabilities
        self.session_id = ""
        self.on_terminal_created: Callable[[str, str], None] = lambda command, terminal_id: None

    async def request(
        self, method: str, *, max_response_bytes: int = MAX_RESPONSE_BYTES, shorten: bool = False, **params: Any
    ) -> Any:
        """Send a request and return the editor's answer. Raises `RpcError` or `PeerClosed`.

        A larger response is an error, or shortened (`JsonRpcPeer.request`).
        """
        return await self._peer.request(
            method,
            {"sessionId": self.session_id, **params},
            max_response_bytes=max_response_bytes,
            shorten=shorten,
        )

    def send_update(self, update: OutgoingParams) -> None:
        """Send a session update."""
        self._peer.notify("session/update", {"sessionId": self.session_id, "update": update})


class WorkspaceProvider(Protocol):
    """Provides services and workspaces for folders; implemented by the application."""

    def services(self, cwd: str) -> CommandServices: ...

    def log(self, line: str) -> None:
        """Write a line to the editor's log."""

    def workspace(self, cwd: str, editor: EditorClient) -> Workspace | None:
        """Return a workspace that uses the editor's files and terminals, or None if the editor offers neither."""
