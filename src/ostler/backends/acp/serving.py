"""Answers what an agent asks of its client: permissions, files, terminals, questions; each through the stage."""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from ostler.backends.acp.elicitation import answered, question
from ostler.backends.acp.showing import command_of, display, edits_of, paths_of, shown_path
from ostler.backends.acp.telling import Teller
from ostler.backends.acp.watch import Watch
from ostler.vocabulary.errors import OstlerError
from ostler.vocabulary.events import ToolCalled
from ostler.vocabulary.permission import Decision, Need, Option, Permission
from ostler.vocabulary.seams import Stage
from ostler.vocabulary.tools import Kind, ToolCall, ToolResult
from ostler.wire.acp import NOT_FOUND, PermissionOption, ToolCallFields
from ostler.wire.acp_calls import (
    CreateTerminal,
    Elicitation,
    PermissionRequest,
    ReadTextFile,
    TerminalRef,
    WriteTextFile,
    chosen,
    nobody_chose,
)
from ostler.wire.acp_read import read
from ostler.wire.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, Params, RpcError

T = TypeVar("T")
Foresee = Callable[[str, str, Sequence[str], str, Sequence[str]], Awaitable[tuple[Need, ...]]]
_KINDS: dict[str, Any] = {
    "allow_once": "allow_once",
    "allow_always": "allow_always",
    "reject_once": "deny",
    "reject_always": "deny_always",
}


class TerminalDesk(Protocol):
    """The terminals the agent was given; each method is the answer to a request."""

    async def output(self, terminal_id: str) -> dict[str, Any]: ...

    async def wait(self, terminal_id: str) -> dict[str, Any]: ...

    async def kill(self, terminal_id: str) -> None: ...

    async def release(self, terminal_id: str) -> None: ...


class Powers(msgspec.Struct, frozen=True):
    """What an agent is let have of this side, and who knows about it; all of it is handed in.

    `foresee` tells what a call of the agent's own would need, `approve` is told of an edit that was allowed, `forget`
    that the turn is over; `answers` are a person's answers to questions, given before.
    """

    foresee: Foresee
    terminals: TerminalDesk
    approve: Callable[[str, str], None] = lambda path, text: None
    forget: Callable[[], None] = lambda: None
    files: bool = True
    terminal: bool = True
    answers: Mapping[str, str] = {}


