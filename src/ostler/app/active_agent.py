"""The active agent of a session: its role for the engine, its tools and its policy rules."""

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
    """The agent that a session uses now, and the policy and tools that follow from it."""

    def __init__(
        self,
        agents: Mapping[str, AgentDefinition],
        policy: Policy,
        options: RunOptions,
        shell: SessionShell | None = None,
        parent: "ActiveAgent | None" = None,
    ) -> None:
        """`shell` is set if this process runs the commands; `parent` is the active agent of the parent session.

        A child is restricted by its parent's agent of now and by the one at its start, so that no switch widens it.
        """
        self._parent = parent
        self._started_read_only = parent is not None and parent.read_only
        self._parent_agent_at_start: AgentDefinition | None = parent._agent if parent else None
        self._agents = agents
        self._policy = policy
        self._options = options
        self._agent: AgentDefinition = agents[DEFAULT_AGENT]
        self._shell: SessionShell | None = None
        self.shell = shell

    def select(self, name: str, *, child: bool = False) -> AgentRole:
        """Make `name` the active agent and return its role. Raises `UsageError` if there is no such agent."""
        agent = self._agent if name in ("", self._agent.name) else self._find(name, child=child)
        self._agent = agent
        return AgentRole(
            agent.name,
            agent.prompt,
            self._own_model(agent),
            _max_steps(agent, self._options.max_steps),
            agent.temperature,
            agent.top_p,
        )

    @property
    def shell(self) -> SessionShell | None:
        """The shell of the session; it asks the active agent at every command whether to be read-only."""
        return self._shell

    @shell.setter
    def shell(self, shell: SessionShell | None) -> None:
        self._shell = shell
        if shell:
            shell.is_agent_read_only = lambda: self.read_only

    def internal_role(self, name: str) -> AgentRole:
        """Return the role of an internal agent, such as `title`."""
        agent = self._agents.get(name) or builtin_agents()[name]
        return AgentRole(agent.name, agent.prompt, self._own_model(agent))

    def _own_model(self, agent: AgentDefinition) -> str:
        """Return the agent's own model; empty if a flag selects the model or the endpoint."""
        flags = self._options.model
        return "" if flags.get("model") or flags.get("base_url") else agent.model

    @property
    def profile(self) -> Profile:
        """The security profile, before a read-only agent restricts it."""
        return self._policy.profile

    @profile.setter
    def profile(self, name: Profile) -> None:
        self._policy = msgspec.structs.replace(self._policy, profile=name)

    @property
    def read_only(self) -> bool:
        """Whether the agent or its parent is read-only, or the parent was when this child started."""
        parent_read_only = self._parent is not None and self._parent.read_only
        return self._agent.read_only or self._started_read_only or parent_read_only

    def allows_tool(self, tool: str) -> bool:
        """Return whether the agent and its parent may use a tool."""
        at_start = self._parent_agent_at_start
        return (
            self._agent.allows_tool(tool)
            and (at_start is None or at_start.allows_tool(tool))
            and (self._parent is None or self._parent.allows_tool(tool))
        )

    def policy(self) -> Policy:
        """Return the session's policy with the agent's rules added."""
        agent, policy = self._agent, self._policy
        restricted = msgspec.structs.replace(
            policy, rules=(*policy.rules, *agent.rules), restrictions=(*policy.restrictions, *agent.restrictions)
        )
        return self._without_writes(restricted) if self.read_only else restricted

    def may_write(self) -> bool:
        """Return whether the policy may allow changes of files: of any file, or of some by a rule."""
        from ostler.core.permission import Need, Permission
        from ostler.policy.verdict import evaluate_permission

        policy = self.policy()
        if any(rule.key in ("write", "edit") and rule.action == "allow" for rule in policy.rules):
            return not self.read_only
        return evaluate_permission(Permission("", (Need("write", "any-file"),)), policy).action != "deny"

    def _without_writes(self, policy: Policy) -> Policy:
        """Allow commands only in the read-only sandbox, or where a rule of the user allows them."""
        profile = "balanced" if policy.profile == "god_mode" else policy.profile
        return msgspec.structs.replace(policy, profile=profile, allow_sandboxed=self.shell is not None)

    def _find(self, name: str, *, child: bool) -> AgentDefinition:
        agent = self._agents.get(name)
        if agent and (agent.accepts_tasks if child else agent.user_selectable):
            return agent
        names = sorted(
            agent.name for agent in self._agents.values() if (agent.accepts_tasks if child else agent.user_selectable)
        )
        raise UsageError(f"unknown agent {name[:80]!r}", hint=f"available: {', '.join(names)}")


def _max_steps(agent: AgentDefinition, flag: int) -> int | None:
    return min(agent.max_steps or flag, flag) if flag else agent.max_steps
