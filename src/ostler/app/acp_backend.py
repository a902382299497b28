"""Builds the ACP backend together with the tool host that serves the agent's file and terminal requests."""

import os
from collections.abc import Mapping
from typing import Any

import msgspec

from ostler import __version__
from ostler.app.backend_kinds import ACP_PREFIX
from ostler.app.project import Project
from ostler.app.tool_host import builtin_tools, other_tools
from ostler.backends.acp.backend import AcpBackend, AcpSessionPlan
from ostler.backends.acp.client_requests import ClientServices
from ostler.core.protocols import Tool, Workspace
from ostler.core.sessions import OpenSessionRequest
from ostler.knowledge.acp_agents import find_agent
from ostler.stdio_rpc.program import Launch
from ostler.tools.bash import BashTool
from ostler.tools.host import LocalToolHost
from ostler.tools.protocol.agent_call_needs import AgentCallNeeds
from ostler.tools.protocol.approvals import Approvals, PreApprovedToolRunner
from ostler.tools.protocol.create_terminal import CreateTerminalTool
from ostler.tools.protocol.read_text_file import ReadTextFileTool
from ostler.tools.protocol.terminals import Terminals
from ostler.tools.protocol.write_text_file import WriteTextFileTool
from ostler.wire.acp_observer import AcpObserver
from ostler.wire.jsonrpc import Mirror

_AGENT_OPTIONS = ("model", "thinking")


class OfferedServices(msgspec.Struct, frozen=True):
    """The services offered to the agent; `network` allows network access to commands in its terminals."""

    files: bool = True
    terminal: bool = True
    network: bool = False
    answers: Mapping[str, str] = {}


class AcpParts:
    """The backend and the tool host of one agent. They share the approvals of edits."""

    def __init__(
        self,
        plan: AcpSessionPlan,
        workspace: Workspace,
        project: Project,
        services: OfferedServices,
        observer: AcpObserver | None = None,
        mirror: Mirror | None = None,
    ) -> None:
        security = project.settings.config.security
        bash = BashTool(security.danger_patterns, security.blacklist_patterns)
        terminals, approvals = Terminals(project.secret_masker()), Approvals(workspace)
        protocol_tools: list[Tool[Any]] = [
            ReadTextFileTool(),
            WriteTextFileTool(),
            CreateTerminalTool(terminals, bash, network=services.network),
        ]
        host = LocalToolHost(
            builtin_tools(project.settings),
            workspace,
            lambda: [*other_tools(), *protocol_tools],
            interceptor=project.hooks,
        )
        client_services = ClientServices(
            AgentCallNeeds(workspace, bash),
            terminals,
            approvals.add,
            approvals.clear,
            services.files,
            services.terminal,
            services.answers,
        )
        self.agent = plan.launch.name
        self.name = f"{ACP_PREFIX}{self.agent}"
        self.tools = PreApprovedToolRunner(host, approvals)
        self.backend = AcpBackend(plan, client_services, observer, mirror)


def make_acp_parts(
    project: Project, request: OpenSessionRequest, workspace: Workspace, model_flags: Mapping[str, str]
) -> AcpParts:
    """Build the backend for `acp:NAME`, or for the first configured agent if the name is empty.

    The model flags of the command line are passed to the agent as session options.
    """
    agent = find_agent(request.backend.removeprefix(ACP_PREFIX), "", project.path, project.settings)
    entry = agent.entry
    launch = Launch(entry.command, entry.args, agent.environment(os.environ), project.root, agent.name)
    plan = AcpSessionPlan(
        launch,
        __version__,
        agent.mcp_servers,
        request.directories,
        fork=request.fork,
        supports_elicitation=request.interactive,
        required_options=tuple((name, model_flags[name]) for name in _AGENT_OPTIONS if model_flags.get(name)),
    )
    return AcpParts(plan, workspace, project, OfferedServices())
