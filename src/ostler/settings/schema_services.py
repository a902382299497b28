"""Schema of MCP servers, hooks, ACP agents, Agent Zero and Ostler's server."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

import msgspec

from ostler.core.sessions import Profile
from ostler.settings.schema_models import ConfigSection, PositiveInt
from ostler.settings.secret import Secret

Argv = Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]
Port = Annotated[int, msgspec.Meta(ge=1, le=65535)]


class OAuthConfig(ConfigSection, frozen=True):
    """How Ostler logs in to a remote MCP server with OAuth.

    client_id: Id of Ostler at the authorization server, if you registered it there; or the https URL of its metadata.
    client_secret: Secret of this client, if it has one, preferably as {env:NAME}.
    scope: Permissions to ask for, separated by spaces; the default is what the server names.
    redirect_port: Port of http://127.0.0.1:PORT/callback, which a registered client needs; the default is a free port.
    """

    aliases: ClassVar[Mapping[str, str]] = {
        "clientId": "client_id",
        "clientSecret": "client_secret",
        "scopes": "scope",
        "callbackPort": "redirect_port",
        "redirectPort": "redirect_port",
    }

    client_id: str = ""
    client_secret: Secret | None = None
    scope: str = ""
    redirect_port: Port | None = None


class McpConfig(ConfigSection, frozen=True):
    """An MCP server.

    type: local for a program, remote for a URL; the old sse transport is not supported.
    enabled: Whether to use the server.
    command: Program of a local server and its arguments, as an array.
    environment: Environment variables of a local server, besides the usual ones without secrets.
    cwd: Working directory of a local server; the default is the workspace if it is trusted, else the config's folder.
    url: URL of a remote server (streamable HTTP).
    headers: HTTP headers for a remote server, for example Authorization with {env:NAME}.
    oauth: Settings for `ostler mcp login`; false if Ostler must not log in to the server.
    timeout_ms: Milliseconds to wait for the result of a call; progress restarts the time.
    start_timeout_ms: Milliseconds to wait for the start of the server.
    required: Whether a session waits for the server and fails without it.
    tools: Tools of the server to switch on or off by name with wildcards, or a list of the only tools to use.
    sandbox: Whether a local server runs in the sandbox, where it can write only to the workspace.
    network: Whether a server in the sandbox may use the network.
    """

    aliases: ClassVar[Mapping[str, str]] = {"env": "environment", "timeout": "timeout_ms"}

    type: Literal["local", "remote", "sse"] | None = None
    enabled: bool = True
    command: tuple[str, ...] = ()
    environment: dict[str, Secret] = msgspec.field(default_factory=dict)
    cwd: str = ""
    url: str = ""
    headers: dict[str, Secret] = msgspec.field(default_factory=dict)
    oauth: bool | OAuthConfig = True
    timeout_ms: PositiveInt | None = None
    start_timeout_ms: PositiveInt | None = None
    required: bool = False
    tools: dict[str, bool] | tuple[str, ...] | None = None
    sandbox: bool = False
    network: bool = False


class HookConfig(ConfigSection, frozen=True):
    """A program that runs on an event.

    command: Program and its arguments, as an array.
    match: Tools that the hook is for; * and ? are wildcards.
    timeout_ms: Milliseconds after which the program is killed.
    """

    command: Argv
    match: str = "*"
    timeout_ms: PositiveInt = 30_000


class HooksConfig(ConfigSection, frozen=True):
    """Programs that run before and after tool calls and turns.

    before_tool: Programs to run before a tool call; if one fails, the call is denied.
    after_tool: Programs to run after a tool call; with exit code 2 the model receives the output.
    prompt_submitted: Programs to run before a prompt starts a turn; if one fails, the prompt is rejected.
    turn_end: Programs to run at the end of a turn; with exit code 2 the model continues with the output.
    """

    aliases: ClassVar[Mapping[str, str]] = {"tool.execute.before": "before_tool", "tool.execute.after": "after_tool"}

    before_tool: tuple[HookConfig, ...] = ()
    after_tool: tuple[HookConfig, ...] = ()
    prompt_submitted: tuple[HookConfig, ...] = ()
    turn_end: tuple[HookConfig, ...] = ()


class AgentServerConfig(ConfigSection, frozen=True):
    """An ACP agent.

    command: Program of the agent.
    args: Arguments of the program.
    env: Environment variables to set in addition to Ostler's own.
    """

    command: Annotated[str, msgspec.Meta(min_length=1)]
    args: tuple[str, ...] = ()
    env: dict[str, Secret] = msgspec.field(default_factory=dict)


class McpServerConfig(ConfigSection, frozen=True):
    """An MCP server that is passed to ACP agents.

    name: Name of the server.
    command: Program of the server.
    args: Arguments of the program.
    env: Environment variables to set for the server.
    """

    name: Annotated[str, msgspec.Meta(min_length=1)]
    command: Annotated[str, msgspec.Meta(min_length=1)]
    args: tuple[str, ...] = ()
    env: dict[str, Secret] = msgspec.field(default_factory=dict)


class ZeroSecurityConfig(ConfigSection, frozen=True):
    """Security settings of sessions with Agent Zero; they replace those of `security` there.

    profile: paranoid asks before every tool call, balanced before changes, god_mode only before dangerous calls.
    whitelist: Beginnings of shell commands that the balanced profile allows without asking.
    blacklist_patterns: Regular expressions for shell commands that are always denied, besides those of `security`.
    allow_shell: Whether the server may request shell commands.
    """

    aliases: ClassVar[Mapping[str, str]] = {"mode": "profile"}

    profile: Profile | None = None
    whitelist: tuple[str, ...] | None = None
    blacklist_patterns: tuple[str, ...] = ()
    allow_shell: bool | None = None


class ConnectionConfig(ConfigSection, frozen=True):
    """How to reach Agent Zero.

    api_url: Complete URL to which messages are posted.
    api_key: API key, preferably as {env:NAME} or {file:path}.
    ui_url: URL of the web page, without effect here: it is found beside the message route.
    host: Host name, if `api_url` is not set.
    port: Port, if `api_url` is not set.
    path: Path of the message route, if `api_url` is not set.
    lifetime_hours: Hours for which Agent Zero stores the conversation.
    stream: Whether to request a stream.
    stream_mode: Format of the stream.
    timeout_seconds: Seconds of silence after which a request fails; 0 means no limit.
    keepalive_seconds: Seconds between notices while waiting.
    max_wait_seconds: Seconds after which a turn is cancelled; 0 means never.
    send_tool_results: Whether to send tool results back.
    project: Project to work in.
    agent_profile: Agent profile to use.
    instructions: Instructions that are sent with the description of the workspace.
    other_hosts: Machines that the server may use besides this one, without a question and unchecked by Ostler.
    security: Security settings of these sessions.
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
    timeout_seconds: Seconds = 0
    keepalive_seconds: Seconds = 5
    max_wait_seconds: Seconds = 0
    send_tool_results: bool = True
    project: str = ""
    agent_profile: str = ""
    instructions: str = ""
    other_hosts: tuple[str, ...] = ()
    security: ZeroSecurityConfig = ZeroSecurityConfig()


