"""Merges built-in agents, agent files and settings into the agents of a workspace."""

from collections.abc import Collection, Sequence
from typing import TypeVar

import msgspec

from ostler.core.permission import Rule
from ostler.knowledge.agent_definition import AgentDefinition
from ostler.knowledge.agent_files import AgentFile, read_agent_files
from ostler.knowledge.builtin_agents import NO_WRITE_RULES, builtin_agents
from ostler.knowledge.name_rules import NAME_RULE, is_valid_name
from ostler.knowledge.source_folder import Scope
from ostler.knowledge.source_folders import SourceFolders
from ostler.knowledge.tool_lists import ToolSwitches, allow_only, parse_switches, parse_tool_list
from ostler.settings import schema
from ostler.settings.effective import Settings
from ostler.settings.untrusted_project import model_names

T = TypeVar("T")
DEFAULT_AGENT = "build"


def load_agents(sources: SourceFolders, settings: Settings, *, trusted: bool = False) -> dict[str, AgentDefinition]:
    """Return the agents by name. The config overrides files, and project files override user files.

    Nothing in a project, trusted or not, lifts a restriction of a built-in agent or of the user's own. Its other agents
    can only restrict what is allowed until the project is `trusted`.
    """
    loader = _AgentLoader(sources, settings, trusted=trusted)
    for file in read_agent_files(sources, model_names(settings.config)):
        loader.add_file(file)
    for name in settings.config.agent:
        loader.add_config(name)
    return {name: agent for name, agent in loader.agents.items() if name not in loader.disabled}


class _AgentLoader:
    """Merges definitions. A disabled agent stays in `agents`, so that its restrictions apply if it is enabled again."""

    def __init__(self, sources: SourceFolders, settings: Settings, *, trusted: bool) -> None:
        self.agents = builtin_agents()
        self.disabled: dict[str, Scope] = {}
        self._sources = sources
        self._settings = settings
        self._trusted = trusted
        self._hidden = {name for name, agent in self.agents.items() if agent.hidden}
        self._protected = {*self.agents, *settings.user_agents()}

    def add_file(self, file: AgentFile) -> None:
        note = self._sources.workspace.note
        name = self._protected_name(file.name) if file.scope == "project" else file.name
        if file.scope == "project" and name in self._hidden:
            note(file.origin, f"ignored: {name} is an internal agent, which a project cannot change")
        elif not is_valid_name(name):
            note(file.origin, f"ignored: the name is invalid (use {NAME_RULE})")
        elif file.disable and name == DEFAULT_AGENT:
            note(file.origin, f"{DEFAULT_AGENT} is the default agent and cannot be disabled")
        elif file.disable:
            self._disable(name, file.scope)
        else:
            self._enable(name, file.scope)
            self._apply_file(name, file)
        if file.scope == "user":
            self._protected.add(name)

    def add_config(self, name: str) -> None:
        """Apply the config's entry; the settings are already restricted for an untrusted project."""
        if not is_valid_name(name):
            self._note_config(f"the agent {name[:80]!r} is ignored: its name is invalid (use {NAME_RULE})")
            return
        if (other := self._protected_name(name)) != name:
            self._note_config(f"the agent {name!r} is ignored: only upper and lower case distinguish it from {other!r}")
            return
        user = self._settings.agent_entry(name, project=False)
        project = self._settings.agent_entry(name, project=True)
        if name in self._settings.user_agents():
            (self._disable if user.disable else self._enable)(name, "user")
        else:
            self._enable(name, "project")
        if project.disable:
            self._disable(name, "project")
        self._apply_config(name, user, project)

    def _note_config(self, message: str) -> None:
        self._sources.workspace.note("the config", message)

    def _protected_name(self, name: str) -> str:
        """Return the protected agent that a name means, ignoring upper and lower case, or else the name itself."""
        if name in self._protected or name in self.agents:
            return name
        return next((known for known in sorted(self._protected) if known.casefold() == name.casefold()), name)

    def _disable(self, name: str, scope: Scope) -> None:
        if name != DEFAULT_AGENT and self.disabled.get(name) != "user":
            self.disabled[name] = scope

    def _enable(self, name: str, scope: Scope) -> None:
        """Enable an agent again. A project cannot enable one that the user disabled."""
        if scope == "user" or self.disabled.get(name) == "project":
            self.disabled.pop(name, None)

    def _apply_file(self, name: str, file: AgentFile) -> None:
        old = self.agents.get(name)
        if old is None and not file.prompt:
            return  # not an agent: another file of the folder, or an empty one
        old = old or AgentDefinition(name, origin=file.origin)
        is_protected = file.scope == "project" and name in self._protected
        may_extend = file.scope == "user" or (self._trusted and not is_protected)
        agent = msgspec.structs.replace(
            old,
            mode=file.mode or old.mode,
            description=file.description or old.description,
            model=file.model or old.model,
            max_steps=_max_steps(file, old, self._settings, may_extend=may_extend),
            temperature=old.temperature if file.temperature is None else file.temperature,
            top_p=old.top_p if file.top_p is None else file.top_p,
            prompt=file.prompt or old.prompt,
            hidden=file.hidden or old.hidden,
            origin=file.origin,
            tools=file.tools if may_extend and file.tools else (*old.tools, *file.tools),
            restrictions=(*old.restrictions, *_non_empty_layers(file.limits, NO_WRITE_RULES if file.read_only else ())),
            read_only=old.read_only or file.read_only,
        )
        if self._trusted and is_protected:
            self.agents[name] = _with_project_rules(agent, file.rules)
        else:
            self.agents[name] = _with_rules(agent, file.rules, may_extend=may_extend)

    def _apply_config(self, name: str, user: schema.AgentConfig, project: schema.AgentConfig) -> None:
        """Apply the merged entry. Limits and switches of the user's own entry hold beside those of the project."""
        entry = self._settings.config.agent[name]
        old = self.agents.get(name) or AgentDefinition(name, origin="config")
        changes = {
            field: value
            for field in ("mode", "description", "model", "temperature", "top_p", "prompt")
            if (value := getattr(entry, field))
        }
        if entry.temperature is not None:
            changes["temperature"] = entry.temperature
        steps = user.max_steps or old.max_steps
        if name not in self._protected:
            steps = project.max_steps or steps
        elif project.max_steps:
            steps = min(project.max_steps, steps or project.max_steps)
        agent = msgspec.structs.replace(
            old,
            **changes,
            max_steps=steps,
            hidden=entry.hidden or user.hidden or old.hidden,
            tools=(*old.tools, *_non_empty_layers(_switches(project.tools), _switches(user.tools))),
        )
        self.agents[name] = self._with_config_rules(agent)

    def _with_config_rules(self, agent: AgentDefinition) -> AgentDefinition:
        project_rules = self._settings.agent_rules(agent.name, project=True)
        if self._settings.restricting_rules(agent.name):
            agent = _with_rules(agent, project_rules, may_extend=False)
        elif agent.name in self._protected:
            agent = _with_project_rules(agent, project_rules)
        else:
            agent = _with_rules(agent, project_rules, may_extend=True)
        return _with_rules(agent, self._settings.agent_rules(agent.name, project=False), may_extend=True)


