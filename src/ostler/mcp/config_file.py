"""Adds and removes MCP servers in the user's config file."""

import json
import os
from pathlib import Path
from typing import Any

from ostler.core.errors import UsageError
from ostler.settings.home import ensure_home
from ostler.settings.private_file import locked_for_change, replace_private
from ostler.settings.validate import validate


def add_server(name: str, entry: dict[str, Any], *, replace: bool) -> Path:
    """Add a server to the user's config file and return the file. Raises `UsageError`."""
    return _change(lambda servers: _add(servers, name, entry, replace=replace), name, entry)


def remove_server(name: str) -> Path:
    """Remove a server from the user's config file and return the file. Raises `UsageError`."""

    def remove(servers: dict[str, Any]) -> None:
        if servers.pop(name, None) is None:
            known = ", ".join(servers) or "none"
            raise UsageError(f"your config has no MCP server {name[:80]!r}", hint=f"it has: {known}")

    return _change(remove, name, None)


def _add(servers: dict[str, Any], name: str, entry: dict[str, Any], *, replace: bool) -> None:
    if name in servers and not replace:
        raise UsageError(f"there is already an MCP server {name[:80]!r}", hint="use --replace to change it")
    servers[name] = entry


def _change(change: Any, name: str, entry: dict[str, Any] | None) -> Path:
    file = _config_file()
    with locked_for_change(file):
        text = file.read_text(encoding="utf-8") if file.exists() else "{}"
        try:
            value = json.loads(text)
        except ValueError:
            raise _by_hand_error(file, name, entry) from None
        if not isinstance(value, dict) or not isinstance(value.get("mcp", {}), dict):
            raise UsageError(f"{file} is not a valid config", hint="run `ostler config check`")
        servers = value.setdefault("mcp", {})
        change(servers)
        violations = [violation for violation in validate(value).violations if violation.path[:1] == ("mcp",)]
        if violations:
            raise UsageError(f"the server is not valid: {violations[0].message}")
        replace_private(file, (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode())
    return file


def _config_file() -> Path:
    home = ensure_home(os.environ)
    jsonc = home / "config.jsonc"
    return jsonc if jsonc.exists() else home / "config.json"


def _by_hand_error(file: Path, name: str, entry: dict[str, Any] | None) -> UsageError:
    """Return an error for a file with comments, which a rewrite would lose."""
    what = f'add "{name}": {json.dumps(entry)} to its "mcp"' if entry else f'remove "{name}" from its "mcp"'
    return UsageError(f"{file} has comments, which Ostler does not rewrite", hint=what)
