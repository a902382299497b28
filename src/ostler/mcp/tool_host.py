"""The tool host of a session with MCP servers: it lists their tools, or offers to search them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from ostler.core.errors import ToolError
from ostler.core.events import PrefixBuilt
from ostler.core.protocols import BackendContext, Tool, Workspace
from ostler.core.session_view import latest_event
from ostler.core.tools import ToolCall, ToolSpec
from ostler.mcp.open_sources import forget_source, register_source
from ostler.mcp.tool_search import (
    CALL_TOOL,
    SEARCH_COST,
    SEARCH_TOOL,
    USUAL_WINDOW,
    McpCallTool,
    McpSearchTool,
)
from ostler.mcp.tool_source import McpToolSource
from ostler.tools.call_resolution import ResolvedCall
from ostler.tools.host import CallInterceptor, LocalToolHost


class _HostSource:
    """The MCP servers as a source of a tool host, which starts and stops them only if it owns them."""

    def __init__(self, mcp: McpToolSource, tools: Callable[[], Mapping[str, Tool[Any]]], *, owns_mcp: bool) -> None:
        self._mcp = mcp
        self.tools = tools
        self._owns_mcp = owns_mcp

    def open(self, context: BackendContext, on_change: Callable[[], None]) -> None:
        if self._owns_mcp:
            self._mcp.open(context, on_change)

    async def aclose(self) -> None:
        if self._owns_mcp:
            await self._mcp.aclose()


class McpToolHost(LocalToolHost):
    """A tool host with the tools of MCP servers."""

    def __init__(
        self,
        mcp: McpToolSource,
        tools: Iterable[Tool[Any]],
        workspace: Workspace,
        hidden_tools: Callable[[], Iterable[Tool[Any]]],
        is_offered: Callable[[str], bool],
        interceptor: CallInterceptor | None,
        *,
        owns_mcp: bool,
        share: float,
    ) -> None:
        """`share` is the part of the model's context window that may be used to list the tools of servers."""
        source = _HostSource(mcp, self._mcp_tools, owns_mcp=owns_mcp)
        super().__init__(tools, workspace, hidden_tools, is_offered, interceptor, (source,))
        self._mcp = mcp
        self._owns_mcp = owns_mcp
        self._session_id = ""
        self._share = share
        self.context_window: Callable[[], int] = lambda: USUAL_WINDOW

    async def open(self, context: BackendContext) -> None:
        """Start the servers in the background; wait only for the required ones. Raises `BackendError` for these."""
        if self._owns_mcp:
            self._session_id = str(getattr(context, "id", ""))
            register_source(self._session_id, self._mcp)
        await super().open(context)
        if self._owns_mcp:
            await self._mcp.wait_required()

    def _mcp_tools(self) -> Mapping[str, Tool[Any]]:
        tools = self._mcp.tools()
        return {**tools, **self._search_tools} if self._is_searched() else tools

    def _is_searched(self) -> bool:
        """Return whether the tools are searched, because listing those that the agent has costs too much.

        A session that searched them once continues to do so: the search tools stay in its requests anyway.
        """
        cost = sum(cost for name, cost in self._mcp.costs().items() if self._is_offered(name))
        limit = max((self.context_window() or USUAL_WINDOW) * self._share, SEARCH_COST)
        return cost > limit or (cost > SEARCH_COST and self._was_searched())

    def _was_searched(self) -> bool:
        prefix = latest_event(self._context.records(), "prefix_built") if self._context else None
        return isinstance(prefix, PrefixBuilt) and any(tool["name"] == SEARCH_TOOL for tool in prefix.tools)

    @cached_property
    def _search_tools(self) -> dict[str, Tool[Any]]:
        search = McpSearchTool(self._offered_mcp_tools, self._mcp.summaries())
        return {SEARCH_TOOL: search, CALL_TOOL: McpCallTool(self._offered_mcp_tools)}

    def _offered_mcp_tools(self) -> dict[str, Tool[Any]]:
        """Return the tools that the current agent may use; the two search tools show and call no others."""
        return {name: tool for name, tool in self._mcp.tools().items() if self._is_offered(name)}

    def specs(self) -> Sequence[ToolSpec]:
        """Return the tools to list; those of MCP servers are left out if they are searched, but can be called."""
        specs = super().specs()
        if not any(spec.name == SEARCH_TOOL for spec in specs):
            return specs
        unlisted = self._mcp.tools()
        return [spec for spec in specs if spec.name not in unlisted]

    async def resolve(self, call: ToolCall) -> ResolvedCall:
        """Resolve a call; if it names a server that is being started for the first time, wait for its tools."""
        await self._mcp.wait_for(call.tool)
        try:
            return await super().resolve(call)
        except ToolError as error:
            raise self._mcp.missing_tool_error(call.tool) or error from None

    async def aclose(self) -> None:
        if self._owns_mcp:
            forget_source(self._session_id)
        await super().aclose()
