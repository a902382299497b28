"""Reads the MCP servers of Claude Code's `.mcp.json` as settings of the project."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ostler.settings.config_files import ConfigFileError, read_config
from ostler.settings.jsonc_parser import KeyPath
from ostler.settings.layers import Layer
from ostler.settings.schema_services import McpConfig
from ostler.settings.secret import decode_secret
from ostler.settings.validate import SchemaViolation, ValidatedConfig

FILE_NAME = ".mcp.json"
_TYPES = {"stdio": "local", "http": "remote", "streamable-http": "remote", "streamableHttp": "remote", "sse": "sse"}
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(:-[^{}]*)?\}")


def mcp_json_layer(folder: Path, notes: list[str]) -> Iterator[Layer]:
    """Read `.mcp.json`. Entries that cannot be used become warnings, so that they never stop Ostler."""
    path = folder / FILE_NAME
    try:
        document = read_config(path)
    except ConfigFileError as error:
        notes.append(f"{error.problem}; its MCP servers are ignored")
        return
    servers = document.value.get("mcpServers") if document and isinstance(document.value, dict) else None
    if document is None or not isinstance(servers, dict):
        return
    entries: dict[str, Any] = {}
    violations: list[SchemaViolation] = []
    for name, server in servers.items():
        entry = _convert(server) if isinstance(server, dict) else server
        try:
            msgspec.convert(entry, McpConfig, dec_hook=decode_secret)
            entries[name] = entry
        except msgspec.ValidationError as error:
            message = f"is not a valid server ({error}); it is ignored"
            violations.append(SchemaViolation(("mcpServers", name), message, unknown_key=True))
    paths: Mapping[KeyPath, KeyPath] = {("mcp",): ("mcpServers",)}
    yield Layer("project", document.file, ValidatedConfig({"mcp": entries}, tuple(violations), paths), document)


def _convert(server: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry in Ostler's form; keys that Ostler does not know are left out."""
    entry: dict[str, Any] = {}
    if "type" in server:
        entry["type"] = _TYPES.get(server["type"], server["type"]) if isinstance(server["type"], str) else None
    if "command" in server:
        args = server.get("args", [])
        entry["command"] = [server["command"], *args] if isinstance(args, list) else args
    for key, name in (("env", "environment"), ("url", "url"), ("headers", "headers"), ("timeout", "timeout_ms")):
        if key in server:
            entry[name] = server[key]
    if server.get("disabled") is True:
        entry["enabled"] = False
    return {key: _convert_references(value) for key, value in entry.items()}


def _convert_references(value: Any) -> Any:
    """Replace `${NAME}` and `${NAME:-default}` by references of Ostler's settings, which are filled in when used."""
    if isinstance(value, str):
        return _VARIABLE.sub(lambda found: f"{{env:{found[1]}{found[2] or ''}}}", value)
    if isinstance(value, dict):
        return {key: _convert_references(inner) for key, inner in value.items()}
    return [_convert_references(inner) for inner in value] if isinstance(value, list) else value
