"""The tools of all configured MCP servers, for the tool host of one session."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from ostler.core.errors import BackendError, ToolError
from ostler.core.events import ServerStateChanged
from ostler.core.permission import Question, QuestionReply
from ostler.core.protocols import BackendContext, Tool
from ostler.mcp.approved_tools import ApprovedTools
from ostler.mcp.prompts import ServerPrompts
from ostler.mcp.resources import READ_TOOL, McpReadTool, ServerResources
from ostler.mcp.server import McpServer
from ostler.mcp.tool import McpTool
from ostler.mcp.tool_names import server_prefixes, tool_names
from ostler.mcp.tool_search import list_cost, server_summary


class McpToolSource:
    """Servers that start in the background; their tools are available from the last known list, or once they run.

    While the source is open, each change of a server's state is an event. The same failure is reported once, even if
    the start is repeated.
    """

    def __init__(self, servers: Sequence[McpServer], approved: Callable[[McpServer], ApprovedTools]) -> None:
        self._servers = {server.entry.name: server for server in servers}
        self._prefixes = server_prefixes(list(self._servers))
        self._approved = {name: approved(server) for name, server in self._servers.items()}
        self._reported: dict[str, ServerStateChanged] = {}
        self._context: BackendContext | None = None
        self._on_change: Callable[[], None] = lambda: None
        self._tasks: set[asyncio.Task[None]] = set()
        self._tools: dict[str, Tool[Any]] | None = None
        self._costs: dict[str, int] | None = None
        self._summaries: dict[str, str] | None = None

    def open(self, context: BackendContext, on_change: Callable[[], None] = lambda: None) -> None:
        """Start the servers whose tools are not known, in the background."""
        self._context, self._on_change = context, on_change
        for server in self._servers.values():
            server.on_change = self._handle_change
            if server.needs_start:
                self._run(server.start_in_background())
            else:
                self._report(server)

    def report_states(self) -> None:
        """Report the current state of each server; a remote one may have ended without a message."""
        for server in self._servers.values():
            self._report(server)

    def _report(self, server: McpServer) -> None:
        event, last = _state(server), self._reported.get(server.entry.name)
        is_retried = event.state == "starting" and last is not None and last.state == "failed"
        if self._context and event != last and not is_retried:
            self._reported[event.name] = event
            self._context.emit(event)

    def tools(self) -> Mapping[str, Tool[Any]]:
        """Return the tools by name. The same objects are returned until a list changes."""
        if self._tools is None:
            self._tools = {tool.spec.name: tool for server in self._servers.values() for tool in self._tools_of(server)}
        return self._tools

    def _tools_of(self, server: McpServer) -> list[Tool[Any]]:
        if not server.is_listed:
            return []
        name = server.entry.name
        prefix = self._prefixes[name]
        declared = [tool.name for tool in server.tools]
        reads = server.offers.has_resources and READ_TOOL not in declared and server.entry.allows_tool(READ_TOOL)
        names = tool_names(prefix, [*declared, *([READ_TOOL] if reads else [])], self._prefixes.values())
        read_tool = names.get(READ_TOOL, "")
        approved = self._approved[name]
        tools: list[Tool[Any]] = [
            McpTool(server, tool, names[tool.name], prefix, approved, read_tool) for tool in server.tools
        ]
        return [*tools, McpReadTool(server, read_tool, prefix)] if reads else tools

    def costs(self) -> Mapping[str, int]:
        """Return the approximate number of tokens that listing each tool costs in each request."""
        if self._costs is None:
            self._costs = {name: list_cost(tool.spec) for name, tool in self.tools().items()}
        return self._costs

    def summaries(self) -> dict[str, str]:
        """Return the usable servers by the first part of their tools' names, with a line about each.

        The text stays the same while the source is open, because it is part of the beginning of each request.
        """
        if self._summaries is None:
            self._summaries = {
                self._prefixes[name]: server_summary(server.instructions)
                for name, server in self._servers.items()
                if server.is_usable
            }
        return self._summaries

    def statuses(self) -> list[ServerStateChanged]:
        return [server.status for server in self._servers.values()]

    @property
    def servers(self) -> Sequence[McpServer]:
        return list(self._servers.values())

    async def ask(self, question: Question) -> QuestionReply:
        """Ask the user a question of a server outside of a tool call; without a session it is declined."""
        return await self._context.ask(question) if self._context else QuestionReply("decline")

    @property
    def prompts(self) -> ServerPrompts:
        return ServerPrompts(self.servers, self.ask)

    @property
    def resources(self) -> ServerResources:
        return ServerResources(self.servers, self.ask)

    def server(self, name: str) -> McpServer | None:
        return self._servers.get(name)

    async def wait_required(self) -> None:
        """Wait for the servers that the session needs. Raises `BackendError` if one of them fails."""
        required = [
            server for server in self._servers.values() if server.entry.required and server.status.state != "disabled"
        ]
        await asyncio.gather(*(server.start_in_background() for server in required))
        for server in required:
            if server.status.state != "ready":
                raise BackendError(
                    f"the required MCP server {server.entry.name} failed: {server.status.detail}",
                    code="mcp",
                    hint=f"see `ostler mcp test {server.entry.name}`, or set mcp.{server.entry.name}.required to false",
                )

    async def wait_for(self, tool: str) -> None:
        """Wait for the first tool list of the server whose tool a call names, if it is being started."""
        for server in self._servers_without_tools(tool):
            if server.status.state == "starting":
                await server.start_in_background()

    def missing_tool_error(self, tool: str) -> ToolError | None:
        """Return why a tool does not exist, if its name is that of a server whose tools are not known."""
        for server in self._servers_without_tools(tool):
            status = server.status
            if status.state in ("failed", "disabled"):
                state = "is disabled" if status.state == "disabled" else f"failed: {status.detail}"
                return ToolError(f"the MCP server {status.name} {state}", code="server_failed")
        return None

    def _servers_without_tools(self, tool: str) -> list[McpServer]:
        """Return the servers without known tools whose name a tool's name begins with."""
        name = tool.removeprefix("mcp__").replace("__", "_").replace(".", "_")
        servers = self._servers.items()
        return [server for key, server in servers if name.startswith(f"{self._prefixes[key]}_") and not server.tools]

    async def aclose(self) -> None:
        """Stop all servers; nothing of them is left afterwards."""
        self._context = None
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*(server.aclose() for server in self._servers.values()))
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _run(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _handle_change(self, server: McpServer) -> None:
        self._tools = self._costs = None
        self._report(server)
        if self._context:
            self._on_change()


def _state(server: McpServer) -> ServerStateChanged:
    """Return the current state of a server; a failure says where its error output is."""
    status = server.status
    if status.state == "failed" and server.entry.command and not server.entry.problem:
        return msgspec.structs.replace(status, detail=f"{status.detail}; see `ostler mcp logs {status.name}`")
    return status
