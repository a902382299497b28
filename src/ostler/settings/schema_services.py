"""The shape of what a config says about programs and servers beside us: MCP, hooks, ACP, Agent Zero, our own server."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

import msgspec

from ostler.settings.schema_models import ConfigSection, PositiveInt
from ostler.settings.secret import Secret

Argv = Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]


class McpConfig(ConfigSection, frozen=True):
    """A local MCP server.

    type: only local servers are known.
    enabled: whether to start it.
    command: the program and its arguments, as an array.
    environment: variables it gets besides ours.
    cwd: the folder it runs in.
    timeout_ms: milliseconds to wait for its answers.
    """

    aliases: ClassVar[Mapping[str, str]] = {"env": "environment", "timeout": "timeout_ms"}

    type: Literal["local"] = "local"
    enabled: bool = True
    command: tuple[str, ...] = ()
    environment: dict[str, Secret] = msgspec.field(default_factory=dict)
    cwd: str = ""
    timeout_ms: PositiveInt | None = None


class HookConfig(ConfigSection, frozen=True):
    """A program of yours that runs at a named moment.

    command: the program and its arguments, as an array.
    match: which tools it is for; * and ? are wildcards.
    timeout_ms: milliseconds after which it is killed.
    """

    command: Argv
    match: str = "*"
    timeout_ms: PositiveInt = 30_000


class HooksConfig(ConfigSection, frozen=True):
    """Programs of yours around tools and turns.

    before_tool: run before a tool; a failure refuses the call.
    after_tool: run after a tool; what it says on exit 2 is told to the model.
    prompt_submitted: run before a prompt begins a turn; a failure refuses the prompt.
    turn_end: run when a turn ends; on exit 2 the model goes on with what it says.
    """

    aliases: ClassVar[Mapping[str, str]] = {"tool.execute.before": "before_tool", "tool.execute.after": "after_tool"}

    before_tool: tuple[HookConfig, ...] = ()
    after_tool: tuple[HookConfig, ...] = ()
    prompt_submitted: tuple[HookConfig, ...] = ()
    turn_end: tuple[HookConfig, ...] = ()


class AgentServerConfig(ConfigSection, frozen=True):
    """An ACP agent.

    command: its program.
    args: its arguments.
    env: variables it gets besides ours.
    """

    command: Annotated[str, msgspec.Meta(min_length=1)]
    args: tuple[str, ...] = ()
    env: dict[str, Secret] = msgspec.field(default_factory=dict)


class McpServerConfig(ConfigSection, frozen=True):
    """An MCP server that an ACP agent is told of.

    name: what the agent calls it.
    command: its program.
    args: its arguments.
    env: variables it gets.
    """

    name: Annotated[str, msgspec.Meta(min_length=1)]
    command: Annotated[str, msgspec.Meta(min_length=1)]
    args: tuple[str, ...] = ()
    env: dict[str, Secret] = msgspec.field(default_factory=dict)


class ConnectionConfig(ConfigSection, frozen=True):
    """How to reach Agent Zero.

    api_url: the whole URL that messages are posted to.
    api_key: its key, or better {env:NAME} or {file:path}.
    ui_url: its web page.
    host: its host, when there is no api_url.
    port: its port.
    path: the path of the message route.
    lifetime_hours: how long it keeps the conversation.
    stream: whether to ask for a stream.
    stream_mode: the form of that stream.
    timeout_seconds: seconds to wait for an answer; 0 waits for ever.
    keepalive_seconds: seconds between signs of life while waiting.
    max_wait_seconds: seconds after which a turn is given up; 0 never.
    send_tool_results: whether results of tools go back.
    project: the project it should work in.
    agent_profile: the profile it should take.
    """

    aliases: ClassVar[Mapping[str, str]] = {"dashboard_url": "ui_url"}

    api_url: str = ""
    api_key: Secret | None = None
    ui_url: str = ""
    host: str = ""
    port: Annotated[int, msgspec.Meta(ge=1, le=65535)] | None = None
    path: str = "/api_message"
    lifetime_hours: PositiveInt = 24
    stream: bool | None = None
    stream_mode: Literal["auto", "sse", "jsonl"] = "auto"
    timeout_seconds: Seconds = 30
    keepalive_seconds: Seconds = 5
    max_wait_seconds: Seconds = 0
    send_tool_results: bool = True
    project: str = ""
    agent_profile: str = ""


class ContextConfig(ConfigSection, frozen=True):
    """What Agent Zero is told about the workspace.

    enabled: whether it is told anything.
    mode: when it is told.
    max_bytes: the most that is sent.
    max_files: the most files in the tree.
    max_depth: how deep the tree goes.
    include_tree: whether to send the file tree.
    include_previews: whether to send the beginnings of files.
    include_git: whether to send git's status.
    include_system: whether to send facts about the machine.
    include_tools: whether to send the list of tools.
    preview_files: which files to preview.
    max_preview_bytes: the most of one file.
    redact_keys: keys whose values are masked.
    redact_patterns: regular expressions whose matches are masked.
    ignore_dirs: folders to leave out.
    """

    enabled: bool = True
    mode: Literal["always", "on_change", "once", "manual"] = "on_change"
    max_bytes: PositiveInt = 20_000
    max_files: PositiveInt = 200
    max_depth: PositiveInt = 4
    include_tree: bool = True
    include_previews: bool = True
    include_git: bool = True
    include_system: bool = True
    include_tools: bool = True
    preview_files: tuple[str, ...] = ()
    max_preview_bytes: PositiveInt = 6_000
    redact_keys: tuple[str, ...] = ()
    redact_patterns: tuple[str, ...] = ()
    ignore_dirs: tuple[str, ...] = ()


class ServerTlsConfig(ConfigSection, frozen=True):
    """A certificate.

    cert: file of the certificate chain.
    key: file of its private key.
    """

    cert: str
    key: str


class ServerLimitsConfig(ConfigSection, frozen=True):
    """What one user of the server may do.

    sessions: sessions open at once.
    messages_per_minute: messages sent.
    tool_calls_per_minute: calls of tools.
    output_bytes: size of one tool's result.
    """

    sessions: PositiveInt | None = None
    messages_per_minute: PositiveInt | None = None
    tool_calls_per_minute: PositiveInt | None = None
    output_bytes: PositiveInt | None = None


class ServerConfig(ConfigSection, frozen=True):
    """Our own server.

    bind: host:port to listen on.
    tls: the certificate, needed beyond this machine.
    origins: web origins that may connect.
    store: where sessions are kept: a SQLite file, or a postgresql:// URL.
    limits: what one user may do.
    """

    bind: str = "127.0.0.1:8034"
    tls: ServerTlsConfig | None = None
    origins: tuple[str, ...] = ()
    store: Secret | None = None
    limits: ServerLimitsConfig = ServerLimitsConfig()
