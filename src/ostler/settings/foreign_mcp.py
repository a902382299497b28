"""Reads the MCP servers of Claude Code's `.mcp.json` and of OpenCode's config files as settings."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ostler.settings.config_files import ConfigFileError, read_config
from ostler.settings.jsonc_parser import JsoncDocument, KeyPath
from ostler.settings.layers import Layer, LayerName
from ostler.settings.schema_services import McpConfig
from ostler.settings.secret import decode_secret
from ostler.settings.user_paths import with_absolute_paths
from ostler.settings.validate import SchemaViolation, ValidatedConfig

FILE_NAME = ".mcp.json"
OPENCODE_FILE_NAMES = ("opencode.json", "opencode.jsonc")
_OPENCODE_KEYS = ("type", "enabled", "command", "environment", "cwd", "url", "headers")
_OAUTH_KEYS = {"clientId": "client_id", "clientSecret": "client_secret", "scope": "scope", "scopes": "scope"} | {
    "callbackPort": "redirect_port"
}
_TYPES = {"stdio": "local", "http": "remote", "streamable-http": "remote", "streamableHttp": "remote", "sse": "sse"}
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(:-[^{}]*)?\}")


def mcp_json_layer(folder: Path, notes: list[str]) -> Iterator[Layer]:
    """Read `.mcp.json`. Entries that cannot be used become warnings, so that they never stop Ostler."""
    if document := _read_foreign(folder / FILE_NAME, notes):
        yield from _server_layer("project", document, ("mcpServers",), _convert)


def opencode_layers(name: LayerName, folder: Path, notes: list[str]) -> Iterator[Layer]:
    """Read the MCP servers of OpenCode's files in a folder; its other settings are ignored."""
    for file_name in OPENCODE_FILE_NAMES:
        document = _read_foreign(folder / file_name, notes)
        if document is None:
            continue
        for layer in _server_layer(name, document, _opencode_servers_path(document.value), _convert_opencode):
            if name != "project":
                layer.value = with_absolute_paths(layer.value, os.path.abspath(folder))
            yield layer


def _read_foreign(path: Path, notes: list[str]) -> JsoncDocument | None:
    try:
        return read_config(path)
    except ConfigFileError as error:
        notes.append(f"{error.problem}; its MCP servers are ignored")
        return None


def _server_layer(
    name: LayerName, document: JsoncDocument, path: KeyPath, convert: Callable[[Mapping[str, Any]], dict[str, Any]]
) -> Iterator[Layer]:
    """Yield the servers at `path` of a document as a layer, if there are any."""
    servers: Any = document.value
    for key in path:
        servers = servers.get(key) if isinstance(servers, dict) else None
    if not isinstance(servers, dict):
        return
    entries: dict[str, Any] = {}
    violations: list[SchemaViolation] = []
    for server_name, server in servers.items():
        entry = convert(server) if isinstance(server, dict) else server
        try:
            msgspec.convert(entry, McpConfig, dec_hook=decode_secret)
            entries[server_name] = entry
        except msgspec.ValidationError as error:
            message = f"is not a valid server ({error}); it is ignored"
            violations.append(SchemaViolation((*path, server_name), message, unknown_key=True))
    validated = ValidatedConfig({"mcp": entries}, tuple(violations), {("mcp",): path})
    yield Layer(name, document.file, validated, document)


def _opencode_servers_path(value: Any) -> KeyPath:
    """Return where a file of OpenCode lists its servers: `mcp.servers` in version 2, `mcp` before."""
    servers = value.get("mcp") if isinstance(value, dict) else None
    nested = servers.get("servers") if isinstance(servers, dict) else None
    is_entry = isinstance(nested, dict) and any(isinstance(nested.get(key), str | bool) for key in ("type", "enabled"))
    return ("mcp", "servers") if isinstance(nested, dict) and not is_entry else ("mcp",)


def _convert_opencode(server: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry of OpenCode in Ostler's form. Its references (`{env:NAME}`) are the same."""
    entry = {key: server[key] for key in _OPENCODE_KEYS if key in server}
    entry |= _convert_shared(server)
    timeout = server.get("timeout")
    times = timeout if isinstance(timeout, dict) else {"startup": timeout, "request": timeout}
    limits = {"start_timeout_ms": times.get("startup"), "timeout_ms": times.get("request")}
    return entry | {key: value for key, value in limits.items() if value is not None}


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
    entry |= _convert_shared(server)
    return {key: _convert_references(value) for key, value in entry.items()}


def _convert_shared(server: Mapping[str, Any]) -> dict[str, Any]:
    """Return the OAuth settings of an entry, as far as Ostler knows them, and that it is off."""
    shared: dict[str, Any] = {"enabled": False} if server.get("disabled") is True else {}
    oauth = server.get("oauth")
    if isinstance(oauth, dict):
        found = {_OAUTH_KEYS[key]: value for key, value in oauth.items() if key in _OAUTH_KEYS}
        if isinstance(scope := found.get("scope"), list):
            found["scope"] = " ".join(map(str, scope))
        shared["oauth"] = found
    elif oauth is False:
        shared["oauth"] = False
    return shared


def _convert_references(value: Any) -> Any:
    """Replace `${NAME}` and `${NAME:-default}` by references of Ostler's settings, which are filled in when used."""
    if isinstance(value, str):
        return _VARIABLE.sub(lambda found: f"{{env:{found[1]}{found[2] or ''}}}", value)
    if isinstance(value, dict):
        return {key: _convert_references(inner) for key, inner in value.items()}
    return [_convert_references(inner) for inner in value] if isinstance(value, list) else value
