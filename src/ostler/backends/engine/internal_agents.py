"""The internal agents for titles, summaries and compaction: their prompts and model."""

from collections.abc import Callable

import msgspec

from ostler.knowledge.agent_definition import AgentRole
from ostler.knowledge.builtin_agents import builtin_agents


def built_in_role(name: str) -> AgentRole:
    """Return an internal agent's built-in role."""
    return AgentRole(name, builtin_agents()[name].prompt)


class InternalAgents(msgspec.Struct, frozen=True):
    """The internal agents of a session.

    `role` returns an agent's role by name; `makes_titles` enables titles and summaries; `model` is a small model for
    this work, by default the session's model.
    """

    role: Callable[[str], AgentRole] = built_in_role
    makes_titles: bool = False
    model: str = ""
