"""Builds the Agent Zero backend with its tools from the settings."""

import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ostler import __version__
from ostler.access.active_agent import ActiveAgent
from ostler.app.project import Project
from ostler.app.tool_host import builtin_tools
from ostler.backends.agent_zero.backend import AgentZeroBackend, ZeroPlan
from ostler.backends.agent_zero.connector_probe import probe_connector
from ostler.backends.agent_zero.connector_server import ConnectorLogin, ConnectorServer, ConnectorSettings
from ostler.backends.agent_zero.local_calls import MAX_CALLS
from ostler.backends.agent_zero.message_api import MessageApiSettings, MessageApiTransport
from ostler.backends.agent_zero.server import ZeroServer, parse_server_url
from ostler.backends.agent_zero.transport import TransportStart, TurnListener, ZeroTransport
from ostler.backends.agent_zero.workspace_context import ContextSender
from ostler.core.errors import UsageError
from ostler.core.protocols import Tool, ToolRunner, Workspace
from ostler.credentials.agent_zero import ZeroCredentials
from ostler.credentials.store import open_credentials
from ostler.http.url import ServerOrigin
from ostler.settings.effective import Settings
from ostler.settings.home import find_home
from ostler.settings.references import fill_references
from ostler.settings.run_options import RunOptions
from ostler.tools.bash import BashTool
from ostler.tools.host import LocalToolHost
from ostler.tools.protocol.connector_files import ConnectorPatchTool, ConnectorReadTool, ConnectorWriteTool
from ostler.tools.protocol.connector_shell import ConnectorShellTool
from ostler.tools.protocol.stated_reasons import SHELL_TOOLS, StatedReasons, StatedReasonToolRunner
from ostler.wire.agent_zero.tool_requests import REQUESTED_TOOLS

if TYPE_CHECKING:
    from ostler.app.backends import SessionDraft

TOOLS = ("read", "list", "grep", "glob", "write", "edit", "patch", "bash", "stat", "mkdir")
SHELL_WARNING = (
    "shell commands that Agent Zero requests can run on this machine (security.allow_shell); "
    "each one is still checked by the permission rules"
)


def _useless_flags(options: RunOptions) -> tuple[str, ...]:
    """Return a warning about flags that have no effect, because the server selects and pays for its model."""
    flags = [f"--{name.replace('_', '-')}" for name, value in options.model.items() if value]
    flags += [f for f, value in (("--max-tokens", options.max_tokens), ("--max-cost", options.max_cost)) if value]
    return (f"no effect with Agent Zero, which selects its model: {', '.join(flags)}",) if flags else ()


def make_zero_backend(draft: "SessionDraft", workspace: Workspace) -> tuple[AgentZeroBackend, ToolRunner]:
    """Build the backend of a session with Agent Zero, and its tools."""
    settings, access, host = draft.project.settings, draft.access, host_name()
    connection, allow_shell = settings.config.connection, settings.config.security.allow_shell is True
    server, reasons = _Server(settings, draft.options, *server_location(settings)), StatedReasons(host)
    tools = [tool for tool in builtin_tools(settings) if tool.spec.name in TOOLS]
    tool_host = LocalToolHost(
        tools,
        workspace,
        lambda: _protocol_tools(tools),
        lambda tool: (allow_shell or tool not in SHELL_TOOLS) and access.allows_tool(_builtin_name(tool)),
        draft.project.hooks,
    )
    plan = ZeroPlan(
        server.origin.address,
        host,
        draft.request.fork,
        {"agent_profile": connection.agent_profile, "project": connection.project},
        lambda call_id, stated: reasons.add(call_id, stated.command, stated.reason),
        (*([SHELL_WARNING] if allow_shell else []), *_useless_flags(draft.options)),
        REQUESTED_TOOLS,
    )
    context_sender = _make_context_sender(draft.project, workspace, access, host)
    backend = AgentZeroBackend(plan, (server.connector, server.message_api), context_sender)
    return backend, StatedReasonToolRunner(tool_host, reasons, allow_shell=allow_shell)


def _builtin_name(tool: str) -> str:
    """Return the tool whose name agents use to allow or forbid a tool, also one of the connector."""
    return "bash" if tool == "connector_shell" else tool.removeprefix("connector_")


