"""An agent: a way of working with a name, its own words, and bounds of its own."""

from typing import Literal

import msgspec

from ostler.knowledge.tool_lists import Switches, offered
from ostler.vocabulary.permission import Rule

Mode = Literal["primary", "subagent", "all"]


class Agent(msgspec.Struct, frozen=True):
    """One agent, from whatever files speak of it.

    `rules` come after those for all agents, before grants. Each layer of `narrow` may only make a verdict stricter.
    `tools` are layers too: a tool is offered when all of them leave it. `read_only`: its commands run with the
    workspace read-only by the system's sandbox, and where there is none only what a person allows.
    """

    name: str
    mode: Mode = "all"
    description: str = ""
    model: str = ""
    tools: tuple[Switches, ...] = ()
    rules: tuple[Rule, ...] = ()
    narrow: tuple[tuple[Rule, ...], ...] = ()
    max_steps: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    prompt: str = ""
    hidden: bool = False
    read_only: bool = False
    origin: str = "built-in"

    def offers(self, tool: str) -> bool:
        """Whether its model is told of a tool."""
        return offered(tool, self.tools)

    @property
    def talks(self) -> bool:
        """Whether a person can talk to it."""
        return self.mode != "subagent" and not self.hidden

    @property
    def works(self) -> bool:
        """Whether another agent can give it a task."""
        return self.mode != "primary" and not self.hidden
