"""Names of MCP tools: `<server>_<tool>`, without collisions, in the characters and length that all providers accept."""

import hashlib
import re
from collections.abc import Collection, Sequence
from functools import cache

from ostler.core.tool_aliases import normalize_name, tools_by_alias
from ostler.core.tool_declarations import tool_names as builtin_names

MAX_NAME = 64
MAX_SERVER = 32
_HASH_LENGTH = 6
_NOT_ALLOWED = re.compile(r"[^A-Za-z0-9_-]+")
# Permission keys that are not tools; a tool with such a name would get the rules for them.
_OTHER_KEYS = ("delete", "external_directory", "network", "agent", "mcp_search", "mcp_call")


def server_prefixes(servers: Sequence[str]) -> dict[str, str]:
    """Return the first part of the names of each server's tools, without the underscore."""
    prefixes: dict[str, str] = {}
    for server in sorted(servers, key=lambda server: (_NOT_ALLOWED.search(server) is not None, server)):
        prefix = _NOT_ALLOWED.sub("_", server).strip("_")
        if not prefix or len(prefix) > MAX_SERVER or prefix in prefixes.values():
            prefix = f"{prefix[: MAX_SERVER - _HASH_LENGTH - 1] or 'server'}_{_hash(server)}"
        prefixes[server] = prefix
    return {server: prefixes[server] for server in servers}


def tool_names(prefix: str, tools: Sequence[str], prefixes: Collection[str]) -> dict[str, str]:
    """Return a name for each tool of the server with this prefix. `prefixes` are those of all servers.

    A name does not depend on the order in which servers start: a tool whose name would be a built-in one, or would
    begin like the names of another server, gets a hash after the server's name.
    """
    others = tuple(f"{other}_" for other in prefixes if other != prefix and other.startswith(f"{prefix}_"))
    named: dict[str, str] = {}
    for tool in sorted(tools, key=lambda tool: (_NOT_ALLOWED.search(tool) is not None, len(tool), tool)):
        cleaned = _NOT_ALLOWED.sub("_", tool)
        name = f"{prefix}_{cleaned}"
        if name in named.values() or len(name) > MAX_NAME or _is_reserved(name) or name.startswith(others):
            name = f"{prefix}_{_hash(tool)}_{cleaned}"[:MAX_NAME]
        named[tool] = name
    return {tool: named[tool] for tool in tools}


def _is_reserved(name: str) -> bool:
    return name in _OTHER_KEYS or normalize_name(name) in _reserved_names()


@cache
def _reserved_names() -> frozenset[str]:
    return frozenset(normalize_name(name) for name in (*builtin_names(), *tools_by_alias()))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:_HASH_LENGTH]
