"""Finds the ACP agent that is meant: in the settings files in their order, else among those known by name."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from ostler.app.acp_trust import project_file
from ostler.core.errors import UsageError
from ostler.settings.config_files import read_config
from ostler.settings.effective import Settings
from ostler.settings.home import find_home
from ostler.settings.references import fill_references
from ostler.settings.secret import Secret
from ostler.wire.acp import AcpMcpServer, EnvVariable

T = TypeVar("T")
NonEmptyStr = Annotated[str, msgspec.Meta(min_length=1)]

# Programs as their makers name them; whoever installed one has it on the PATH.
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
    """One agent of a settings file."""

    command: NonEmptyStr
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}


class McpEntry(msgspec.Struct, frozen=True):
    """One MCP server of a settings file that the agent is told of: a program, or an address."""

    name: NonEmptyStr
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    type: str = ""
    url: str = ""
    headers: dict[str, str] = {}

    def to_acp(self) -> AcpMcpServer:
        """The server as the protocol wants it told; arrays are there also when they are empty."""
        if self.url:
            headers = tuple(EnvVariable(name, value) for name, value in self.headers.items())
            return AcpMcpServer(self.name, self.type or "http", url=self.url, headers=headers)
        env = tuple(EnvVariable(name, value) for name, value in self.env.items())
        return AcpMcpServer(self.name, command=self.command, args=self.args, env=env)


class AgentSettings(msgspec.Struct, frozen=True):
    """A settings file, or what the main config says of the same."""

    agent_servers: dict[str, AgentServerEntry] = {}
    mcp_servers: tuple[McpEntry, ...] = ()


class ResolvedAgent(msgspec.Struct, frozen=True):
    """The agent that is meant, and the MCP servers it shall be told of."""

    name: str
    entry: AgentServerEntry
    mcp_servers: tuple[AcpMcpServer, ...] = ()

    def environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        """All of ours, and what its settings add."""
        return {**environ, **self.entry.env}


def find_agent(name: str, settings_file: str, cwd: Path, settings: Settings) -> ResolvedAgent:
    """The named agent, else the first that is listed; `UsageError` says what there is."""
    sources = [_read_settings(Path(settings_file))] if settings_file else _read_sources(cwd, settings)
    listed: dict[str, ResolvedAgent] = {}
    for source in sources:
        for known, entry in source.agent_servers.items():
            listed.setdefault(known, ResolvedAgent(known, entry, _acp_servers(source)))
    if not name and not listed:
        hint = f"write agent_servers into ~/.ostler/acp.json, or name one with -a: {', '.join(WELL_KNOWN)}"
        raise UsageError("no ACP agent is configured", hint=hint)
    if not name:
        return next(iter(listed.values()))
    if name in listed:
        return listed[name]
    if name in WELL_KNOWN:
        command, *args = WELL_KNOWN[name]
        return ResolvedAgent(name, AgentServerEntry(command, tuple(args)), _acp_servers(sources[0]))
    known = ", ".join(dict.fromkeys((*listed, *WELL_KNOWN)))
    raise UsageError(f"there is no ACP agent {name!r}", hint=f"there are: {known}")


def read_mcp_servers(file: str) -> tuple[AcpMcpServer, ...]:
    """The MCP servers of a file: a list of them, or the same below `mcp_servers` or by name below `mcpServers`."""
    raw = _read_value(Path(file))
    if isinstance(raw, dict):
        by_name = raw.get("mcpServers")
        named = [{"name": name, **server} for name, server in by_name.items()] if isinstance(by_name, dict) else None
        raw = named if named is not None else raw.get("mcp_servers", [])
    return tuple(entry.to_acp() for entry in _convert(Path(file), raw, tuple[McpEntry, ...]))


def _acp_servers(source: AgentSettings) -> tuple[AcpMcpServer, ...]:
    return tuple(server.to_acp() for server in source.mcp_servers)


def _read_sources(cwd: Path, settings: Settings) -> list[AgentSettings]:
    """The project's file where it is trusted, for it names programs to run; the person's own; then the main config."""
    home = find_home(os.environ)
    files = [project_file(cwd)] if settings.trusted else []
    files += [home / "acp.json"] if home else []
    return [*(_read_settings(file) for file in dict.fromkeys(files) if file.is_file()), _from_config(settings)]


def _from_config(settings: Settings) -> AgentSettings:
    config = settings.config
    agents = {
        name: AgentServerEntry(server.command, server.args, _fill_env(server.env, f"agent_servers.{name}.env"))
        for name, server in config.agent_servers.items()
    }
    servers = tuple(
        McpEntry(server.name, server.command, server.args, _fill_env(server.env, f"mcp_servers.{server.name}.env"))
        for server in config.mcp_servers
    )
    return AgentSettings(agents, servers)


def _fill_env(env: Mapping[str, Secret], setting: str) -> dict[str, str]:
    return {
        name: fill_references(value.reveal(), os.environ, Path.cwd, lambda name=name: f"{setting}.{name}")  # type: ignore[misc]
        for name, value in env.items()
    }


def _read_settings(file: Path) -> AgentSettings:
    found = _convert(file, _read_value(file), AgentSettings)
    if not found.agent_servers:
        raise UsageError(f"the settings {file} name no agent", hint="agent_servers needs at least one")
    return found


def _read_value(file: Path) -> Any:
    document = read_config(file)
    if document is None:
        raise UsageError(f"there is no settings file {file}")
    return document.value


def _convert(file: Path, raw: Any, kind: type[T]) -> T:
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        told = str(error).replace("$.", "").replace("`$`", "the file").replace("[...]", ".NAME")
        raise UsageError(f"{file} is not as it should be: {told}") from None
