"""Schema of the config: every key, its type, default and description.

A line `name: text` in a class docstring is the description of that key in the published JSON Schema.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

import msgspec

from ostler.core.permission import PolicyAction
from ostler.core.sessions import Profile
from ostler.settings.schema_models import (
    ConfigSection,
    Fraction,
    ModelsConfig,
    NamedProvider,
    NonNegativeFloat,
    PositiveInt,
    Provider,
    SamplingTemperature,
    Share,
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
    """Security profile, shell command lists and sandbox.

    profile: paranoid asks before every tool call, balanced before changes, god_mode only before dangerous calls.
    whitelist: Beginnings of shell commands that the balanced profile allows without asking.
    blacklist_patterns: Regular expressions for shell commands that are always denied; all config files add to them.
    danger_patterns: Regular expressions for shell commands that always need approval; all config files add to them.
    allow_shell: Set to false to remove the shell tool.
    sandbox: Whether commands must run (require), should run (prefer) or do not run (off) in the system's sandbox.
    sandbox_readable: Paths in home directories that sandboxed commands may read, such as ~/data; ~ is all of it.
    delete: Whether calls that delete files are allowed, need approval (ask) or are denied.
    shared_approvals: Whether other clients of your session at a server may answer approval requests of this machine.
    """

    aliases: ClassVar[Mapping[str, str]] = {"mode": "profile"}

    profile: Profile = "balanced"
    whitelist: tuple[str, ...] = ()
    blacklist_patterns: tuple[str, ...] = ()
    danger_patterns: tuple[str, ...] = ()
    allow_shell: bool | None = None
    sandbox: Literal["require", "prefer", "off"] = "prefer"
    sandbox_readable: tuple[str, ...] = ()
    delete: PolicyAction | None = None
    shared_approvals: bool = False


class AgentConfig(ConfigSection, frozen=True):
    """An agent.

    mode: Who uses the agent: you (primary), other agents (subagent) or both (all).
    description: When to use the agent.
    model: Profile or model id that this agent uses.
    tools: Tools to switch on or off by name, or a list of the only tools the agent has.
    max_steps: Maximum number of model calls in a turn.
    temperature: Sampling temperature, from 0 to 2.
    top_p: Nucleus sampling: the share of probability to sample from, up to 1.
    prompt: Instructions for the agent.
    hidden: Set to true to omit the agent from lists.
    disable: Set to true to switch the agent off.
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
    """An agent in a config file.

    permission: Permission rules of this agent; they are checked after the general ones.
    """

    permission: PermissionRules | None = None


class CompactionConfig(ConfigSection, frozen=True):
    """How a long conversation is shortened.

    auto: Whether the conversation is shortened automatically.
    prune: Whether old tool results are removed first.
    threshold: Share of the context window, from 0 to 1, at which the conversation is shortened.
    """

    auto: bool = True
    prune: bool = True
    threshold: Fraction = 0.8


class SkillsConfig(ConfigSection, frozen=True):
    """Where skills are found.

    paths: Folders to search for skills in addition to the usual ones.
    """

    paths: tuple[str, ...] = ()


class ValidationConfig(ConfigSection, frozen=True):
    """The check that runs after edits.

    enabled: Whether a check runs after edits.
    checks: Check commands by language or by path; paths may contain wildcards.
    timeout_ms: Milliseconds after which a check is killed.
    """

    enabled: bool = True
    checks: dict[str, str | tuple[str, ...]] = msgspec.field(default_factory=dict)
    timeout_ms: PositiveInt = 600_000


class LimitsConfig(ConfigSection, frozen=True):
    """Limits of one turn.

    steps: Maximum number of model calls in a turn.
    cost: Maximum cost of a turn in US dollars.
    tokens: Maximum number of tokens, sent and received, in a turn.
    time: Maximum duration of a turn in seconds.
    subagents: Maximum number of subagents that run at the same time; 0 switches subagents off.
    mcp_tools: Share of the context window, from 0 to 1, for listing the tools of MCP servers; more tools are searched.
    """

    steps: PositiveInt = 128
    cost: NonNegativeFloat | None = None
    tokens: PositiveInt | None = None
    time: Annotated[float, msgspec.Meta(gt=0)] | None = None
    subagents: Annotated[int, msgspec.Meta(ge=0)] = 8
    mcp_tools: Share = 0.03