def _protocol_tools(tools: Sequence[Tool[Any]]) -> tuple[Tool[Any], ...]:
    """Return the tools for the operations of the connector; its shell judges commands as the bash tool does."""
    shells = [ConnectorShellTool(tool) for tool in tools if isinstance(tool, BashTool)]
    return (ConnectorReadTool(), ConnectorWriteTool(), ConnectorPatchTool(), *shells)


def host_name() -> str:
    """Return the name of this machine, which the server and the user see with every call."""
    return socket.gethostname() or "this machine"


def _make_context_sender(
    project: Project, workspace: Workspace, access: ActiveAgent, host: str
) -> ContextSender | None:
    config = project.settings.config.context
    if not config.enabled:
        return None
    from ostler.app.zero_context import ZeroContextSource

    return ContextSender(ZeroContextSource(project, workspace, access.policy, host), config.mode)


class _Server(msgspec.Struct, frozen=True):
    """The server of the settings, and the transports to it."""

    settings: Settings
    options: RunOptions
    origin: ServerOrigin
    path: str

    @property
    def _max_wait(self) -> float:
        """The longest turn in seconds; 0 means no limit."""
        config = self.settings.config
        times = (config.connection.max_wait_seconds, self.options.max_time or config.limits.time)
        return min((seconds for seconds in times if seconds), default=0.0)

    async def connector(self, start: TransportStart, listener: TurnListener) -> ZeroTransport | None:
        if not ZeroServer(self.origin, self.path).has_routes:
            return None
        connection = self.settings.config.connection
        page = self.path.rpartition("/")[0].removesuffix("/api")
        server = ConnectorServer(self.origin, page, find_login(self.origin), os.environ)
        connector = ConnectorSettings(
            host_name(),
            __version__,
            self.settings.config.security.allow_shell is True,
            connection.project,
            connection.agent_profile,
            connection.timeout_seconds,
            connection.keepalive_seconds,
            self._max_wait,
            connection.other_hosts,
            self.options.max_steps or MAX_CALLS,
        )
        has_key = bool(find_api_key(self.settings, self.origin))
        return await probe_connector(server, connector, start, listener, has_key=has_key)

    async def message_api(self, start: TransportStart, listener: TurnListener) -> ZeroTransport:
        server = ZeroServer(self.origin, self.path, find_api_key(self.settings, self.origin), os.environ)
        connection = self.settings.config.connection
        api = MessageApiSettings(
            connection.lifetime_hours,
            connection.stream,
            connection.stream_mode,
            connection.timeout_seconds,
            connection.keepalive_seconds,
            self._max_wait,
            connection.send_tool_results,
            connection.project,
            connection.agent_profile,
            self.options.max_steps or self.settings.config.limits.steps,
        )
        return MessageApiTransport(server, api, start, listener)


def find_login(origin: ServerOrigin) -> ConnectorLogin | None:
    """Return the login that `ostler zero login --user` stored for this server."""
    if find_home(os.environ) is None:
        return None
    login = ZeroCredentials(open_credentials(), origin.address).login()
    return ConnectorLogin(*login) if login else None


def server_location(settings: Settings) -> tuple[ServerOrigin, str]:
    """Return the server and the path of its message route. Raises `UsageError` if none is configured."""
    connection = settings.config.connection
    if connection.api_url:
        return parse_server_url(connection.api_url, connection.path)
    if connection.host:
        port = f":{connection.port}" if connection.port else ""
        return parse_server_url(f"{connection.host}{port}", connection.path)
    hint = "set AGENTZERO_API_URL, or connection.api_url in the config, e.g. http://localhost:50001/api_message"
    if any(setting.key in ("connection.api_url", "connection.host") for setting in settings.pending_trust):
        hint = "this project names one: review its settings with `ostler trust`, or set AGENTZERO_API_URL"
    raise UsageError("no Agent Zero server is configured", hint=hint)


def find_api_key(settings: Settings, origin: ServerOrigin) -> str:
    """Return the key of the settings, or else the one that `ostler zero login` stored for this server."""
    key = settings.config.connection.api_key
    if key is not None:
        return fill_references(
            key.reveal(),
            os.environ,
            lambda: Path(settings.origin("connection.api_key").file).parent,
            lambda: "connection.api_key",
        )
    if find_home(os.environ) is None:
        return ""
    return ZeroCredentials(open_credentials(), origin.address).api_key()
