"""Messages of the Model Context Protocol, in both eras: a handshake (legacy) or metadata in each request (modern)."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

Era = Literal["modern", "legacy"]

MODERN_VERSION = "2026-07-28"
LEGACY_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
MAX_URI = 2000
MAX_DESCRIPTION = 500
MAX_ARGUMENTS = 50
MAX_NAME = 100
MAX_INSTRUCTIONS = 20_000
META = "_meta"
VERSION_META = "io.modelcontextprotocol/protocolVersion"
CLIENT_META = "io.modelcontextprotocol/clientInfo"
CAPABILITIES_META = "io.modelcontextprotocol/clientCapabilities"
SERVER_META = "io.modelcontextprotocol/serverInfo"

HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022
URL_REQUIRED = -32042  # of version 2025-11-25: the user must open URLs before the request is repeated
MODERN_ERRORS = frozenset({HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION})

DISCOVER = "server/discover"
INITIALIZE = "initialize"
INITIALIZED = "notifications/initialized"
LIST_TOOLS = "tools/list"
CALL_TOOL = "tools/call"
LIST_PROMPTS = "prompts/list"
GET_PROMPT = "prompts/get"
LIST_RESOURCES = "resources/list"
LIST_TEMPLATES = "resources/templates/list"
READ_RESOURCE = "resources/read"
LISTEN = "subscriptions/listen"
ELICIT = "elicitation/create"
PROGRESS = "notifications/progress"
TOOLS_CHANGED = "notifications/tools/list_changed"
PROMPTS_CHANGED = "notifications/prompts/list_changed"
RESOURCES_CHANGED = "notifications/resources/list_changed"


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


class PromptArgument(msgspec.Struct, frozen=True, omit_defaults=True):
    """An argument of a server's prompt."""

    name: str
    required: bool = False


class ServerPrompt(msgspec.Struct, frozen=True, omit_defaults=True):
    """A prompt that a server offers; everything in it is untrusted."""

    name: str
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()


class ServerResource(msgspec.Struct, frozen=True, omit_defaults=True):
    """A resource that a server offers. The `uri` of a template has placeholders in braces."""

    uri: str
    description: str = ""
    is_template: bool = False


class ServerDescription(msgspec.Struct, frozen=True, omit_defaults=True):
    """A server after its start: protocol era and version, its own name and version, capabilities, instructions."""

    era: Era
    protocol: str
    name: str = ""
    version: str = ""
    capabilities: dict[str, Any] = {}
    instructions: str = ""

    def announces_changes(self, kind: Literal["tools", "prompts", "resources"]) -> bool:
        """Return whether the server sends a notification when this list changes."""
        capability = self.capabilities.get(kind)
        return isinstance(capability, dict) and capability.get("listChanged") is True


def request_meta(client: Mapping[str, str], capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata that every request of the modern era has."""
    return {VERSION_META: MODERN_VERSION, CLIENT_META: dict(client), CAPABILITIES_META: dict(capabilities)}


def read_tool(value: Any) -> ServerTool | None:
    """Return a tool of a `tools/list` result, or None if it has no usable name or runs only as a task."""
    if not isinstance(value, dict) or not isinstance(value.get("name"), str) or not value["name"].strip():
        return None
    execution = value.get("execution")
    if isinstance(execution, dict) and execution.get("taskSupport") == "required":
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


def read_prompt(value: Any) -> ServerPrompt | None:
    """Return a prompt of a `prompts/list` result, or None if it has no usable name."""
    if not isinstance(value, dict) or not isinstance(value.get("name"), str) or not value["name"].strip():
        return None
    listed = value.get("arguments")
    arguments = [
        PromptArgument(entry["name"], entry.get("required") is True)
        for entry in (listed if isinstance(listed, list) else [])
        if isinstance(entry, dict) and isinstance(entry.get("name"), str)
    ]
    description = _text(value.get("description")) or _text(value.get("title"))
    return ServerPrompt(value["name"], description[:MAX_DESCRIPTION], tuple(arguments[:MAX_ARGUMENTS]))


def read_resource_entry(value: Any) -> ServerResource | None:
    """Return a resource of `resources/list` or `resources/templates/list`, or None if it has no URI."""
    if not isinstance(value, dict):
        return None
    template = value.get("uriTemplate")
    uri = template if isinstance(template, str) else value.get("uri")
    if not isinstance(uri, str) or not 0 < len(uri) <= MAX_URI:
        return None
    description = _text(value.get("title")) or _text(value.get("name")) or _text(value.get("description"))
    return ServerResource(uri, description[:MAX_DESCRIPTION], isinstance(template, str))


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
        _text(info.get("name"))[:MAX_NAME],
        _text(info.get("version"))[:MAX_NAME],
        capabilities if isinstance(capabilities, dict) else {},
        _text(instructions)[:MAX_INSTRUCTIONS],
    )


def supported_versions(value: Any) -> Sequence[str]:
    """Return the protocol versions in a list from a server; other values are ignored."""
    return [version for version in value if isinstance(version, str)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
