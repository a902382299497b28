"""The states of the MCP servers of a session as lines, and the actions that change them, for `/mcp`."""

from collections.abc import Sequence

from ostler.core.errors import UsageError
from ostler.core.protocols import Session
from ostler.mcp.tool_source import McpToolSource


def status_lines(session: Session, source: McpToolSource, name: str = "") -> list[str]:
    """Return one line for each server, or for the named one: name, state, tools, sandbox and error."""
    source.report_states()
    states = [state for state in session.state.servers.values() if name in ("", state.name)]
    width = max((len(state.name) for state in states), default=0)
    return [
        "  ".join(
            filter(
                None,
                (
                    f"{state.name:<{width}}",
                    f"{state.state:<8}",
                    _count(state.tools),
                    server.entry.confinement if (server := source.server(state.name)) else "",
                    state.detail,
                ),
            )
        )
        for state in states
    ]


def _count(tools: int) -> str:
    return f"{tools} tool{'' if tools == 1 else 's'}"


ACTIONS = ("restart", "disable", "enable")


async def apply_action(session: Session, source: McpToolSource, words: Sequence[str]) -> list[str]:
    """Run `restart`, `disable` or `enable` for a server. Raises `UsageError` for anything else."""
    from ostler.text.closest_name import closest_name

    names = [status.name for status in source.statuses()]
    if len(words) != 2 or words[0] not in ACTIONS:
        raise UsageError(f"unknown arguments {' '.join(words)[:80]!r}", hint="/mcp [restart|disable|enable NAME]")
    server = source.server(words[1])
    if server is None:
        suggestion = closest_name(words[1], names)
        hint = f"did you mean {suggestion}?" if suggestion else f"available: {', '.join(names) or 'none'}"
        raise UsageError(f"there is no MCP server {words[1][:80]!r}", hint=hint)
    await (server.disable() if words[0] == "disable" else server.restart())
    return status_lines(session, source, words[1])
