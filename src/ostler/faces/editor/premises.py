"""What the editor's face is handed of a folder, and what it hands on: the editor as a session sees it."""

from collections.abc import Callable
from typing import Any, Protocol

from ostler.commands.services import Services
from ostler.vocabulary.seams import Ground
from ostler.wire.acp_calls import ClientCapabilities
from ostler.wire.jsonrpc import Peer, Sayable


class Editor:
    """The editor from inside one session: what it can do, and a way to ask it."""

    def __init__(self, peer: Peer, can: ClientCapabilities) -> None:
        self._peer = peer
        self.can = can
        self.session_id = ""
        self.terminal_created: Callable[[str, str], None] = lambda command, terminal_id: None

    async def ask(self, method: str, **params: Any) -> Any:
        """The editor's answer; `RpcError` or `PeerGone` if there is none."""
        return await self._peer.request(method, {"sessionId": self.session_id, **params})

    def tell(self, update: Sayable) -> None:
        """Something of the session, to be shown."""
        self._peer.notify("session/update", {"sessionId": self.session_id, "update": update})


class Premises(Protocol):
    """What whoever starts the face knows of folders."""

    def services(self, cwd: str) -> Services: ...

    def say(self, line: str) -> None:
        """Something for whoever reads the editor's logs."""

    def ground(self, cwd: str, editor: Editor) -> Ground | None:
        """The folder as the editor has it; None where it leaves files and commands to us."""