class ContextConfig(ConfigSection, frozen=True):
    """What to redact, and what Agent Zero receives about the workspace.

    enabled: Whether to send anything about the workspace.
    mode: When to send it.
    max_bytes: Maximum number of bytes to send.
    max_files: Maximum number of files in the tree.
    max_depth: Maximum depth of the tree.
    include_tree: Whether to send the file tree.
    include_previews: Whether to send the beginnings of files.
    include_git: Whether to send the git status.
    git_timeout_seconds: How long to wait for git; its status is omitted if it takes longer. 0 means no limit.
    include_system: Whether to send information about the machine.
    include_tools: Whether to send the list of tools.
    preview_files: Files to preview.
    max_preview_bytes: Maximum number of bytes of one preview.
    redact_keys: Names of further keys whose values are masked as secrets; all config files add to them.
    redact_patterns: Regular expressions (RE2) whose matches are masked as secrets; all config files add to them.
    ignore_dirs: Folders to omit; all config files add to them.
    """

    enabled: bool = True
    mode: Literal["always", "on_change", "once", "manual"] = "on_change"
    max_bytes: PositiveInt = 20_000
    max_files: PositiveInt = 200
    max_depth: PositiveInt = 4
    include_tree: bool = True
    include_previews: bool = True
    include_git: bool = True
    git_timeout_seconds: Seconds = 0.25
    include_system: bool = True
    include_tools: bool = True
    preview_files: tuple[str, ...] = ()
    max_preview_bytes: PositiveInt = 6_000
    redact_keys: tuple[str, ...] = ()
    redact_patterns: tuple[str, ...] = ()
    ignore_dirs: tuple[str, ...] = ()


class ServerTlsConfig(ConfigSection, frozen=True):
    """A TLS certificate.

    cert: File with the certificate chain.
    key: File with the private key.
    """

    cert: str
    key: str


class ServerLimitsConfig(ConfigSection, frozen=True):
    """Limits for one user of the server.

    sessions: Maximum number of open sessions.
    messages_per_minute: Maximum number of messages per minute.
    tool_calls_per_minute: Maximum number of tool calls per minute.
    output_bytes: Maximum size of a tool result in bytes.
    """

    sessions: PositiveInt | None = None
    messages_per_minute: PositiveInt | None = None
    tool_calls_per_minute: PositiveInt | None = None
    output_bytes: PositiveInt | None = None


class ServerConfig(ConfigSection, frozen=True):
    """Settings of `ostler serve`.

    bind: Address to listen on, as host:port.
    tls: TLS certificate; required for connections from other machines.
    origins: Web origins that may connect.
    models: Models that users may choose, by name; all if it is empty.
    store: The SQLite file with sessions, users and tokens.
    heartbeat_seconds: Seconds without another message after which a client gets a heartbeat, at most 10.
    host_wait_seconds: Seconds that a tool call waits for a client that is not connected.
    call_seconds: Seconds that a tool call may take on the client.
    limits: Limits for one user.
    """

    bind: str = "127.0.0.1:8034"
    tls: ServerTlsConfig | None = None
    origins: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    store: Secret | None = None
    heartbeat_seconds: Annotated[float, msgspec.Meta(gt=0, le=10)] | None = None
    host_wait_seconds: Annotated[float, msgspec.Meta(gt=0)] | None = None
    call_seconds: Annotated[float, msgspec.Meta(gt=0)] | None = None
    limits: ServerLimitsConfig = ServerLimitsConfig()
