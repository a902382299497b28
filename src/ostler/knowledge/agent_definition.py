"""Defines an agent: its prompt, model, tools, permission rules and limits."""

from typing import Literal

import msgspec

from ostler.core.permission import Rule
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

    @property
    def user_selectable(self) -> bool:
        """Whether the user can select the agent."""
        return self.mode != "subagent" and not self.hidden

    @property
    def accepts_tasks(self) -> bool:
        """Whether another agent can give the agent a task."""
        return self.mode != "primary" and not self.hidden
