"""All agents of a workspace: built in, in files, in the config, each made of all that speaks of it."""

from collections.abc import Collection, Sequence
from typing import TypeVar

import msgspec

from ostler.knowledge.agent import Agent
from ostler.knowledge.agent_files import AgentFile, agent_files
from ostler.knowledge.builtin_agents import NO_WRITES, builtin_agents
from ostler.knowledge.naming import NAME_RULE, usable_name
from ostler.knowledge.sources import Sources
from ostler.knowledge.tool_lists import Switches, only, parse_list, switched
from ostler.settings import schema
from ostler.settings.effective import Settings
from ostler.settings.narrow import model_names
from ostler.vocabulary.permission import Rule

T = TypeVar("T")
DEFAULT = "build"


def load_agents(sources: Sources, settings: Settings, *, trusted: bool = False) -> dict[str, Agent]:
    """Agents by name. The config's word counts over files', a project's file over a person's.

    Whatever a project's file says of permissions, tools and steps only narrows, unless the project is `trusted`.
    """
    agents = builtin_agents()
    gone: set[str] = set()
    hidden = {name for name, agent in agents.items() if agent.hidden}
    for file in agent_files(sources, model_names(settings.config)):
        if file.scope == "project" and file.name in hidden:
            sources.work.note(file.origin, f"{file.name} does the house's own work; a project cannot change it")
        elif not usable_name(file.name):
            sources.work.note(file.origin, f"its name is not made of {NAME_RULE}; it is left out")
        elif file.disable and file.name == DEFAULT:
            sources.work.note(file.origin, f"{DEFAULT} works where nobody else is named; it cannot be taken away")
        elif file.disable:
            gone.add(file.name)  # not forgotten: a file that brings it back is still held by what held it before
        else:
            gone.discard(file.name)
            _take(agents, file, settings, free=trusted or file.scope == "user")
    for name in gone:
        agents.pop(name, None)
    for name, entry in settings.config.agent.items():
        if usable_name(name):
            _configure(agents, name, entry, settings)
        else:
            sources.work.note("the config", f"an agent's name {name[:80]!r} is not made of {NAME_RULE}; it is left out")
    return agents


def _take(agents: dict[str, Agent], file: AgentFile, settings: Settings, *, free: bool) -> None:
    """Put what a file says over what is known; `free` lets it widen."""
    old = agents.get(file.name)
    if old is None and not file.prompt:
        return  # nothing to work by: other files of the folder, or an empty one
    old = old or Agent(file.name, origin=file.origin)
    agent = msgspec.structs.replace(
        old,
        mode=file.mode or old.mode,
        description=file.description or old.description,
        model=file.model or old.model,
        max_steps=_steps(file, old, settings, free=free),
        temperature=old.temperature if file.temperature is None else file.temperature,
        top_p=old.top_p if file.top_p is None else file.top_p,
        prompt=file.prompt or old.prompt,
        hidden=file.hidden or old.hidden,
        origin=file.origin,
        tools=file.tools if free and file.tools else (*old.tools, *file.tools),
        narrow=(*old.narrow, *_layers(file.limits, NO_WRITES if file.read_only else ())),
        read_only=old.read_only or file.read_only,
    )
    agents[file.name] = _with_rules(agent, file.rules, free=free)


def _steps(file: AgentFile, old: Agent, settings: Settings, *, free: bool) -> int | None:
    most = old.max_steps or settings.config.limits.steps
    if file.max_steps is None or (file.max_steps > most and not free):
        return old.max_steps
    return file.max_steps


def _configure(agents: dict[str, Agent], name: str, entry: schema.Agent, settings: Settings) -> None:
    """Put what the config says over what is known; the settings hold back what a project may not say."""
    if entry.disable and name != DEFAULT:
        agents.pop(name, None)
        return
    old = agents.get(name) or Agent(name, origin="config")
    given = {
        field: value
        for field in ("mode", "description", "model", "max_steps", "temperature", "top_p", "prompt")
        if (value := getattr(entry, field))
    }
    if entry.temperature is not None:
        given["temperature"] = entry.temperature
    agent = msgspec.structs.replace(
        old, **given, hidden=entry.hidden or old.hidden, tools=(*old.tools, *_layers(_switches(entry.tools)))
    )
    agent = _with_rules(agent, settings.rules(name), free=True)
    agents[name] = _with_rules(agent, settings.narrow_rules(name), free=False)


def _with_rules(agent: Agent, rules: Sequence[Rule], *, free: bool) -> Agent:
    """Rules of its own. A person's also lift what makes a built-in agent read-only; a stranger's only narrow."""
    if not rules:
        return agent
    if not free:
        return msgspec.structs.replace(agent, narrow=(*agent.narrow, tuple(rules)))
    narrow = agent.narrow
    if agent.read_only:
        narrow = ((*narrow[0], *rules), *narrow[1:])
    return msgspec.structs.replace(agent, rules=(*agent.rules, *rules), narrow=narrow)


def _switches(tools: dict[str, bool] | tuple[str, ...] | None) -> Switches:
    if isinstance(tools, dict):
        return switched(tools)
    return only(parse_list(list(tools))) if tools is not None else ()


def _layers(*layers: Collection[T]) -> tuple[tuple[T, ...], ...]:
    return tuple(tuple(layer) for layer in layers if layer)
