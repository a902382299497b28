"""Starts a command for an agent in a terminal that it can watch, wait for, kill and release."""

import shlex

import msgspec

from ostler.core.display import Display
from ostler.core.permission import Need, Permission
from ostler.core.protocols import CommandRequest, ToolContext, Workspace
from ostler.core.tools import ToolResult
from ostler.tools.bash import BashParams, BashTool
from ostler.tools.protocol.protocol_tool import ProtocolTool
from ostler.tools.protocol.terminals import Terminals


class CreateTerminalParams(msgspec.Struct):
    command: str
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str = ""
    output_byte_limit: int | None = None

    @property
    def command_line(self) -> str:
        """The command as a shell takes it: many agents send a whole line as the command, without arguments."""
        return shlex.join([self.command, *self.args]) if self.args else self.command


class CreateTerminalTool(ProtocolTool[CreateTerminalParams]):
    name = "create_terminal"
    kind = "execute"
    reach = "commands"
    params = CreateTerminalParams

    def __init__(self, terminals: Terminals, bash: BashTool, *, network: bool = False) -> None:
        """An agent does not say whether a command wants the network; `network` lets them all have it."""
        self._terminals = terminals
        self._bash = bash
        self._network = network

    async def permission(self, params: CreateTerminalParams, workspace: Workspace) -> Permission:
        """What the same command would need if a model asked for it."""
        asked = await self._bash.permission(BashParams(command=params.command_line, network=self._network), workspace)
        if not params.cwd or (place := workspace.resolve(params.cwd)).in_workspace:
            return asked
        outside = Need("bash", f"outside the workspace: {place.absolute}")
        return msgspec.structs.replace(asked, needs=(*asked.needs, outside))

    async def run(self, params: CreateTerminalParams, context: ToolContext) -> ToolResult:
        jobs = context.workspace.jobs
        job = await jobs.start(
            CommandRequest(params.command_line, cwd=params.cwd, env=params.env, network=self._network)
        )
        terminal = self._terminals.add(jobs, job, params.output_byte_limit)
        told = f"started {params.command_line}"
        return ToolResult("", "ok", told, Display(told), {"terminalId": terminal})
