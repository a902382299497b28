"""The MCP servers of the open sessions, for slash commands and prompts. Imports nothing of MCP by itself."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ostler.mcp.tool_source import McpToolSource

_sources: dict[str, "McpToolSource"] = {}


def register_source(session_id: str, source: "McpToolSource") -> None:
    _sources[session_id] = source


def forget_source(session_id: str) -> None:
    _sources.pop(session_id, None)


def open_source(session_id: str) -> "McpToolSource | None":
    """Return the MCP servers of an open session, or None if it has none."""
    return _sources.get(session_id)