class Serving:
    """One agent's requests, each a task of its own."""

    def __init__(self, stage: Stage, cwd: str, teller: Teller, powers: Powers, watch: Watch) -> None:
        self._stage = stage
        self._cwd = cwd
        self._teller = teller
        self._powers = powers
        self._watch = watch
        self._origin = os.urandom(4).hex()
        self._count = 0
        files = {"fs/read_text_file": self._read, "fs/write_text_file": self._write}
        terminals = {
            "terminal/create": self._create,
            "terminal/output": self._output,
            "terminal/wait_for_exit": self._wait,
            "terminal/kill": self._kill,
            "terminal/release": self._release,
        }
        self._methods: dict[str, Callable[[Params], Awaitable[Any]]] = {
            "session/request_permission": self._permission,
            "elicitation/create": self._elicit,
            **(files if powers.files else {}),
            **(terminals if powers.terminal else {}),
        }

    def requested(self, method: str, params: Params) -> Awaitable[Any]:
        """The answer to come; a method that was not offered is unknown."""
        if method not in self._methods:
            raise RpcError(METHOD_NOT_FOUND, f"this client has no method {method!r}")
        return self._methods[method](params)

    # -- permissions -----------------------------------------------------------------------------------------------

    async def _permission(self, params: Params) -> dict[str, Any]:
        asked = read(PermissionRequest, params)
        call = self._teller.tool_call(asked.tool_call)
        kind, title, edits = call.kind or "other", call.title or "", edits_of(call)
        needs = await self._powers.foresee(kind, title, paths_of(call), command_of(call), edits)
        preview = display(call, self._cwd)
        options = tuple(Option(o.option_id, o.name, _KINDS[o.kind]) for o in asked.options if o.kind in _KINDS)
        call_id = self._teller.our_id(call.tool_call_id)
        asking = Permission(title or call.kind or "a tool call", needs, preview, options, call_id)
        decision = await self._stage.decide(asking)
        if decision.answer == "allow":
            self._note_edits(call)
        self._watch.decided(msgspec.structs.replace(asked, tool_call=call), decision)
        return choice(decision, asked.options)

    def _note_edits(self, call: ToolCallFields) -> None:
        for item in call.content or ():
            if item.type == "diff" and item.path and item.new_text is not None:
                self._powers.approve(item.path, item.new_text)

    # -- files -----------------------------------------------------------------------------------------------------

    async def _read(self, params: Params) -> dict[str, Any]:
        asked = read(ReadTextFile, params)
        arguments = {"path": asked.path, "line": asked.line, "limit": asked.limit}
        result = await self._through_the_door("fs/read_text_file", "read_text_file", "read", arguments, asked.path)
        return {"content": result.data["content"]}

    async def _write(self, params: Params) -> dict[str, Any]:
        asked = read(WriteTextFile, params)
        if not isinstance(params.get("content"), str):
            raise RpcError(INVALID_PARAMS, "content is not a string")
        arguments = {"path": asked.path, "content": asked.content}
        await self._through_the_door("fs/write_text_file", "write_text_file", "edit", arguments, asked.path)
        return {}

    # -- terminals -------------------------------------------------------------------------------------------------

    async def _create(self, params: Params) -> dict[str, Any]:
        asked = read(CreateTerminal, params)
        arguments = {
            "command": asked.command,
            "args": list(asked.args),
            "env": {variable.name: variable.value for variable in asked.env},
            "cwd": asked.cwd or "",
            "output_byte_limit": asked.output_byte_limit,
        }
        result = await self._through_the_door("terminal/create", "create_terminal", "execute", arguments, "")
        told: dict[str, Any] = result.data
        self._watch.terminal("created", told["terminalId"], " ".join((asked.command, *asked.args)))
        return told

    async def _output(self, params: Params) -> dict[str, Any]:
        terminal = read(TerminalRef, params).terminal_id
        told = await self._of_terminal(self._powers.terminals.output(terminal))
        self._teller.printed[terminal] = told["output"]
        self._watch.terminal("output", terminal, told["output"])
        return told

    async def _wait(self, params: Params) -> dict[str, Any]:
        terminal = read(TerminalRef, params).terminal_id
        told = await self._of_terminal(self._powers.terminals.wait(terminal))
        self._watch.terminal("exited", terminal, str(told["signal"] or told["exitCode"]))
        return told

    async def _kill(self, params: Params) -> dict[str, Any]:
        await self._of_terminal(self._powers.terminals.kill(read(TerminalRef, params).terminal_id))
        return {}

    async def _release(self, params: Params) -> dict[str, Any]:
        """The last of what it printed is kept for whoever is shown the call."""
        terminal = read(TerminalRef, params).terminal_id
        last = await self._of_terminal(self._powers.terminals.output(terminal))
        self._teller.printed[terminal] = last["output"]
        await self._of_terminal(self._powers.terminals.release(terminal))
        self._watch.terminal("released", terminal)
        return {}

    async def _of_terminal(self, work: Awaitable[T]) -> T:
        try:
            return await work
        except OstlerError as error:
            raise RpcError(NOT_FOUND if error.fault.code == "not_found" else INTERNAL_ERROR, str(error)) from None

    # -- questions -------------------------------------------------------------------------------------------------

    async def _elicit(self, params: Params) -> dict[str, Any]:
        asked = read(Elicitation, params)
        given = answered(asked, self._powers.answers)
        if given is not None:
            return {"action": "accept", "content": given}
        reply = await self._stage.ask(question(asked, self._teller.name))
        filled_in = reply.action == "accept" and reply.content is not None
        return {"action": reply.action} | ({"content": reply.content} if filled_in else {})

    # -- the door --------------------------------------------------------------------------------------------------

    async def _through_the_door(
        self, method: str, tool: str, kind: Kind, arguments: dict[str, Any], path: str
    ) -> ToolResult:
        """A call of ours that the agent asked for; what became of it, or an error that says why nothing did."""
        given = {
            name: value for name, value in arguments.items() if name == "content" or value not in (None, "", [], {})
        }
        call = ToolCall(self._id("call"), tool, given, origin="protocol")
        subject = shown_path(path, self._cwd) or str(arguments.get("command", ""))
        self._stage.emit(ToolCalled(call, f"{method} {subject}", kind, (subject,) if path else ()))
        result = await self._stage.run_tool(call)
        if result.status == "ok":
            return result
        why = result.fault.message if result.fault else result.for_model
        tell = self._watch.refused if result.status == "denied" else self._watch.failed
        tell(method, subject, why)
        missing = result.fault is not None and result.fault.code == "not_found"
        raise RpcError(NOT_FOUND if missing else INTERNAL_ERROR, why)

    def _id(self, kind: str) -> str:
        self._count += 1
        return f"acp-{kind}-{self._origin}-{self._count}"


def choice(decision: Decision, options: Sequence[PermissionOption]) -> dict[str, Any]:
    """The option that says what was decided: the one a person chose, else by kind, once before always."""
    if decision.answer == "cancel":
        return nobody_chose()
    allow = decision.answer == "allow"
    wanted = ["allow_once", "allow_always"] if allow else ["reject_once", "reject_always"]
    fitting = sorted((o for o in options if o.kind in wanted), key=lambda option: wanted.index(option.kind))
    picked = [option for option in fitting if option.option_id == decision.option_id]
    if picked and (decision.lasts != "once" or picked[0].kind != "allow_always"):
        return chosen(picked[0].option_id)
    return chosen(fitting[0].option_id) if fitting else nobody_chose()
