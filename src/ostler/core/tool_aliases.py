"""Finds the tool that a name of another agent refers to."""

from collections.abc import Container
from functools import cache

from ostler.core.tool_declarations import tool_declarations

_NAMESPACE_SEPARATORS = (".", ":", "/", "__")


def normalize_name(name: str) -> str:
    """Return the lower-case letters and digits of a name: `old_string`, `oldString` and `old-string` are equal."""
    return "".join(char for char in name.lower() if char.isalnum())


def strip_namespace(name: str) -> str:
    """Return the name without its namespace: `read_file` for `SysBuiltIn.read_file`."""
    for separator in _NAMESPACE_SEPARATORS:
        name = name.rpartition(separator)[2]
    return name


def resolve_tool_name(alias: str, tools: Container[str]) -> str | None:
    """Return the tool in `tools` that `alias` refers to, or None.

    A namespace that belongs to the name is part of it: `files.read_file` is `files_read_file` if there is such a tool.
    """
    if alias in tools:
        return alias
    for name in (_join_namespace(alias), strip_namespace(alias)):
        if name in tools:
            return name
    for name in (alias, strip_namespace(alias)):
        tool = tools_by_alias().get(normalize_name(name))
        if tool is not None and tool in tools:
            return tool
    return None


def _join_namespace(name: str) -> str:
    """Return the name of an MCP tool from `server.tool`, `server__tool` or `mcp__server__tool`."""
    name = name.removeprefix("mcp__")
    for separator in _NAMESPACE_SEPARATORS:
        name = name.replace(separator, "_")
    return name


@cache
def tools_by_alias() -> dict[str, str]:
    """Return the built-in tools by their normalized names and aliases."""
    declared = tool_declarations()
    names = {normalize_name(alias): tool.name for tool in declared.values() for alias in tool.aliases}
    return names | {normalize_name(name): name for name in declared}
