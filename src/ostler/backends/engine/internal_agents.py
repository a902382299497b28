"""The hidden agents that do the engine's own work: whose words they have, which model, whether they name sessions."""

from collections.abc import Callable

import msgspec

from ostler.backends.engine.role import AgentRole
from ostler.knowledge.builtin_agents import builtin_agents


def built_in_role(name: str) -> AgentRole:
    """A hidden agent as it comes with Ostler."""
    return AgentRole(name, builtin_agents()[name].prompt)


class InternalAgents(msgspec.Struct, frozen=True):
    """`role` tells a hidden agent's words and model; `names` whether sessions get titles and summaries from a model.

    `model` is a small one for such work; without it, the session's own does it.
    """

    role: Callable[[str], AgentRole] = built_in_role
    makes_titles: bool = False
    model: str = ""
