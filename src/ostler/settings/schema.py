"""The shape of the config: every key there is, its type and its default.

A line `name: text` in a class's docstring describes that field; the JSON Schema for editors is made of them.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

import msgspec

from ostler.core.permission import PolicyAction
from ostler.settings.schema_models import (
    ConfigSection,
    Fraction,
    ModelsConfig,
    NamedProvider,
    NonNegativeFloat,
    PositiveInt,
    Provider,
    SamplingTemperature,
)
from ostler.settings.schema_services import (
    AgentServerConfig,
    ConnectionConfig,
    ContextConfig,
    HooksConfig,
    McpConfig,
    McpServerConfig,
    ServerConfig,
)

PermissionRules = PolicyAction | dict[str, PolicyAction | dict[str, PolicyAction]]


class SecurityConfig(ConfigSection, frozen=True):
    """When to ask, and what never to do.

    profile: paranoid asks for every tool, balanced passes what only reads, god_mode passes all but the dangerous.
    whitelist: beginnings of shell commands that balanced passes.
    blacklist_patterns: regular expressions for shell commands that are always refused; every file adds to them.
    danger_patterns: regular expressions for shell commands that a person must always allow; every file adds to them.
    allow_shell: whether there is a shell tool.
    sandbox: whether commands must, should or need not run inside the system's sandbox.
    delete: what happens to calls that delete files.
    """

    aliases: ClassVar[Mapping[str, str]] = {"mode": "profile"}

    profile: Literal["paranoid", "balanced", "god_mode"] = "balanced"
    whitelist: tuple[str, ...] = ()
    blacklist_patterns: tuple[str, ...] = ()
    danger_patterns: tuple[str, ...] = ()
    allow_shell: bool | None = None
    sandbox: Literal["require", "prefer", "off"] = "prefer"
    delete: PolicyAction | None = None


class AgentConfig(ConfigSection, frozen=True):
    """An agent.

    mode: whether you talk to it, other agents do, or both.
    description: when to use it.
    model: a profile or model id of its own.
    tools: tools switched on or off by name, or the only ones it has.
    max_steps: the most model calls in a turn.
    temperature: sampling temperature.
    top_p: nucleus sampling.
    prompt: its instructions.
    hidden: whether it is left out of lists.
    disable: whether it is switched off.
    """

    aliases: ClassVar[Mapping[str, str]] = {"model_override": "model", "steps": "max_steps", "maxSteps": "max_steps"}

    mode: Literal["primary", "subagent", "all"] | None = None
    description: str = ""
    model: str = ""
    tools: dict[str, bool] | tuple[str, ...] | None = None
    max_steps: PositiveInt | None = None
    temperature: SamplingTemperature | None = None
    top_p: Fraction | None = None
    prompt: str = ""
    hidden: bool = False
    disable: bool = False


class AgentFileConfig(AgentConfig, frozen=True):
    """An agent, as a file has it.

    permission: rules for this agent, after those for all.
    """

    permission: PermissionRules | None = None


class CompactionConfig(ConfigSection, frozen=True):
    """How a long conversation is kept short.

    auto: whether it happens by itself.
    prune: whether old results of tools go first.
    threshold: how full the context is when it happens, from 0 to 1.
    """

    auto: bool = True
    prune: bool = True
    threshold: Fraction = 0.8


class SkillsConfig(ConfigSection, frozen=True):
    """Where skills are.

    paths: folders to look in besides the usual ones.
    """

    paths: tuple[str, ...] = ()


class ValidationConfig(ConfigSection, frozen=True):
    """The check after edits.

    enabled: whether there is one.
    checks: the command (or commands) per language, or per path with wildcards.
    timeout_ms: milliseconds after which a check is killed.
    """

    enabled: bool = True
    checks: dict[str, str | tuple[str, ...]] = msgspec.field(default_factory=dict)
    timeout_ms: PositiveInt = 600_000


class LimitsConfig(ConfigSection, frozen=True):
    """What one turn may use at most.

    steps: model calls.
    cost: US dollars.
    tokens: tokens, in and out.
    time: seconds.
    subagents: subagents side by side.
    """

    steps: PositiveInt = 128
    cost: NonNegativeFloat | None = None
    tokens: PositiveInt | None = None
    time: Annotated[float, msgspec.Meta(gt=0)] | None = None
    subagents: Annotated[int, msgspec.Meta(ge=0)] = 8


class SessionStoreConfig(ConfigSection, frozen=True):
    """Where sessions are kept.

    path: the folder; without one, in Ostler's home.
    keep_days: days after which an untouched session is removed.
    max_mb: megabytes that all sessions may take.
    titles: whether a model gives sessions titles and summaries; auto leaves out models on this machine.
    """

    path: str = ""
    keep_days: PositiveInt | None = None
    max_mb: PositiveInt | None = None
    titles: Literal["auto", "always", "never"] = "auto"


class LogsConfig(ConfigSection, frozen=True):
    """The diagnostic log.

    path: the folder; without one, in Ostler's home.
    level: how much is written.
    max_mb: megabytes before the log is rotated.
    keep: old logs that are kept.
    """

    path: str = ""
    level: Literal["debug", "info", "warning", "error"] = "info"
    max_mb: PositiveInt = 20
    keep: Annotated[int, msgspec.Meta(ge=0)] = 3


class CacheConfig(ConfigSection, frozen=True):
    """What can be made again.

    path: the folder; without one, in Ostler's home.
    ttl_hours: hours that an entry is good for.
    max_mb: megabytes that the cache may take.
    """

    path: str = ""
    ttl_hours: PositiveInt = 168
    max_mb: PositiveInt = 512


class UiConfig(ConfigSection, frozen=True):
    """How it looks.

    face: what `ostler` opens.
    theme: the name of a theme.
    keys: keys by the name of what they do.
    details: whether calls of tools are shown in full.
    bell: whether the terminal rings when you are needed.
    arcade: the game while you wait.
    """

    face: Literal["chat", "tui"] = "chat"
    theme: str = ""
    keys: dict[str, str] = msgspec.field(default_factory=dict)
    details: bool = False
    bell: bool = False
    arcade: Literal["invaders", "pong", "off"] = "invaders"


class CommonConfig(ConfigSection, frozen=True):
    """The keys that mean the same in a file and when all files are merged."""

    provider: Provider = Provider()
    model: str | None = None
    models: ModelsConfig = ModelsConfig()
    security: SecurityConfig = SecurityConfig()
    mcp: dict[str, McpConfig] = msgspec.field(default_factory=dict)
    compaction: CompactionConfig = CompactionConfig()
    instructions: tuple[str, ...] = ()
    skills: SkillsConfig = SkillsConfig()
    hooks: HooksConfig = HooksConfig()
    validation: ValidationConfig = ValidationConfig()
    limits: LimitsConfig = LimitsConfig()
    session: SessionStoreConfig = SessionStoreConfig()
    logs: LogsConfig = LogsConfig()
    cache: CacheConfig = CacheConfig()
    ui: UiConfig = UiConfig()
    connection: ConnectionConfig = ConnectionConfig()
    context: ContextConfig = ContextConfig()
    server: ServerConfig = ServerConfig()
    agent_servers: dict[str, AgentServerConfig] = msgspec.field(default_factory=dict)
    mcp_servers: tuple[McpServerConfig, ...] = ()


class Config(CommonConfig, frozen=True):
    """All files, the environment and the flags in one. Rules are not here: their order over the layers matters.

    providers: providers by id, which a file writes under `provider`.
    agent: agents by name.
    """

    providers: dict[str, NamedProvider] = msgspec.field(default_factory=dict)
    agent: dict[str, AgentConfig] = msgspec.field(default_factory=dict)


class ConfigFile(CommonConfig, frozen=True, rename={"schema_url": "$schema"}):
    """A config file of Ostler.

    $schema: the schema of this file, for editors.
    provider: an endpoint, a vendor's name, or providers by id.
    model: the profile or model in use, or an endpoint with its model.
    models: profiles and the one in use.
    permission: what may happen: allow, ask or deny, per tool and pattern; the last rule that matches wins.
    security: when to ask, and what never to do.
    agent: agents by name.
    mcp: MCP servers by name.
    compaction: how a long conversation is kept short.
    instructions: files whose text the model is given; every file adds to them.
    skills: where skills are.
    hooks: programs of yours around tools and turns.
    validation: the check after edits.
    limits: what one turn may use at most.
    session: where sessions are kept, how long, how large.
    logs: where the log is kept, how long, how large.
    cache: where the cache is kept, how long, how large.
    ui: how it looks.
    connection: how to reach Agent Zero.
    context: what Agent Zero is told about the workspace.
    server: our own server.
    agent_servers: ACP agents by name; the first is the default.
    mcp_servers: MCP servers that ACP agents are told of.
    """

    schema_url: str = ""
    permission: PermissionRules | None = None
    agent: dict[str, AgentFileConfig] = msgspec.field(default_factory=dict)
