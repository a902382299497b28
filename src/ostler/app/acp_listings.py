"""What `--list-*` prints of an agent: for people as short lists, for machines as frames."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ostler.backends.acp.agent_client import AcpAgentClient
from ostler.core.sessions import SlashCommand
from ostler.wire.acp import SessionModeState
from ostler.wire.acp_requests import AcpSessionInfo

Listing = tuple[list[str], str, Any]  # the lines, and the same as a method with its parameters


def capabilities(agent: AcpAgentClient) -> Listing:
    raw = agent.raw_info if isinstance(agent.raw_info, dict) else {}
    found = {name: raw.get(name) for name in ("protocolVersion", "authMethods", "agentCapabilities")}
    lines = [f"# Capabilities ({agent.name})", f"Protocol Version: {agent.info.protocol_version}"]
    lines += [f"- {key}" for key in _offered_names(found["agentCapabilities"])]
    lines += [f"- login: {method.id} ({method.name})" for method in agent.info.auth_methods]
    return lines, "client/capabilities", found


def modes(agent: AcpAgentClient, found: SessionModeState | None) -> Listing:
    if found is None or not found.available_modes:
        return [f"# Modes ({agent.name})", "(no modes)"], "client/modes", {"current": None, "available": []}
    lines = [f"# Modes ({agent.name})", f"Current: {found.current_mode_id}", "Available:"]
    lines += [f"- {mode.id}: {mode.name}" for mode in found.available_modes]
    available = [{"id": mode.id, "name": mode.name} for mode in found.available_modes]
    return lines, "client/modes", {"current": found.current_mode_id, "available": available}


def commands(agent: AcpAgentClient, found: Sequence[SlashCommand]) -> list[str]:
    """Machines hear of them in the agent's own update."""
    lines = [f"- /{one.name} - {one.description}{f' [{one.hint}]' if one.hint else ''}" for one in found]
    return [f"# Commands ({agent.name})", *(lines or ["(no commands)"])]


def sessions(agent: AcpAgentClient, found: Sequence[AcpSessionInfo]) -> Listing:
    lines = [f"- {session.session_id} {session.title or ''} {session.updated_at or ''}".rstrip() for session in found]
    params = {"sessions": msgspec.to_builtins(found)}
    return [f"# Sessions ({agent.name})", *(lines or ["(no sessions)"])], "client/sessions", params


def _offered_names(value: Any, prefix: str = "") -> Iterator[str]:
    """The names of what is offered, those inside others with a dot; an empty object is a yes."""
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
