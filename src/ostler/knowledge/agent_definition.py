"""An agent: a way of working with a name, its own words, and bounds of its own."""

from typing import Literal

import msgspec

from ostler.core.permission import Rule
from ostler.knowledge.tool_lists import ToolSwitches, is_tool_allowed

AgentMode = Literal["primary", "subagent", "all"]


class AgentDefinition(msgspec.Struct, frozen=True):
    """One agent, from whatever files speak of it.

    `rules` come after those for all agents, before grants. Each layer of `narrow` may only make a verdict stricter.
    `tools` are layers too: a tool is offered when all of them leave it. `read_only`: its commands run with the
    workspace read-only by the system's sandbox, and where there is none only what a person allows.
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
        """Whether its model is told of a tool."""
        return is_tool_allowed(tool, self.tools)

    @property
    def user_selectable(self) -> bool:
        """Whether a person can talk to it."""
        return self.mode != "subagent" and not self.hidden

    @property
    def accepts_tasks(self) -> bool:
        """Whether another agent can give it a task."""
        return self.mode != "primary" and not self.hidden