class SessionStoreConfig(ConfigSection, frozen=True):
    """Where sessions are stored, and for how long.

    path: Folder for sessions; the default is a folder in Ostler's home.
    keep_days: Days after its last change until a session is deleted; sessions are kept forever if this is not set.
    max_mb: Maximum size of all sessions in megabytes; the oldest are deleted first.
    titles: Whether a model writes titles and summaries of sessions; auto means only if the model is not local.
    """

    path: str = ""
    keep_days: PositiveInt | None = None
    max_mb: PositiveInt | None = None
    titles: Literal["auto", "always", "never"] = "auto"


class LogsConfig(ConfigSection, frozen=True):
    """The diagnostic log.

    path: Folder for logs; the default is a folder in Ostler's home.
    level: Least severe level that is logged.
    max_mb: Size in megabytes at which the log is rotated.
    keep: Number of old logs to keep.
    """

    path: str = ""
    level: Literal["debug", "info", "warning", "error"] = "info"
    max_mb: PositiveInt = 20
    keep: Annotated[int, msgspec.Meta(ge=0)] = 3


class CacheConfig(ConfigSection, frozen=True):
    """The cache of files that can be created again.

    path: Folder for the cache; the default is a folder in Ostler's home.
    ttl_hours: Hours after which a cache entry expires.
    max_mb: Maximum size of the cache in megabytes.
    """

    path: str = ""
    ttl_hours: PositiveInt = 168
    max_mb: PositiveInt = 512


class UiConfig(ConfigSection, frozen=True):
    """The user interface.

    frontend: Frontend that `ostler` opens: chat or tui (full screen).
    theme: Colour theme: dark, light or mono; the full-screen client has more.
    keys: Keys of the full-screen client by action; `"editing": "vi"` selects vi keys everywhere.
    details: Whether tool calls are shown in full.
    bell: Whether the terminal bell rings when your input is needed.
    arcade: Game that plays by itself in the panel of the full-screen client while you wait, or off for no games.
    animations: Whether the full-screen client moves anything by itself.
    """

    renamed: ClassVar[Mapping[str, str]] = {"face": "frontend"}

    frontend: Literal["chat", "tui"] = "chat"
    theme: str = ""
    keys: dict[str, str] = msgspec.field(default_factory=dict)
    details: bool = False
    bell: bool = False
    arcade: Literal["invaders", "pong", "off"] = "invaders"
    animations: bool = True


class CommonConfig(ConfigSection, frozen=True):
    """Keys that have the same form in a config file and in the merged config."""

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
    """The merged config. It has no permission rules, because their order across the layers matters.

    providers: Providers by id; in a config file they are under `provider`.
    agent: Agents by name.
    """

    providers: dict[str, NamedProvider] = msgspec.field(default_factory=dict)
    agent: dict[str, AgentConfig] = msgspec.field(default_factory=dict)


class ConfigFile(CommonConfig, frozen=True, rename={"schema_url": "$schema"}):
    """A config file of Ostler.

    $schema: URL of the JSON Schema of this file, for editors.
    provider: An endpoint: its URL, the name of a vendor, or an object; or providers by id.
    model: Profile or model to use, or an endpoint with its model.
    models: Model profiles, and the name of the active one.
    permission: Permission rules per tool and pattern: allow, ask or deny; the last matching rule wins.
    security: Security profile, shell command lists and sandbox.
    agent: Agents by name.
    mcp: MCP servers by name; `/mcp` and `ostler mcp list` show their state.
    compaction: How a long conversation is shortened.
    instructions: Files whose text is added to the prompt; the lists of all config files are combined.
    skills: Where skills are found.
    hooks: Programs that run before and after tool calls and turns.
    validation: The check that runs after edits.
    limits: Limits of one turn.
    session: Where sessions are stored, for how long, and how large they may grow.
    logs: Where the log is stored, how large it may grow, and how many old logs to keep.
    cache: Where the cache is stored, for how long, and how large it may grow.
    ui: The user interface.
    connection: How to reach Agent Zero.
    context: What to redact, and what Agent Zero receives about the workspace.
    server: Settings of `ostler serve`.
    agent_servers: ACP agents by name; the first is the default.
    mcp_servers: MCP servers that are passed to ACP agents.
    """

    schema_url: str = ""
    permission: PermissionRules | None = None
    agent: dict[str, AgentFileConfig] = msgspec.field(default_factory=dict)
