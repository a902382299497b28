"""Resources of MCP servers: `@server:uri` in prompts, their completion, and the tool with which models read them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ostler.core.display import Display, DisplayFields
from ostler.core.errors import ToolError, UsageError
from ostler.core.permission import Need, Permission
from ostler.core.prompt import EmbeddedResource, ImageContent, PromptContent
from ostler.core.protocols import ToolContext, Workspace
from ostler.core.tools import ToolResult, ToolSpec
from ostler.mcp.client import Ask
from ostler.mcp.server import McpServer
from ostler.mcp.tool_results import convert_resource, convert_result
from ostler.text.sanitise import sanitise
from ostler.wire.mcp import MAX_URI

READ_TOOL = "read_resource"
MAX_CONTENTS = 20
MAX_CHARACTERS = 1024 * 1024  # of a mentioned resource, as for a mentioned file
MAX_COMPLETIONS = 50
_SCHEMA = {
    "type": "object",
    "properties": {"uri": {"type": "string", "description": "URI of the resource"}},
    "required": ["uri"],
}


class McpReadTool:
    """Reads a resource of a server, such as one that a tool's result links to."""

    def __init__(self, server: McpServer, name: str, prefix: str) -> None:
        self._server = server
        description = f"Read a resource of the MCP server {sanitise(server.entry.name)[:80]} by its URI."
        self.spec = ToolSpec(name, "other", description, _SCHEMA, namespace=prefix)

    def parse(self, arguments: Mapping[str, Any]) -> str:
        uri = arguments.get("uri")
        if not isinstance(uri, str) or not 0 < len(uri) <= MAX_URI:
            raise ToolError(f"{self.spec.name} needs the uri of a resource", code="bad_arguments")
        return uri

    async def permission(self, params: str, workspace: Workspace) -> Permission:
        title = f"read a resource of the MCP server {sanitise(self._server.entry.name)[:80]}"
        fields = DisplayFields((("uri", sanitise(params)[:500]),))
        return Permission(title, (Need(self.spec.name, params[:500], rule_pattern="*"),), Display(title, (fields,)))

    async def run(self, params: str, context: ToolContext) -> ToolResult:
        contents = await _read_contents(self._server, params, context.ask)
        return convert_result({"content": [{"type": "resource", "resource": entry} for entry in contents]})


class ServerResources:
    """The resources of the servers of a session, for prompts."""

    def __init__(self, servers: Sequence[McpServer], ask: Ask) -> None:
        self._servers = {server.entry.name: server for server in servers}
        self._ask = ask

    def is_resource(self, mention: str) -> bool:
        """Return whether a mention names a resource of a server."""
        return self._find(mention) is not None

    def _find(self, mention: str) -> tuple[McpServer, str] | None:
        names = [name for name in self._servers if mention.startswith(f"{name}:") and len(mention) > len(name) + 1]
        if not names:
            return None
        name = max(names, key=len)
        return self._servers[name], mention[len(name) + 1 :]

    async def read(self, mention: str) -> list[PromptContent]:
        """Read the resource that a mention names. Raises `OstlerError`."""
        found = self._find(mention)
        if found is None:
            raise UsageError("there is no such MCP server")
        server, uri = found
        contents = await _read_contents(server, uri[:MAX_URI], self._ask)
        return _as_blocks(server.entry.name, uri, contents)

    def complete(self, query: str) -> list[tuple[str, str]]:
        """Return mentions that begin with `query`, each with a description: servers first, then their resources.

        A mention that ends with a colon or was a template is not complete.
        """
        names = [name for name, server in self._servers.items() if server.is_listed and server.offers.has_resources]
        servers = [(f"{name}:", "MCP server") for name in names if f"{name}:".startswith(query) and f"{name}:" != query]
        found = (entry for name in names if query.startswith(f"{name}:") for entry in self._mentions(name))
        return [*servers, *(entry for entry in found if entry[0].startswith(query))][:MAX_COMPLETIONS]

    def _mentions(self, name: str) -> Iterator[tuple[str, str]]:
        for resource in self._servers[name].offers.resources:
            uri = resource.uri.partition("{")[0] if resource.is_template else resource.uri
            if uri.isprintable():
                yield f"{name}:{uri}", sanitise(resource.description)


async def _read_contents(server: McpServer, uri: str, ask: Ask) -> list[Any]:
    result = await server.read_resource(uri, ask)
    contents = result.get("contents")
    if not isinstance(contents, list) or not contents:
        raise ToolError(f"the MCP server {server.entry.name} returned no content", code="server_error")
    return contents[:MAX_CONTENTS]


def _as_blocks(server: str, uri: str, contents: Sequence[Any]) -> list[PromptContent]:
    """Return the contents for a prompt. Raises `UsageError` if they are too large or all of them are binary."""
    blocks: list[PromptContent] = []
    size = 0
    for entry in contents:
        own = entry.get("uri") if isinstance(entry, dict) else None
        label = sanitise(f"{server}:{own if isinstance(own, str) else uri}")[:MAX_URI]
        part = convert_resource(entry)
        if isinstance(part, ImageContent):
            blocks.append(ImageContent(part.mime, part.data, label))
        elif "\n" in part:  # otherwise it is a note about binary content
            blocks.append(EmbeddedResource(label, text := part.partition("\n")[2]))
            size += len(text)
    if size > MAX_CHARACTERS:
        raise UsageError(f"the resource is too large ({size:,} characters)")
    if not blocks:
        raise UsageError("its content is binary, which Ostler cannot attach")
    return blocks
