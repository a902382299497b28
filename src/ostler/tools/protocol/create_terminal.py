"""Tool that starts a command in a terminal for an ACP agent."""

import shlex

import msgspec

from ostler.core.commands import CommandRequest
from ostler.core.display import Display
from ostler.core.permission import Need, Permission
from ostler.core.protocols import ToolContext, Workspace
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
        """The command for the shell; many agents send a complete command line without arguments."""
        return shlex.join([self.command, *self.args]) if self.args else self.command


class CreateTerminalTool(ProtocolTool[CreateTerminalParams]):
    name = "create_terminal"
    kind = "execute"
    reach = "commands"
    params = CreateTerminalParams

    def __init__(self, terminals: Terminals, bash: BashTool, *, network: bool = False) -> None:
        """`network` allows network access for all commands, because ACP cannot request it per command."""
        self._terminals = terminals
        self._bash = bash
        self._network = network

    async def permission(self, params: CreateTerminalParams, workspace: Workspace) -> Permission:
        """Return the needs of the same command in the bash tool, and of a folder outside the workspace."""
        permission = await self._bash.permission(
            BashParams(command=params.command_line, network=self._network, write=True), workspace
        )
        if not params.cwd or (place := workspace.resolve(params.cwd)).in_workspace:
            return permission
        outside = Need("bash", f"outside the workspace: {place.absolute}")
        return msgspec.structs.replace(permission, needs=(*permission.needs, outside))

    async def run(self, params: CreateTerminalParams, context: ToolContext) -> ToolResult:
        jobs = context.workspace.jobs
        job = await jobs.start(
            CommandRequest(params.command_line, cwd=params.cwd, env=params.env, network=self._network)
        )
        terminal = self._terminals.add(jobs, job, params.output_byte_limit)
        text = f"started {params.command_line}"
        return ToolResult("", "ok", text, Display(text), {"terminalId": terminal})
