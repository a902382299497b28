"""Two tools that replace a long list: one searches the tools of all MCP servers, the other calls one of them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from ostler.core.display import Display
from ostler.core.errors import ToolError
from ostler.core.permission import Permission
from ostler.core.protocols import Tool, ToolContext, Workspace
from ostler.core.tool_aliases import normalize_name, resolve_tool_name
from ostler.core.tools import ToolResult, ToolSpec
from ostler.text.lazy_regex import lazy_regex
from ostler.text.sanitise import sanitise

NAMESPACE = "mcp"
SEARCH_TOOL, CALL_TOOL = f"{NAMESPACE}_search", f"{NAMESPACE}_call"
SEARCH_COST = 300  # tokens; fewer are not worth a search
USUAL_WINDOW = 128_000  # if there is no model
MAX_FOUND = 8
MAX_SUMMARY = 80
_BYTES_PER_TOKEN = 4
_WORD = lazy_regex(r"[a-z0-9]+")

ToolsByName = Mapping[str, Tool[Any]]


def list_cost(spec: ToolSpec) -> int:
    """Return the approximate number of tokens that listing a tool costs in each request."""
    return len(msgspec.json.encode(spec)) // _BYTES_PER_TOKEN


class McpSearchTool:
    """Finds tools by name and words. `servers` are the names of the servers with a summary of each."""

    def __init__(self, tools: Callable[[], ToolsByName], servers: Mapping[str, str]) -> None:
        self._tools = tools
        lines = [f"- {sanitise(name)[:40]}{f': {text}' if text else ''}" for name, text in servers.items()]
        description = (
            "Search the tools of the MCP servers, which are not listed one by one. Returns names, descriptions and "
            f"parameters; call a tool with {CALL_TOOL}, or directly by its name. Servers:\n" + "\n".join(lines)
        )
        schema = {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "a tool's name, or words; a server's name lists it"}
            },
            "required": ["query"],
        }
        self.spec = ToolSpec(SEARCH_TOOL, "search", description, schema, effects=False, namespace=NAMESPACE)

    def parse(self, arguments: Mapping[str, Any]) -> str:
        query = arguments.get("query")
        if not isinstance(query, str) or not query.strip():
            raise ToolError(f"{SEARCH_TOOL} needs a query", code="bad_arguments")
        return query

    async def permission(self, params: str, workspace: Workspace) -> Permission:
        return Permission("search the tools of MCP servers")

    async def run(self, params: str, context: ToolContext) -> ToolResult:
        found = find_tools(params, [tool.spec for tool in self._tools().values()])
        entries = [
            {"name": spec.name, "description": spec.description, "parameters": spec.schema}
            for spec in found[:MAX_FOUND]
        ]
        more = [spec.name for spec in found[MAX_FOUND : MAX_FOUND + 40]]
        text = "\n".join(msgspec.json.encode(entry).decode() for entry in entries) or "No tool matches."
        text += f"\nMore matches: {', '.join(more)}" if more else ""
        return ToolResult(
            "", "ok", text, Display(f"{len(found)} tools found"), {"names": [spec.name for spec in found]}
        )


class McpCallTool:
    """Calls a tool of a server; permission and result are those of that tool."""

    def __init__(self, tools: Callable[[], ToolsByName]) -> None:
        self._tools = tools
        description = f"Call a tool of an MCP server by the name that {SEARCH_TOOL} returned."
        schema = {
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "the tool's name"},
                "arguments": {"type": "object", "description": "the tool's arguments"},
            },
            "required": ["name"],
        }
        self.spec = ToolSpec(CALL_TOOL, "other", description, schema, namespace=NAMESPACE)

    def parse(self, arguments: Mapping[str, Any]) -> tuple[Tool[Any], Any]:
        tools, name, inner = self._tools(), arguments.get("name"), arguments.get("arguments", {})
        found = resolve_tool_name(name, tools) if isinstance(name, str) else None
        if found is None:
            raise ToolError(
                f"there is no MCP tool {str(name)[:60]!r}", code="unknown_tool", hint=f"search it with {SEARCH_TOOL}"
            )
        if not isinstance(inner, dict):
            raise ToolError(f"the arguments of {found} must be an object", code="bad_arguments")
        return tools[found], tools[found].parse(inner)

    async def permission(self, params: tuple[Tool[Any], Any], workspace: Workspace) -> Permission:
        tool, inner = params
        return await tool.permission(inner, workspace)

    async def run(self, params: tuple[Tool[Any], Any], context: ToolContext) -> ToolResult:
        tool, inner = params
        return await tool.run(inner, context)


def find_tools(query: str, specs: Sequence[ToolSpec]) -> list[ToolSpec]:
    """Return the tools that match a query, best first: an exact name, then parts of names, then words."""
    name, words = normalize_name(query), set(_WORD.findall(query.lower()))
    scored = [(_score(spec, name, words), spec) for spec in specs]
    return [spec for score, spec in sorted(scored, key=lambda item: -item[0]) if score > 0]


def _score(spec: ToolSpec, name: str, words: set[str]) -> float:
    own = normalize_name(spec.name)
    rest = normalize_name(spec.name.removeprefix(f"{spec.namespace}_"))
    if name in (own, rest):
        return 1000
    if name and (own.startswith(name) or rest.startswith(name)):
        return 500 - len(own)
    if name and name in own:
        return 200 - len(own)
    in_name, in_text = set(_WORD.findall(spec.name.lower())), set(_WORD.findall(spec.description.lower()))
    return 10 * len(words & in_name) + 3 * len(words & in_text)


def server_summary(instructions: str) -> str:
    """Return the first line of a server's instructions, shortened."""
    line = sanitise(instructions).strip().partition("\n")[0]
    return line if len(line) <= MAX_SUMMARY else f"{line[: MAX_SUMMARY - 1]}…"
