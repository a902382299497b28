"""All agents of a workspace: built in, in files, in the config, each made of all that speaks of it."""

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
    """Agents by name. The config's word counts over files', a project's file over a person's.

    Whatever a project's file says of permissions, tools and steps only narrows, unless the project is `trusted`.
    """
    agents = builtin_agents()
    gone: set[str] = set()
    hidden = {name for name, agent in agents.items() if agent.hidden}
    for file in read_agent_files(sources, model_names(settings.config)):
        if file.scope == "project" and file.name in hidden:
            sources.workspace.note(file.origin, f"{file.name} does the house's own work; a project cannot change it")
        elif not is_valid_name(file.name):
            sources.workspace.note(file.origin, f"its name is not made of {NAME_RULE}; it is left out")
        elif file.disable and file.name == DEFAULT_AGENT:
            sources.workspace.note(
                file.origin, f"{DEFAULT_AGENT} works where nobody else is named; it cannot be taken away"
            )
        elif file.disable:
            gone.add(file.name)  # not forgotten: a file that brings it back is still held by what held it before
        else:
            gone.discard(file.name)
            _apply_file(agents, file, settings, may_extend=trusted or file.scope == "user")
    for name in gone:
        agents.pop(name, None)
    for name, entry in settings.config.agent.items():
        if is_valid_name(name):
            _apply_config(agents, name, entry, settings)
        else:
            sources.workspace.note(
                "the config", f"an agent's name {name[:80]!r} is not made of {NAME_RULE}; it is left out"
            )
    return agents


def _apply_file(agents: dict[str, AgentDefinition], file: AgentFile, settings: Settings, *, may_extend: bool) -> None:
    """Put what a file says over what is known; `free` lets it widen."""
    old = agents.get(file.name)
    if old is None and not file.prompt:
        return  # nothing to work by: other files of the folder, or an empty one
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
    most = old.max_steps or settings.config.limits.steps
    if file.max_steps is None or (file.max_steps > most and not may_extend):
        return old.max_steps
    return file.max_steps


def _apply_config(agents: dict[str, AgentDefinition], name: str, entry: schema.AgentConfig, settings: Settings) -> None:
    """Put what the config says over what is known; the settings hold back what a project may not say."""
    if entry.disable and name != DEFAULT_AGENT:
        agents.pop(name, None)
        return
    old = agents.get(name) or AgentDefinition(name, origin="config")
    given = {
        field: value
        for field in ("mode", "description", "model", "max_steps", "temperature", "top_p", "prompt")
        if (value := getattr(entry, field))
    }
    if entry.temperature is not None:
        given["temperature"] = entry.temperature
    agent = msgspec.structs.replace(
        old, **given, hidden=entry.hidden or old.hidden, tools=(*old.tools, *_non_empty_layers(_switches(entry.tools)))
    )
    agent = _with_rules(agent, settings.rules(name), may_extend=True)
    agents[name] = _with_rules(agent, settings.restricting_rules(name), may_extend=False)


def _with_rules(agent: AgentDefinition, rules: Sequence[Rule], *, may_extend: bool) -> AgentDefinition:
    """Rules of its own. A person's also lift what makes a built-in agent read-only; a stranger's only narrow."""
    if not rules:
        return agent
    if not may_extend:
        return msgspec.structs.replace(agent, restrictions=(*agent.restrictions, tuple(rules)))
    narrow = agent.restrictions
    if agent.read_only:
        narrow = ((*narrow[0], *rules), *narrow[1:])
    return msgspec.structs.replace(agent, rules=(*agent.rules, *rules), restrictions=narrow)


def _switches(tools: dict[str, bool] | tuple[str, ...] | None) -> ToolSwitches:
    if isinstance(tools, dict):
        return parse_switches(tools)
    return allow_only(parse_tool_list(list(tools))) if tools is not None else ()


def _non_empty_layers(*layers: Collection[T]) -> tuple[tuple[T, ...], ...]:
    return tuple(tuple(layer) for layer in layers if layer)
