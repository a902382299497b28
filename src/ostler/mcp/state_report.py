"""Records the states of MCP servers in the session."""

from ostler.core.events import ServerStateChanged
from ostler.core.protocols import BackendContext
from ostler.mcp.server import McpServer


class StateReport:
    """Emits `ServerStateChanged` for each change. The same failure is reported once, even if the start is repeated."""

    def __init__(self) -> None:
        self._last: dict[str, ServerStateChanged] = {}

    def __call__(self, context: BackendContext, server: McpServer) -> None:
        event, last = server_state(server), self._last.get(server.entry.name)
        if event == last or (event.state == "starting" and last and last.state == "failed"):
            return
        self._last[event.name] = event
        context.emit(event)


def server_state(server: McpServer) -> ServerStateChanged:
    """Return the current state of a server as an event; a failure says where its error output is."""
    status = server.status
    detail = status.detail
    if status.state == "failed" and server.entry.command and not server.entry.problem:
        detail = f"{detail}; see `ostler mcp logs {status.name}`"
    return ServerStateChanged(status.name, status.state, detail, status.tools)
