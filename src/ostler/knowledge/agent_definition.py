"""Defines an agent: its prompt, model, tools, permission rules and limits."""

from collections.abc import Callable
from typing import Literal

import msgspec

from ostler.core.permission import Rule
from ostler.core.tool_declarations import tool_names
from ostler.knowledge.tool_lists import ToolSwitches, is_tool_allowed

AgentMode = Literal["primary", "subagent", "all"]


class AgentDefinition(msgspec.Struct, frozen=True):
    """An agent, merged from everything that defines it.

    `rules` are checked after the general ones and before grants. Each layer of `restrictions` can only make a verdict
    stricter. `tools` are layers too: a tool is offered if all of them allow it. With `read_only` the sandbox mounts the
    workspace read-only for commands; without a sandbox, commands need approval.
    """

    name: str
    mode: AgentMode = "all"
    description: str = ""
    model: str = ""
    tools: tuple[ToolSwitches, ...] = ()
    rules: tuple[Rule, ...] = ()
    restrictions: tuple[tuple[Rule, ...], ...] = ()
    max_steps: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    prompt: str = ""
    hidden: bool = False
    read_only: bool = False
    origin: str = "built-in"

    def allows_tool(self, tool: str) -> bool:
        """Return whether the agent's model is offered a tool."""
        return is_tool_allowed(tool, self.tools)

    def may_do_more_than(self, other: "AgentDefinition") -> bool:
        """Return whether the agent may do something that the other one may not, as far as their definitions show."""
        named = {name for agent in (self, other) for layer in agent.tools for name, _ in layer}
        names = named | {*tool_names(lambda tool: tool.effects)}
        return (
            (other.read_only and not self.read_only)
            or not set(other.restrictions) <= set(self.restrictions)
            or any(self.allows_tool(name) and not other.allows_tool(name) for name in names)
            or any(rule.action != "deny" for rule in self.rules if rule not in other.rules)
            or any(rule.action != "allow" for rule in other.rules if rule not in self.rules)
        )

    @property
    def user_selectable(self) -> bool:
        """Whether the user can select the agent."""
        return self.mode != "subagent" and not self.hidden

    @property
    def accepts_tasks(self) -> bool:
        """Whether another agent can give the agent a task."""
        return self.mode != "primary" and not self.hidden


class AgentRole(msgspec.Struct, frozen=True):
    """The settings of an agent that concern the engine; permissions are handled by the policy."""

    name: str = ""
    prompt: str = ""
    model: str = ""
    max_steps: int | None = None
    temperature: float | None = None
    top_p: float | None = None


FindRole = Callable[[str], AgentRole]


def no_roles(name: str) -> AgentRole:
    """Return a role that only has a name, for engines without agents."""
    return AgentRole(name)
