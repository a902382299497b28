"""Starts one MCP server and describes it, for `ostler mcp test`."""

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from ostler.core.errors import ToolError, UsageError
from ostler.mcp.configured_entries import server_entries
from ostler.mcp.configured_servers import ServerMaker, log_file
from ostler.mcp.server import MAX_TOOLS, McpServer
from ostler.mcp.tool_names import server_prefixes, tool_names
from ostler.mcp.tool_schema import MAX_SCHEMA_BYTES, clean_description, clean_schema
from ostler.text.sanitise import sanitise
from ostler.tools.output_limit import LIMIT
from ostler.wire.jsonrpc import RpcError

BYTES_PER_TOKEN = 4
LOG_LINES = 10


async def check_server(cwd: Path, maker: ServerMaker, name: str) -> tuple[list[str], bool]:
    """Start a server; return lines about it and whether it works. Raises `UsageError` if there is no such server."""
    entries = {entry.name: entry for entry in server_entries(cwd, maker.settings)}
    if name not in entries:
        raise UsageError(f"there is no MCP server {name[:80]!r}", hint=f"configured: {', '.join(entries) or 'none'}")
    server = maker.make(msgspec.structs.replace(entries[name], enabled=True))
    start = time.monotonic()
    try:
        await server.client()
        seconds = time.monotonic() - start
        await server.load_offers()
        latency = await _latency(server)
        names = server_prefixes(list(entries))
        return list(_describe(server, names[name], list(names.values()), seconds, latency)), True
    except ToolError as error:
        return [str(error), *log_lines(name)], False
    finally:
        await server.aclose()


async def _latency(server: McpServer) -> float:
    """Return how long the running server takes to answer a request, in milliseconds."""
    client = await server.client()
    start = time.monotonic()
    with suppress(RpcError):
        await client.list_tools(server.entry.start_timeout)
    return (time.monotonic() - start) * 1000


def _describe(server: McpServer, prefix: str, prefixes: list[str], seconds: float, latency: float) -> Iterator[str]:
    found, names = server.description, tool_names(prefix, [tool.name for tool in server.tools], prefixes)
    if found:
        yield f"{server.entry.name}: {sanitise(f'{found.name} {found.version}'.strip()) or 'a server without a name'}"
        yield f"protocol: {found.protocol} ({found.era} era), started in {seconds:.1f} s, answers in {latency:.0f} ms"
    if server.entry.confinement:
        yield f"runs {server.entry.confinement}"
    total = 0
    for tool in server.tools:
        declared = {"description": clean_description(tool.description), "parameters": clean_schema(tool.schema)}
        tokens = len(msgspec.json.encode(declared)) // BYTES_PER_TOKEN + 1
        total += tokens
        yield f"  {names[tool.name]:<40} about {tokens} tokens"
    omitted = f", {server.left_out} left out" if server.left_out else ""
    yield f"{len(server.tools)} tools{omitted}, about {total} tokens in each request"
    if server.offers.prompts or server.offers.resources:
        prompts, resources = len(server.offers.prompts), len(server.offers.resources)
        yield f"{prompts} prompts (slash commands), {resources} resources (@{server.entry.name}:URI)"
    yield (
        f"limits: {MAX_TOOLS} tools per server, {MAX_SCHEMA_BYTES // 1024} KB per schema, {LIMIT} characters per "
        f"result, {server.entry.start_timeout:g} s to start, {server.entry.call_timeout:g} s per call without progress"
    )


def log_lines(name: str, count: int = LOG_LINES) -> list[str]:
    """Return the last lines of a server's log."""
    file = log_file(name)
    try:
        with file.open("rb") as log:
            log.seek(0, 2)
            log.seek(max(0, log.tell() - 64 * 1024))
            text = log.read().decode("utf-8", "replace")
    except OSError:
        return []
    return [sanitise(line) for line in text.splitlines()[-count:]]
