"""Output of the `--list-*` flags, as text or as frames."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ostler.core.sessions import SlashCommand
from ostler.frontends.acp_cli.agent_host import ConnectedAgent
from ostler.wire.acp import SessionModeState
from ostler.wire.acp_requests import AcpSessionInfo

Listing = tuple[list[str], str, Any]  # lines of text; the same as a frame's method and parameters


def capabilities(agent: ConnectedAgent) -> Listing:
    raw = agent.raw_info if isinstance(agent.raw_info, dict) else {}
    fields = {name: raw.get(name) for name in ("protocolVersion", "authMethods", "agentCapabilities")}
    lines = [f"# Capabilities ({agent.name})", f"Protocol Version: {agent.info.protocol_version}"]
    lines += [f"- {key}" for key in _offered_names(fields["agentCapabilities"])]
    lines += [f"- login: {method.id} ({method.name})" for method in agent.info.auth_methods]
    return lines, "client/capabilities", fields


def modes(agent: ConnectedAgent, found: SessionModeState | None) -> Listing:
    if found is None or not found.available_modes:
        return [f"# Modes ({agent.name})", "(no modes)"], "client/modes", {"current": None, "available": []}
    lines = [f"# Modes ({agent.name})", f"Current: {found.current_mode_id}", "Available:"]
    lines += [f"- {mode.id}: {mode.name}" for mode in found.available_modes]
    available = [{"id": mode.id, "name": mode.name} for mode in found.available_modes]
    return lines, "client/modes", {"current": found.current_mode_id, "available": available}


def commands(agent: ConnectedAgent, found: Sequence[SlashCommand]) -> list[str]:
    """Return lines only: frame output already has the agent's own update."""
    lines = [
        f"- /{command.name} - {command.description}{f' [{command.hint}]' if command.hint else ''}" for command in found
    ]
    return [f"# Commands ({agent.name})", *(lines or ["(no commands)"])]


def sessions(agent: ConnectedAgent, found: Sequence[AcpSessionInfo]) -> Listing:
    lines = [f"- {session.session_id} {session.title or ''} {session.updated_at or ''}".rstrip() for session in found]
    params = {"sessions": msgspec.to_builtins(found)}
    return [f"# Sessions ({agent.name})", *(lines or ["(no sessions)"])], "client/sessions", params


def _offered_names(value: Any, prefix: str = "") -> Iterator[str]:
    """Yield the dotted names of the capabilities that are on; an empty object means on."""
    if not isinstance(value, dict):
        return
    for key, item in value.items():
        name = f"{prefix}{key}"
        if key == "_meta" or item is None or item is False:
            continue
        if isinstance(item, dict) and item:
            yield from _offered_names(item, f"{name}.")
        else:
            yield name
