"""Faults of known agents that this client works around."""

from ostler.wire.acp_requests import InitializeResponse

# gemini-cli reads a file through the client before it creates it, and takes every error for a failure of the file
# system. Other agents need the error to know that a file does not exist.
_EXPECTS_EMPTY_CONTENT = frozenset(["gemini-cli"])


def expects_empty_content(agent: InitializeResponse) -> bool:
    """Return whether a missing file must be answered with empty content, so that the agent can create it."""
    return agent.agent_info is not None and agent.agent_info.name in _EXPECTS_EMPTY_CONTENT