def _max_steps(file: AgentFile, old: AgentDefinition, settings: Settings, *, may_extend: bool) -> int | None:
    limit = old.max_steps or settings.config.limits.steps
    if file.max_steps is None or (file.max_steps > limit and not may_extend):
        return old.max_steps
    return file.max_steps


def _with_rules(agent: AgentDefinition, rules: Sequence[Rule], *, may_extend: bool) -> AgentDefinition:
    """Add rules. With `may_extend` they can also override the rules that make an agent read-only."""
    if not rules:
        return agent
    if not may_extend:
        return msgspec.structs.replace(agent, restrictions=(*agent.restrictions, tuple(rules)))
    restrictions = agent.restrictions
    if agent.read_only:
        restrictions = ((*restrictions[0], *rules), *restrictions[1:])
    return msgspec.structs.replace(agent, rules=(*agent.rules, *rules), restrictions=restrictions)


def _with_project_rules(agent: AgentDefinition, rules: Sequence[Rule]) -> AgentDefinition:
    """Add rules of a trusted project. They override general rules, but neither the agent's rules nor restrictions."""
    agent = _with_rules(agent, rules, may_extend=False)
    return msgspec.structs.replace(agent, rules=(*rules, *agent.rules))


def _switches(tools: dict[str, bool] | tuple[str, ...] | None) -> ToolSwitches:
    if isinstance(tools, dict):
        return parse_switches(tools)
    return allow_only(parse_tool_list(list(tools))) if tools is not None else ()


def _non_empty_layers(*layers: Collection[T]) -> tuple[tuple[T, ...], ...]:
    return tuple(tuple(layer) for layer in layers if layer)
