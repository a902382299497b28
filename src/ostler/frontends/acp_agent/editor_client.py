"""What the editor's face is handed of a folder, and what it hands on: the editor as a session sees it."""

from collections.abc import Callable
from typing import Any, Protocol

from ostler.commands.services import CommandServices
from ostler.core.protocols import Workspace
from ostler.wire.acp_requests import ClientCapabilities
from ostler.wire.jsonrpc import JsonRpcPeer, OutgoingParams


class EditorClient:
    """The editor from inside one session: what it can do, and a way to ask it."""

    def __init__(self, peer: JsonRpcPeer, capabilities: ClientCapabilities) -> None:
        self._peer = peer
        self.capabilities = capabilities
        self.session_id = ""
        self.on_terminal_created: Callable[[str, str], None] = lambda command, terminal_id: None

    async def request(self, method: str, **params: Any) -> Any:
        """The editor's answer; `RpcError` or `PeerGone` if there is none."""
        return await self._peer.request(method, {"sessionId": self.session_id, **params})

    def send_update(self, update: OutgoingParams) -> None:
        """Something of the session, to be shown."""
        self._peer.notify("session/update", {"sessionId": self.session_id, "update": update})


class WorkspaceProvider(Protocol):
    """What whoever starts the face knows of folders."""

    def services(self, cwd: str) -> CommandServices: ...

    def log(self, line: str) -> None:
        """Something for whoever reads the editor's logs."""

    def workspace(self, cwd: str, editor: EditorClient) -> Workspace | None:
        """The folder as the editor has it; None where it leaves files and commands to us."""
