"""Builds the Agent Zero backend with its tools from the settings."""

import json
import logging
import os
import socket
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ostler import __version__
from ostler.access.active_agent import ActiveAgent
from ostler.app.project import Project
from ostler.app.tool_host import builtin_tools, open_credentials
from ostler.backends.agent_zero.backend import AgentZeroBackend, ZeroPlan
from ostler.backends.agent_zero.connector import ConnectorSettings
from ostler.backends.agent_zero.connector_probe import probe_connector
from ostler.backends.agent_zero.connector_server import ConnectorLogin, ConnectorServer
from ostler.backends.agent_zero.message_api import MessageApiSettings, MessageApiTransport
from ostler.backends.agent_zero.server import ZeroServer, parse_server_url
from ostler.backends.agent_zero.transport import TransportStart, TurnListener, ZeroTransport
from ostler.backends.agent_zero.workspace_context import ContextSender
from ostler.core.credentials import CredentialName
from ostler.core.errors import UsageError
from ostler.core.protocols import Tool, Workspace
from ostler.core.sessions import OpenSessionRequest
from ostler.http.url import ServerOrigin
from ostler.settings.effective import Settings
from ostler.settings.home import find_home
from ostler.settings.references import fill_references
from ostler.settings.schema_services import ConnectionConfig
from ostler.tools.bash import BashTool
from ostler.tools.host import LocalToolHost
from ostler.tools.protocol.connector_files import ConnectorReadTool, ConnectorWriteTool
from ostler.tools.protocol.connector_shell import ConnectorShellTool
from ostler.tools.protocol.stated_reasons import SHELL_TOOLS, StatedReasons, StatedReasonToolRunner

CREDENTIAL_SERVICE = "agent_zero"
LOGIN_SERVICE = "agent_zero_login"
# What agents allow or forbid for the tools of the connector.
BUILTIN_NAMES = {"connector_read": "read", "connector_write": "write", "connector_shell": "bash"}
TOOLS = ("read", "list", "grep", "glob", "write", "edit", "patch", "bash", "stat", "mkdir")
SHELL_WARNING = (
    "shell commands that Agent Zero requests can run on this machine (security.allow_shell); "
    "each one is still checked by the permission rules"
)


class ZeroParts:
    """The backend and the tools of a session with Agent Zero."""

    def __init__(
        self,
        project: Project,
        request: OpenSessionRequest,
        workspace: Workspace,
        access: ActiveAgent,
        notify: Callable[[str], None],
    ) -> None:
        connection = project.settings.config.connection
        origin, path = server_location(connection)
        allow_shell = project.settings.config.security.allow_shell is True
        if allow_shell:
            notify(f"warning: {SHELL_WARNING}")
            logging.getLogger(__name__).warning(SHELL_WARNING)
        host = host_name()
        reasons = StatedReasons(host)
        tools = [tool for tool in builtin_tools(project.settings) if tool.spec.name in TOOLS]
        tool_host = LocalToolHost(
            tools,
            workspace,
            lambda: _protocol_tools(tools),
            lambda tool: (allow_shell or tool not in SHELL_TOOLS) and access.allows_tool(BUILTIN_NAMES.get(tool, tool)),
            project.hooks,
        )
        self.tools = StatedReasonToolRunner(tool_host, reasons, allow_shell=allow_shell)
        plan = ZeroPlan(
            origin.address,
            host,
            request.fork,
            {"agent_profile": connection.agent_profile, "project": connection.project},
            lambda call_id, stated: reasons.add(call_id, stated.command, stated.reason),
        )
        probes = (
            partial(_connector, origin, path, project.settings, host),
            partial(_message_api, origin, path, project.settings),
        )
        self.backend = AgentZeroBackend(plan, probes, _make_context_sender(project, workspace, access, host))


def _protocol_tools(tools: Sequence[Tool[Any]]) -> tuple[Tool[Any], ...]:
    """Return the tools for the operations of the connector; its shell judges commands as the bash tool does."""
    shells = [ConnectorShellTool(tool) for tool in tools if isinstance(tool, BashTool)]
    return (ConnectorReadTool(), ConnectorWriteTool(), *shells)


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


async def _connector(
    origin: ServerOrigin,
    path: str,
    settings: Settings,
    host: str,
    start: TransportStart,
    listener: TurnListener,
) -> ZeroTransport | None:
    if not ZeroServer(origin, path).has_routes:
        return None
    connection = settings.config.connection
    page = path.rpartition("/")[0].removesuffix("/api")
    server = ConnectorServer(origin, page, find_login(origin), os.environ)
    connector = ConnectorSettings(
        host,
        __version__,
        settings.config.security.allow_shell is True,
        connection.project,
        connection.agent_profile,
        connection.timeout_seconds,
        connection.keepalive_seconds,
        connection.max_wait_seconds,
        connection.other_hosts,
    )
    return await probe_connector(server, connector, start, listener, has_key=bool(find_api_key(settings, origin)))


def find_login(origin: ServerOrigin) -> ConnectorLogin | None:
    """Return the login that `ostler zero login --user` stored for this server."""
    if find_home(os.environ) is None:
        return None
    stored = open_credentials().get(CredentialName(LOGIN_SERVICE, origin.address))
    return ConnectorLogin(*json.loads(stored)) if stored else None


async def _message_api(
    origin: ServerOrigin, path: str, settings: Settings, start: TransportStart, listener: TurnListener
) -> ZeroTransport:
    server = ZeroServer(origin, path, find_api_key(settings, origin), os.environ)
    connection, limits = settings.config.connection, settings.config.limits
    return MessageApiTransport(
        server,
        MessageApiSettings(
            connection.lifetime_hours,
            connection.stream,
            connection.stream_mode,
            connection.timeout_seconds,
            connection.keepalive_seconds,
            connection.max_wait_seconds,
            connection.send_tool_results,
            connection.project,
            connection.agent_profile,
            limits.steps,
        ),
        start,
        listener,
    )


def server_location(connection: ConnectionConfig) -> tuple[ServerOrigin, str]:
    """Return the server and the path of its message route. Raises `UsageError` if none is configured."""
    if connection.api_url:
        return parse_server_url(connection.api_url, connection.path)
    if connection.host:
        port = f":{connection.port}" if connection.port else ""
        return parse_server_url(f"{connection.host}{port}", connection.path)
    raise UsageError(
        "no Agent Zero server is configured",
        hint="set AGENTZERO_API_URL, or connection.api_url in the config, e.g. http://localhost:50001/api_message",
    )


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
    return open_credentials().get(CredentialName(CREDENTIAL_SERVICE, origin.address)) or ""
