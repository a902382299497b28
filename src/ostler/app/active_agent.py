"""Joins the chosen agent to a session: its words to the engine, its tools to the door, its rules to the policy."""

from collections.abc import Mapping

import msgspec

from ostler.app.run_options import RunOptions
from ostler.app.session_workspace import SessionShell
from ostler.backends.engine.role import AgentRole
from ostler.core.errors import UsageError
from ostler.knowledge.agent_definition import AgentDefinition
from ostler.knowledge.agent_loader import DEFAULT_AGENT
from ostler.knowledge.builtin_agents import builtin_agents
from ostler.policy.verdict import Policy, Profile


class ActiveAgent:
    """Which agent works in a session; whatever follows from that is asked for here."""

    def __init__(
        self,
        agents: Mapping[str, AgentDefinition],
        policy: Policy,
        options: RunOptions,
        shell: SessionShell | None = None,
        parent: "ActiveAgent | None" = None,
    ) -> None:
        """`shell` runs the session's commands, where this process does; `below` is the parent's choice of a child."""
        self._parent = parent
        self._agents = agents
        self._policy = policy
        self._options = options
        self.shell = shell
        self._agent = agents[DEFAULT_AGENT]

    def select(self, name: str, *, child: bool = False) -> AgentRole:
        """Let an agent work from now on."""
        agent = self._agent if name in ("", self._agent.name) else self._find(name, child=child)
        self._agent = agent
        if self.shell:
            self.shell.read_only = self.read_only
        return AgentRole(
            agent.name,
            agent.prompt,
            "" if self._options.model.get("model") else agent.model,
            _max_steps(agent, self._options.max_steps),
            agent.temperature,
            agent.top_p,
        )

    def internal_role(self, name: str) -> AgentRole:
        """An agent that does the house's own work."""
        agent = self._agents.get(name) or builtin_agents()[name]
        return AgentRole(agent.name, agent.prompt, agent.model)

    @property
    def profile(self) -> Profile:
        """The security profile in force, before a read-only agent narrows it."""
        return self._policy.profile

    @profile.setter
    def profile(self, name: Profile) -> None:
        self._policy = msgspec.structs.replace(self._policy, profile=name)

    @property
    def read_only(self) -> bool:
        """Whether the agent, or the one above it, changes nothing."""
        return self._agent.read_only or (self._parent is not None and self._parent.read_only)

    def allows_tool(self, tool: str) -> bool:
        """Whether the agent has a tool, and the one above it too."""
        return self._agent.allows_tool(tool) and (self._parent is None or self._parent.allows_tool(tool))

    def policy(self) -> Policy:
        """The session's policy with the agent's rules in it."""
        agent, policy = self._agent, self._policy
        narrowed = msgspec.structs.replace(
            policy, rules=(*policy.rules, *agent.rules), restrictions=(*policy.restrictions, *agent.restrictions)
        )
        return self._without_writes(narrowed) if self.read_only else narrowed

    def _without_writes(self, policy: Policy) -> Policy:
        """A command passes when our sandbox keeps the workspace as it is, else only when a person's rule says so."""
        profile = "balanced" if policy.profile == "god_mode" else policy.profile
        return msgspec.structs.replace(policy, profile=profile, allow_sandboxed=self.shell is not None)

    def _find(self, name: str, *, child: bool) -> AgentDefinition:
        agent = self._agents.get(name)
        if agent and (agent.accepts_tasks if child else agent.user_selectable):
            return agent
        names = sorted(
            one.name for one in self._agents.values() if (one.accepts_tasks if child else one.user_selectable)
        )
        raise UsageError(f"there is no agent {name[:80]!r} to work with here", hint=f"there is: {', '.join(names)}")


def _max_steps(agent: AgentDefinition, flag: int) -> int | None:
    return min(agent.max_steps or flag, flag) if flag else agent.max_steps
