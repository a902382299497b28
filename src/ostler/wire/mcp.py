"""Messages of the Model Context Protocol, in both eras: a handshake (legacy) or metadata in each request (modern)."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

Era = Literal["modern", "legacy"]

MODERN_VERSION = "2026-07-28"
LEGACY_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
META = "_meta"
VERSION_META = "io.modelcontextprotocol/protocolVersion"
CLIENT_META = "io.modelcontextprotocol/clientInfo"
CAPABILITIES_META = "io.modelcontextprotocol/clientCapabilities"
SERVER_META = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_META = "io.modelcontextprotocol/subscriptionId"

HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022
MODERN_ERRORS = frozenset({HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION})

DISCOVER = "server/discover"
INITIALIZE = "initialize"
INITIALIZED = "notifications/initialized"
LIST_TOOLS = "tools/list"
CALL_TOOL = "tools/call"
LISTEN = "subscriptions/listen"
ELICIT = "elicitation/create"
PROGRESS = "notifications/progress"
TOOLS_CHANGED = "notifications/tools/list_changed"


class ToolHints(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a server says about a tool. A missing hint means the worst; no hint grants a permission."""

    read_only: bool = False
    idempotent: bool = False


class ServerTool(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool as its server declares it; everything in it is untrusted."""

    name: str
    description: str = ""
    schema: dict[str, Any] = {}
    hints: ToolHints = ToolHints()


class ServerDescription(msgspec.Struct, frozen=True, omit_defaults=True):
    """A server after its start: protocol era and version, its own name and version, capabilities, instructions."""

    era: Era
    protocol: str
    name: str = ""
    version: str = ""
    capabilities: dict[str, Any] = {}
    instructions: str = ""

    @property
    def announces_tool_changes(self) -> bool:
        tools = self.capabilities.get("tools")
        return isinstance(tools, dict) and tools.get("listChanged") is True


def request_meta(client: Mapping[str, str], capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata that every request of the modern era has."""
    return {VERSION_META: MODERN_VERSION, CLIENT_META: dict(client), CAPABILITIES_META: dict(capabilities)}


def read_tool(value: Any) -> ServerTool | None:
    """Return a tool of a `tools/list` result, or None if it has no usable name."""
    if not isinstance(value, dict) or not isinstance(value.get("name"), str) or not value["name"].strip():
        return None
    schema, hints = value.get("inputSchema"), value.get("annotations")
    hints = hints if isinstance(hints, dict) else {}
    description = value.get("description") or value.get("title") or hints.get("title")
    return ServerTool(
        value["name"],
        description if isinstance(description, str) else "",
        schema if isinstance(schema, dict) else {},
        ToolHints(hints.get("readOnlyHint") is True, hints.get("idempotentHint") is True),
    )


def describe_discovery(result: Mapping[str, Any]) -> ServerDescription:
    """Return the description in a `server/discover` result."""
    meta = result.get(META)
    return _describe("modern", MODERN_VERSION, result, meta.get(SERVER_META) if isinstance(meta, dict) else None)


def describe_handshake(result: Mapping[str, Any]) -> ServerDescription:
    """Return the description in an `initialize` result."""
    version = result.get("protocolVersion")
    return _describe("legacy", version if isinstance(version, str) else "", result, result.get("serverInfo"))


def _describe(era: Era, protocol: str, result: Mapping[str, Any], info: Any) -> ServerDescription:
    info = info if isinstance(info, dict) else {}
    capabilities, instructions = result.get("capabilities"), result.get("instructions")
    return ServerDescription(
        era,
        protocol,
        _text(info.get("name")),
        _text(info.get("version")),
        capabilities if isinstance(capabilities, dict) else {},
        _text(instructions),
    )


def supported_versions(value: Any) -> Sequence[str]:
    """Return the protocol versions in a list from a server; other values are ignored."""
    return [version for version in value if isinstance(version, str)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
