"""Tool that starts a command in a terminal for an ACP agent."""

import re
import shlex
from typing import NamedTuple
from weakref import WeakKeyDictionary

import msgspec

from ostler.core.commands import CommandRequest
from ostler.core.display import Display
from ostler.core.errors import ToolError
from ostler.core.permission import Need, Permission
from ostler.core.protocols import ToolContext, Workspace
from ostler.core.tools import ToolResult
from ostler.tools.bash import BashParams, BashTool
from ostler.tools.protocol.protocol_tool import ProtocolTool
from ostler.tools.protocol.terminals import Terminals

_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class CreateTerminalParams(msgspec.Struct, eq=False, weakref=True):
    command: str
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str = ""
    output_byte_limit: int | None = None

    @property
    def command_line(self) -> str:
        """The command for the shell; many agents send a complete command line without arguments."""
        return shlex.join([self.command, *self.args]) if self.args else self.command


class _CheckedTerminal(NamedTuple):
    """The folder of a terminal and the paths that its command may read, as they were when its needs were found."""

    folder: str
    readable: tuple[str, ...]


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
        self._checked: WeakKeyDictionary[CreateTerminalParams, _CheckedTerminal] = WeakKeyDictionary()

    async def permission(self, params: CreateTerminalParams, workspace: Workspace) -> Permission:
        """Return the needs of the same command in the bash tool, and of a folder outside the workspace."""
        place = workspace.resolve(params.cwd or ".")
        command = BashParams(command=_with_variables(params), network=self._network, write=True)
        permission, readable = await self._bash.check(command, workspace, place.absolute)
        self._checked[params] = _CheckedTerminal(place.absolute, (*readable, place.absolute))
        if place.in_workspace:
            return permission
        outside = Need("bash", f"outside the workspace: {place.absolute}")
        return msgspec.structs.replace(permission, needs=(*permission.needs, outside))

    async def run(self, params: CreateTerminalParams, context: ToolContext) -> ToolResult:
        jobs, checked = context.workspace.jobs, self._checked[params]
        env = {name: value for name, value in params.env.items() if _is_harmless(name, value)}
        request = CommandRequest(
            _with_variables(params), cwd=checked.folder, env=env, network=self._network, readable=checked.readable
        )
        job = await jobs.start(request)
        terminal = self._terminals.add(jobs, job, params.output_byte_limit)
        text = f"started {params.command_line}"
        return ToolResult("", "ok", text, Display(text), {"terminalId": terminal})


def _with_variables(params: CreateTerminalParams) -> str:
    """Return the command line after commands that set its variables, so that their check includes these."""
    exports = [
        f"export {name}={shlex.quote(value)}" for name, value in params.env.items() if not _is_harmless(name, value)
    ]
    return "\n".join([*exports, params.command_line])


def _is_harmless(name: str, value: str) -> bool:
    from ostler.policy.shell.simple_command import is_harmless_assignment  # imports a parser that only commands need

    if not _VARIABLE_NAME.fullmatch(name):
        raise ToolError(f"{name!r} is not the name of a variable; use another name", code="bad_arguments")
    return is_harmless_assignment(f"{name}={value}")
