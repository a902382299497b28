"""The active agent of a session: its role for the engine, its tools and its policy rules."""

from collections.abc import Mapping, Sequence

import msgspec

from ostler.core.errors import UsageError
from ostler.core.permission import Rule
from ostler.core.sessions import Mode, OptionChoice, Profile, SessionOption
from ostler.knowledge.agent_definition import AgentDefinition, AgentRole
from ostler.knowledge.agent_loader import DEFAULT_AGENT
from ostler.knowledge.builtin_agents import builtin_agents
from ostler.policy.presets import is_built_in
from ostler.policy.profiles import MODES, PROFILES
from ostler.policy.verdict import Policy
from ostler.settings.run_options import RunOptions
from ostler.workspace.session_workspace import SessionShell


class ActiveAgent:
    """The agent, mode and security profile of a session, and the policy and tools that follow from them."""

    def __init__(
        self,
        agents: Mapping[str, AgentDefinition],
        policy: Policy,
        options: RunOptions,
        shell: SessionShell | None = None,
        parent: "ActiveAgent | None" = None,
    ) -> None:
        """`shell` is set if this process runs the commands; `parent` is the active agent of the parent session.

        A child is restricted by its parent's agent and mode of now and by those at its start, so that no switch widens
        it.
        """
        self._parent = parent
        self._started_read_only = parent is not None and parent.read_only
        self._parent_agent_at_start: AgentDefinition | None = parent._agent if parent else None
        self._agents = agents
        self._policy = policy
        self._options = options
        self._agent: AgentDefinition = agents[DEFAULT_AGENT]
        self._mode: Mode = options.mode or "ask"
        self._shell: SessionShell | None = None
        self.shell = shell

    # -- options -------------------------------------------------------------------------------------------------

    def options(self) -> tuple[SessionOption, ...]:
        agent = SessionOption("agent", self._agent.name)
        if not self._has_modes:
            return (agent,)
        modes = tuple(OptionChoice(name, description=mode.description) for name, mode in MODES.items())
        profiles = tuple(OptionChoice(name, description=rules.description) for name, rules in PROFILES.items())
        return (
            agent,
            SessionOption("mode", self._mode, choices=modes),
            SessionOption("profile", self._policy.profile, choices=profiles),
        )

    @property
    def _has_modes(self) -> bool:
        """Whether the user can choose mode and security profile: in an interactive session that is not a child."""
        return self._parent is None and self._policy.interactive

    def set_option(self, option_id: str, value: str) -> bool:
        match option_id:
            case "agent":
                self._agent = self._find(value)
            case "mode" if value in MODES:
                self._mode = value
            case "mode" if self._has_modes:  # else it may be a mode of the backend
                raise UsageError(f"unknown mode {value[:40]!r}", hint=f"available: {', '.join(MODES)}")
            case "profile":
                self._policy = msgspec.structs.replace(self._policy, profile=_parse_profile(value))
            case _:
                return False
        return True

    def owns(self, option_id: str, value: str) -> bool:
        choices = {"mode": (*MODES, ""), "profile": (*PROFILES, "")}
        return option_id == "agent" or value in choices.get(option_id, ())

    def restore(self, options: Mapping[str, str]) -> Sequence[str]:
        """Restore the agent, and the mode if it restricts; the security profile is that of the settings.

        Where nobody is asked, a missing agent is an error, because its rules may have restricted the session.
        """
        mode = options.get("mode", "")
        if mode in MODES and MODES[mode].agent:
            self._mode = mode
        try:
            self._agent = self._find(options.get("agent", ""))
        except UsageError as error:
            if not self._policy.interactive:
                hint = "restore its definition, or select another one with --agent"
                raise UsageError(
                    f"the agent {options['agent'][:80]!r} of this session does not exist", hint=hint
                ) from None
            return [f"{error}; using the default agent"]
        return ()

    def role(self, name: str) -> AgentRole:
        """Return the role of an agent, or of the active one. Raises `UsageError` if there is no such agent."""
        agent = self._find(name)
        return AgentRole(
            agent.name,
            agent.prompt,
            self._own_model(agent),
            _max_steps(agent, self._options.max_steps),
            agent.temperature,
            agent.top_p,
        )

    def internal_role(self, name: str) -> AgentRole:
        """Return the role of an internal agent, such as `title`."""
        agent = self._agents.get(name) or builtin_agents()[name]
        return AgentRole(agent.name, agent.prompt, self._own_model(agent))

    def _own_model(self, agent: AgentDefinition) -> str:
        """Return the agent's own model; empty if a flag selects the model or the endpoint."""
        flags = self._options.model
        return "" if flags.get("model") or flags.get("base_url") else agent.model

    def instructions(self) -> str:
        return self._agent.prompt

    # -- access --------------------------------------------------------------------------------------------------

    @property
    def shell(self) -> SessionShell | None:
        """The shell of the session; it asks the active agent at every command whether to be read-only."""
        return self._shell

    @shell.setter
    def shell(self, shell: SessionShell | None) -> None:
        self._shell = shell
        if shell:
            shell.is_agent_read_only = lambda: self.read_only

    @property
    def read_only(self) -> bool:
        """Whether the agent or its parent is read-only or in mode plan, or the parent was when this child started."""
        parent_read_only = self._parent is not None and self._parent.read_only
        return any(agent.read_only for agent in self._restricting()) or self._started_read_only or parent_read_only

    def allows_tool(self, tool: str) -> bool:
        """Return whether the agent, the mode and the parent allow a tool."""
        at_start = self._parent_agent_at_start
        return (
            all(agent.allows_tool(tool) for agent in self._restricting())
            and (at_start is None or at_start.allows_tool(tool))
            and (self._parent is None or self._parent.allows_tool(tool))
        )

    def call_rules(self) -> tuple[tuple[Rule, ...], ...]:
        parent = self._parent.call_rules() if self._parent else ()
        layers = [layer for agent in self._restricting() for layer in (*agent.restrictions, agent.rules) if layer]
        return (*parent, *layers)

    def policy(self) -> Policy:
        """Return the session's policy with the rules of the agent and the mode added."""
        policy, restrictions = self._policy, [layer for agent in self._restricting() for layer in agent.restrictions]
        mode = MODES[self._mode]
        restricted = msgspec.structs.replace(
            policy,
            rules=(*policy.rules, *self._agent.rules),
            restrictions=(*policy.restrictions, *restrictions),
            flags=(*policy.flags, *mode.allows),
            allow_sandboxed=policy.allow_sandboxed or mode.allow_sandboxed,
        )
        return self._without_writes(restricted) if self.read_only else restricted

    def _restricting(self) -> tuple[AgentDefinition, ...]:
        """Return the active agent and the one that the mode adds."""
        name = MODES[self._mode].agent
        return (self._agent, self._agents.get(name) or builtin_agents()[name]) if name else (self._agent,)

    def has_permissions(self) -> bool:
        """Return whether the user's rules, whitelist or security profile allow more than the built-in rules."""
        policy = self.policy()
        allowed = any(rule.action == "allow" and not is_built_in(rule) for rule in policy.rules)
        return allowed or bool(policy.whitelist or PROFILES[policy.profile].allows)

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
        profile: Profile = "balanced" if PROFILES[policy.profile].allows else policy.profile
        has_shell = self.shell is not None
        return msgspec.structs.replace(
            policy,
            profile=profile,
            allow_sandboxed=policy.allow_sandboxed and has_shell,
            allow_sandboxed_by_default=has_shell,
        )

    def _find(self, name: str) -> AgentDefinition:
        """Return an agent that the user, or for a child its parent, can select; the active one for an empty name."""
        if name in ("", self._agent.name):
            return self._agent
        selectable = {
            agent.name: agent
            for agent in self._agents.values()
            if (agent.accepts_tasks if self._parent else agent.user_selectable)
        }
        if name in selectable:
            return selectable[name]
        raise UsageError(f"unknown agent {name[:80]!r}", hint=f"available: {', '.join(sorted(selectable))}")


def _parse_profile(value: str) -> Profile:
    if value not in PROFILES:
        raise UsageError(f"unknown security profile {value[:40]!r}", hint=f"available: {', '.join(PROFILES)}")
    return value


def _max_steps(agent: AgentDefinition, flag: int) -> int | None:
    return min(agent.max_steps or flag, flag) if flag else agent.max_steps
