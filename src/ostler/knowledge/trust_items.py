"""Lists what trusting a project would enable: agents that extend permissions, commands and hooks that run programs.

The lines are hashed into trust grants, so their text must not change.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ostler.knowledge.agent_files import AgentFile, read_agent_files
from ostler.knowledge.builtin_agents import builtin_agents
from ostler.knowledge.command_templates import find_shell_commands
from ostler.knowledge.custom_commands import find_commands
from ostler.knowledge.hooks import HookSpec, claude_project_hooks, configured_hooks
from ostler.knowledge.source_folder import SourceFolder
from ostler.knowledge.source_folders import SourceFolders
from ostler.settings.effective import Settings
from ostler.settings.untrusted_project import model_names
from ostler.text.lazy_regex import lazy_regex

MAX_PROGRAM_BYTES = 4 * 1024 * 1024
MAX_COMMAND_WORDS = 200
_WORD = lazy_regex(r"[^\s'\"`;|&<>()=]+")
_PROJECT_PREFIX = lazy_regex(r"^\$\{?CLAUDE_PROJECT_DIR\}?/|^\./")


def trust_items(sources: SourceFolders, settings: Settings) -> list[str]:
    """Return one line for each item. `settings` must be those without trust."""
    if sources.workspace_is_home:
        return []
    hooks = claude_project_hooks(sources.workspace)
    user_hooks = configured_hooks(settings)
    trusted = settings.with_trust()
    configured = [hook for hook in configured_hooks(trusted) if hook not in user_hooks]
    servers = [server for name, server in trusted.config.mcp.items() if server != settings.config.mcp.get(name)]
    hashes = {
        path: sha
        for command in (*(hook.command for hook in (*configured, *hooks)), *(server.command for server in servers))
        for path, sha in hash_programs(sources.workspace, command).items()
    }
    programs = (f"program {path}: sha256 {sha}" for path, sha in hashes.items())
    return [*_agent_items(sources, settings), *_command_items(sources), *map(_hook_item, hooks), *programs]


def _agent_items(sources: SourceFolders, settings: Settings) -> Iterator[str]:
    files = list(read_agent_files(sources, model_names(settings.config)))
    known = {*builtin_agents(), *settings.config.agent, *(file.name for file in files if file.scope == "user")}
    for file in files:
        if file.scope == "project":
            for name, value in _extended_permissions(file, file.name in known, settings).items():
                yield f"agent {file.name} ({file.origin}): {name} = {_json(value)}"


def _extended_permissions(file: AgentFile, known: bool, settings: Settings) -> Mapping[str, Any]:
    """Return the fields of an agent file that extend permissions.

    A list of tools only restricts a new agent, but may extend the tools of a known one.
    """
    found: dict[str, Any] = {}
    if any(rule.action != "deny" for rule in file.rules):
        found["permission"] = [[rule.key, rule.pattern, rule.action] for rule in file.rules]
    if known and file.tools:
        found["tools"] = msgspec.to_builtins(file.tools)
    if file.max_steps and file.max_steps > settings.config.limits.steps:
        found["max_steps"] = file.max_steps
    return found


def _command_items(sources: SourceFolders) -> Iterator[str]:
    for command in find_commands(sources).values():
        if command.scope == "project":
            for shell in find_shell_commands(command.template):
                yield f"command /{command.name} ({command.origin}): runs {_json(shell)}"


def _hook_item(hook: HookSpec) -> str:
    definition = {"match": hook.match, "command": hook.command, "seconds": hook.seconds}
    return f"hook {hook.event} ({hook.origin}): {_json(definition)}"


def hash_programs(folder: SourceFolder, command: Sequence[str]) -> dict[str, str]:
    """Return the hashes of the project files that a command names, so that a changed program is noticed."""
    import hashlib

    found: dict[str, str] = {}
    words = dict.fromkeys(_PROJECT_PREFIX.sub("", word) for part in command for word in _WORD.findall(part))
    for path in list(words)[:MAX_COMMAND_WORDS]:
        inside = folder.relative_path(path) if path.startswith("/") else path
        if inside and folder.kind(inside) == "file":
            found[inside] = hashlib.sha256(folder.read_bytes(inside, MAX_PROGRAM_BYTES)).hexdigest()
    return found


def _json(value: object) -> str:
    import json  # imported late: most projects have no such items

    return json.dumps(value)
