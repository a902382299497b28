"""What a project's own files want beyond words: agents that widen, commands that run programs, hooks.

Trust in a project is about these, each told in a line that holds all of it; what is only text is left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ostler.knowledge.agent_files import AgentFile, agent_files
from ostler.knowledge.builtin_agents import builtin_agents
from ostler.knowledge.commands import find_commands
from ostler.knowledge.folder import Folder
from ostler.knowledge.hooks import Hook, claude_project_hooks, configured_hooks
from ostler.knowledge.sources import Sources
from ostler.knowledge.templates import shells_of
from ostler.settings.effective import Settings
from ostler.settings.narrow import model_names
from ostler.text.regex import regex

MOST_OF_A_PROGRAM = 4 * 1024 * 1024
MOST_WORDS = 200
_WORD = regex(r"[^\s'\"`;|&<>()=]+")
_PLACE = regex(r"^\$\{?CLAUDE_PROJECT_DIR\}?/|^\./")


def effective_parts(sources: Sources, settings: Settings) -> list[str]:
    """One line for each; the settings are those without trust."""
    if sources.at_home:
        return []
    hooks = claude_project_hooks(sources.work)
    mine = configured_hooks(settings)
    configured = [hook for hook in configured_hooks(settings.trusting()) if hook not in mine]
    found = {path: sha for hook in (*configured, *hooks) for path, sha in programs(sources.work, hook.command).items()}
    told = (f"program {path}: sha256 {sha}" for path, sha in found.items())
    return [*_agents(sources, settings), *_commands(sources), *map(_hook, hooks), *told]


def _agents(sources: Sources, settings: Settings) -> Iterator[str]:
    files = list(agent_files(sources, model_names(settings.config)))
    known = {*builtin_agents(), *settings.config.agent, *(file.name for file in files if file.scope == "user")}
    for file in files:
        if file.scope == "project":
            for name, value in _widening(file, file.name in known, settings).items():
                yield f"agent {file.name} ({file.origin}): {name} = {_json(value)}"


def _widening(file: AgentFile, known: bool, settings: Settings) -> Mapping[str, Any]:
    """What in an agent's file would allow more; a list of tools takes some away, unless others were taken before."""
    found: dict[str, Any] = {}
    if any(rule.action != "deny" for rule in file.rules):
        found["permission"] = [[rule.key, rule.pattern, rule.action] for rule in file.rules]
    if known and file.tools:
        found["tools"] = msgspec.to_builtins(file.tools)
    if file.max_steps and file.max_steps > settings.config.limits.steps:
        found["max_steps"] = file.max_steps
    return found


def _commands(sources: Sources) -> Iterator[str]:
    for command in find_commands(sources).values():
        if command.scope == "project":
            for shell in shells_of(command.template):
                yield f"command /{command.name} ({command.origin}): runs {_json(shell)}"


def _hook(hook: Hook) -> str:
    told = {"match": hook.match, "command": hook.command, "seconds": hook.seconds}
    return f"hook {hook.moment} ({hook.origin}): {_json(told)}"


def programs(work: Folder, command: Sequence[str]) -> dict[str, str]:
    """The project's own files that a command names, each with its hash: when one changes, so does what it does."""
    import hashlib

    found: dict[str, str] = {}
    words = dict.fromkeys(_PLACE.sub("", word) for part in command for word in _WORD.findall(part))
    for path in list(words)[:MOST_WORDS]:
        inside = work.within(path) if path.startswith("/") else path
        if inside and work.kind(inside) == "file":
            found[inside] = hashlib.sha256(work.read_bytes(inside, MOST_OF_A_PROGRAM)).hexdigest()
    return found


def _json(value: object) -> str:
    import json  # most projects want nothing that must be told

    return json.dumps(value)
