"""Joins somebody's agent with our side of the house: its backend, and the one door with the tools it may ask for."""

from collections.abc import Mapping
from typing import Any

import msgspec

from ostler.app.tool_host import builtin_tools, make_hook_runner, other_tools
from ostler.backends.acp.backend import AcpBackend, AcpSessionPlan
from ostler.backends.acp.client_requests import ClientServices
from ostler.backends.acp.observer import AcpObserver
from ostler.core.protocols import Tool, Workspace
from ostler.settings.effective import Settings
from ostler.tools.bash import BashTool
from ostler.tools.host import LocalToolHost
from ostler.tools.protocol.agent_call_needs import AgentCallNeeds
from ostler.tools.protocol.approvals import Approvals, PreApprovedToolRunner
from ostler.tools.protocol.create_terminal import CreateTerminalTool
from ostler.tools.protocol.read_text_file import ReadTextFileTool
from ostler.tools.protocol.terminals import Terminals
from ostler.tools.protocol.write_text_file import WriteTextFileTool
from ostler.wire.jsonrpc import Mirror


class OfferedServices(msgspec.Struct, frozen=True):
    """What the agent is offered of this side; `network` is for the commands in its terminals."""

    files: bool = True
    terminal: bool = True
    network: bool = False
    answers: Mapping[str, str] = {}


class AcpParts:
    """One agent on one ground: the backend and the door belong together, because an allowed edit is known to both."""

    def __init__(
        self,
        plan: AcpSessionPlan,
        workspace: Workspace,
        settings: Settings,
        services: OfferedServices,
        observer: AcpObserver | None = None,
        mirror: Mirror | None = None,
    ) -> None:
        security = settings.config.security
        bash = BashTool(security.danger_patterns, security.blacklist_patterns)
        terminals, approvals = Terminals(), Approvals(workspace)
        asked: list[Tool[Any]] = [
            ReadTextFileTool(),
            WriteTextFileTool(),
            CreateTerminalTool(terminals, bash, network=services.network),
        ]
        hooks = make_hook_runner(settings, workspace.root)
        host = LocalToolHost(builtin_tools(settings), workspace, lambda: [*other_tools(), *asked], interceptor=hooks)
        powers = ClientServices(
            AgentCallNeeds(workspace, bash),
            terminals,
            approvals.add,
            approvals.clear,
            services.files,
            services.terminal,
            services.answers,
        )
        self.name = f"acp:{plan.launch.name}"
        self.tools = PreApprovedToolRunner(host, approvals)
        self.backend = AcpBackend(plan, powers, observer, mirror)
