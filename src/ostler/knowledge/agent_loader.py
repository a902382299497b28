"""Merges built-in agents, agent files and settings into the agents of a workspace."""

from collections.abc import Collection, Sequence
from typing import TypeVar

import msgspec

from ostler.core.permission import Rule
from ostler.knowledge.agent_definition import AgentDefinition
from ostler.knowledge.agent_files import AgentFile, read_agent_files
from ostler.knowledge.builtin_agents import NO_WRITE_RULES, builtin_agents
from ostler.knowledge.name_rules import NAME_RULE, is_valid_name
from ostler.knowledge.source_folders import SourceFolders
from ostler.knowledge.tool_lists import ToolSwitches, allow_only, parse_switches, parse_tool_list
from ostler.settings import schema
from ostler.settings.effective import Settings
from ostler.settings.untrusted_project import model_names

T = TypeVar("T")
DEFAULT_AGENT = "build"


def load_agents(sources: SourceFolders, settings: Settings, *, trusted: bool = False) -> dict[str, AgentDefinition]:
    """Return the agents by name. The config overrides files, and project files override user files.

    Unless the project is `trusted`, permissions, tools and steps in its files can only restrict.
    """
    agents = builtin_agents()
    disabled: set[str] = set()
    hidden = {name for name, agent in agents.items() if agent.hidden}
    for file in read_agent_files(sources, model_names(settings.config)):
        if file.scope == "project" and file.name in hidden:
            sources.workspace.note(
                file.origin, f"ignored: {file.name} is an internal agent, which a project cannot change"
            )
        elif not is_valid_name(file.name):
            sources.workspace.note(file.origin, f"ignored: the name is invalid (use {NAME_RULE})")
        elif file.disable and file.name == DEFAULT_AGENT:
            sources.workspace.note(file.origin, f"{DEFAULT_AGENT} is the default agent and cannot be disabled")
        elif file.disable:
            disabled.add(
                file.name
            )  # not removed yet: if a later file enables it again, earlier restrictions still apply
        else:
            disabled.discard(file.name)
            _apply_file(agents, file, settings, may_extend=trusted or file.scope == "user")
    for name in disabled:
        agents.pop(name, None)
    for name, entry in settings.config.agent.items():
        if is_valid_name(name):
            _apply_config(agents, name, entry, settings)
        else:
            sources.workspace.note(
                "the config", f"the agent {name[:80]!r} is ignored: its name is invalid (use {NAME_RULE})"
            )
    return agents


def _apply_file(agents: dict[str, AgentDefinition], file: AgentFile, settings: Settings, *, may_extend: bool) -> None:
    """Apply a file to the known agents. Without `may_extend` it can only restrict permissions."""
    old = agents.get(file.name)
    if old is None and not file.prompt:
        return  # not an agent: another file of the folder, or an empty one
    old = old or AgentDefinition(file.name, origin=file.origin)
    agent = msgspec.structs.replace(
        old,
        mode=file.mode or old.mode,
        description=file.description or old.description,
        model=file.model or old.model,
        max_steps=_max_steps(file, old, settings, may_extend=may_extend),
        temperature=old.temperature if file.temperature is None else file.temperature,
        top_p=old.top_p if file.top_p is None else file.top_p,
        prompt=file.prompt or old.prompt,
        hidden=file.hidden or old.hidden,
        origin=file.origin,
        tools=file.tools if may_extend and file.tools else (*old.tools, *file.tools),
        restrictions=(*old.restrictions, *_non_empty_layers(file.limits, NO_WRITE_RULES if file.read_only else ())),
        read_only=old.read_only or file.read_only,
    )
    agents[file.name] = _with_rules(agent, file.rules, may_extend=may_extend)


def _max_steps(file: AgentFile, old: AgentDefinition, settings: Settings, *, may_extend: bool) -> int | None:
    limit = old.max_steps or settings.config.limits.steps
    if file.max_steps is None or (file.max_steps > limit and not may_extend):
        return old.max_steps
    return file.max_steps


def _apply_config(agents: dict[str, AgentDefinition], name: str, entry: schema.AgentConfig, settings: Settings) -> None:
    """Apply the config to the known agents; the settings are already restricted for an untrusted project."""
    if entry.disable and name != DEFAULT_AGENT:
        agents.pop(name, None)
        return
    old = agents.get(name) or AgentDefinition(name, origin="config")
    changes = {
        field: value
        for field in ("mode", "description", "model", "max_steps", "temperature", "top_p", "prompt")
        if (value := getattr(entry, field))
    }
    if entry.temperature is not None:
        changes["temperature"] = entry.temperature
    agent = msgspec.structs.replace(
        old,
        **changes,
        hidden=entry.hidden or old.hidden,
        tools=(*old.tools, *_non_empty_layers(_switches(entry.tools))),
    )
    agent = _with_rules(agent, settings.rules(name), may_extend=True)
    agents[name] = _with_rules(agent, settings.restricting_rules(name), may_extend=False)


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


def _switches(tools: dict[str, bool] | tuple[str, ...] | None) -> ToolSwitches:
    if isinstance(tools, dict):
        return parse_switches(tools)
    return allow_only(parse_tool_list(list(tools))) if tools is not None else ()


def _non_empty_layers(*layers: Collection[T]) -> tuple[tuple[T, ...], ...]:
    return tuple(tuple(layer) for layer in layers if layer)
