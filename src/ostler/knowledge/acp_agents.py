"""Finds the configured ACP agent: project file, user file, main config, then well-known names."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from ostler.core.errors import UsageError
from ostler.core.sessions import McpServerRequest
from ostler.knowledge.acp_trust import project_file
from ostler.settings.config_files import read_config
from ostler.settings.effective import Settings
from ostler.settings.home import find_home
from ostler.settings.jsonc_parser import KeyPath
from ostler.settings.problems import format_path
from ostler.settings.references import fill_references
from ostler.settings.secret import Secret
from ostler.settings.user_paths import with_absolute_paths

T = TypeVar("T")
NonEmptyStr = Annotated[str, msgspec.Meta(min_length=1)]

# Program names as published; an installed agent is expected on the PATH.
WELL_KNOWN: dict[str, tuple[str, ...]] = {
    "claude": ("claude-agent-acp",),
    "claude-code": ("claude-code-acp",),
    "gemini": ("gemini", "--acp"),
    "opencode": ("opencode", "acp"),
    "codex": ("codex-acp",),
    "qwen": ("qwen", "--acp"),
    "pi": ("pi-acp",),
    "copilot": ("copilot", "--acp"),
    "droid": ("droid", "exec", "--output-format", "acp"),
    "kimi": ("kimi", "acp"),
    "grok": ("grok", "agent", "stdio"),
    "vibe": ("vibe-acp",),
    "hermes": ("hermes", "acp"),
    "auggie": ("auggie", "--acp"),
    "cline": ("cline", "--acp"),
    "ostler": ("ostler", "acp"),
}


class AgentServerEntry(msgspec.Struct, frozen=True):
    """An agent in a settings file."""

    command: NonEmptyStr
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}


class McpEntry(msgspec.Struct, frozen=True):
    """An MCP server in a settings file, passed on to the agent: a program or a URL."""

    name: NonEmptyStr
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    type: str = ""
    url: str = ""
    headers: dict[str, str] = {}

    def to_request(self) -> McpServerRequest:
        """Return the server in the form that an agent gets."""
        if self.url:
            return McpServerRequest(self.name, self.type or "http", url=self.url, headers=self.headers)
        return McpServerRequest(self.name, command=(self.command, *self.args), env=self.env)


class AgentSettings(msgspec.Struct, frozen=True):
    """The content of a settings file, or the same part of the main config."""

    agent_servers: dict[str, AgentServerEntry] = {}
    mcp_servers: tuple[McpEntry, ...] = ()


class ResolvedAgent(msgspec.Struct, frozen=True):
    """The selected agent and the MCP servers to pass to it."""

    name: str
    entry: AgentServerEntry
    mcp_servers: tuple[McpServerRequest, ...] = ()

    def environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return `environ` with the variables of the agent's settings added."""
        return {**environ, **self.entry.env}


def agent_names(cwd: Path, settings: Settings) -> list[str]:
    """Return the names of the configured agents, then of the well-known ones whose program is installed."""
    configured = [name for source in _read_sources(cwd, settings) for name in source.agent_servers]
    installed = [name for name, (command, *_) in WELL_KNOWN.items() if shutil.which(command)]
    return list(dict.fromkeys([*configured, *installed]))


def find_agent(name: str, settings_file: str, cwd: Path, settings: Settings) -> ResolvedAgent:
    """Return the named agent, or the first configured one. Raises `UsageError` with the available names."""
    sources = [_read_settings(Path(settings_file))] if settings_file else _read_sources(cwd, settings)
    listed: dict[str, ResolvedAgent] = {}
    for source in sources:
        for known, entry in source.agent_servers.items():
            listed.setdefault(known, ResolvedAgent(known, entry, _mcp_servers(source)))
    if not name and not listed:
        hint = f"add agent_servers to ~/.ostler/acp.json, or choose one with -a: {', '.join(WELL_KNOWN)}"
        raise UsageError("no ACP agent is configured", hint=hint)
    if not name:
        return next(iter(listed.values()))
    if name in listed:
        return listed[name]
    if name in WELL_KNOWN:
        command, *args = WELL_KNOWN[name]
        return ResolvedAgent(name, AgentServerEntry(command, tuple(args)), _mcp_servers(sources[0]))
    known = ", ".join(dict.fromkeys((*listed, *WELL_KNOWN)))
    raise UsageError(f"unknown ACP agent {name!r}", hint=f"available: {known}")


def read_mcp_servers(file: str) -> tuple[McpServerRequest, ...]:
    """Read MCP servers from a file: a list, a list in `mcp_servers`, or an object by name in `mcpServers`."""
    raw = _read_value(Path(file))
    if isinstance(raw, dict):
        by_name = raw.get("mcpServers")
        named = [{"name": name, **server} for name, server in by_name.items()] if isinstance(by_name, dict) else None
        raw = named if named is not None else raw.get("mcp_servers", [])
    raw = with_absolute_paths({"mcp_servers": raw}, str(Path(file).absolute().parent))["mcp_servers"]
    return tuple(entry.to_request() for entry in _convert(Path(file), raw, tuple[McpEntry, ...]))


def _mcp_servers(source: AgentSettings) -> tuple[McpServerRequest, ...]:
    return tuple(server.to_request() for server in source.mcp_servers)


def _read_sources(cwd: Path, settings: Settings) -> list[AgentSettings]:
    """Read the project's file, if the project is trusted, then the user's file and the main config."""
    home = find_home(os.environ)
    files = [project_file(cwd)] if settings.trusted else []
    files += [home / "acp.json"] if home else []
    found = [file for file in dict.fromkeys(files) if file.is_file()]
    return [
        *(_read_settings(file, cwd if file == project_file(cwd) else None) for file in found),
        _from_config(settings),
    ]


def _from_config(settings: Settings) -> AgentSettings:
    config = settings.config
    agents = {
        name: AgentServerEntry(server.command, server.args, _fill_env(server.env, settings, ("agent_servers", name)))
        for name, server in config.agent_servers.items()
    }
    servers = tuple(
        McpEntry(
            server.name, server.command, server.args, _fill_env(server.env, settings, ("mcp_servers", server.name))
        )
        for server in config.mcp_servers
    )
    return AgentSettings(agents, servers)


def _fill_env(env: Mapping[str, Secret], settings: Settings, entry: KeyPath) -> dict[str, str]:
    """Fill in the references; relative files start at the folder of the settings file."""

    def filled(name: str, value: Secret) -> str:
        key = (*entry, "env", name)
        return fill_references(
            value.reveal(), os.environ, lambda: Path(settings.origin(key).file).parent, lambda: format_path(key)
        )

    return {name: filled(name, value) for name, value in env.items()}


def _read_settings(file: Path, folder: Path | None = None) -> AgentSettings:
    """Read a settings file. Relative programs start at `folder`, by default that of the file."""
    raw = _read_value(file)
    if isinstance(raw, dict):
        raw = with_absolute_paths(raw, str(folder or file.absolute().parent))
    settings = _convert(file, raw, AgentSettings)
    if not settings.agent_servers:
        raise UsageError(f"no agent in settings file {file}", hint="add at least one to agent_servers")
    return settings


def _read_value(file: Path) -> Any:
    document = read_config(file)
    if document is None:
        raise UsageError(f"settings file {file} not found")
    return document.value


def _convert(file: Path, raw: Any, kind: type[T]) -> T:
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        message = str(error).replace("$.", "").replace("`$`", "the file").replace("[...]", ".NAME")
        raise UsageError(f"invalid settings file {file}: {message}") from None
