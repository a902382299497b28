"""Answers an agent's requests to its client: permissions, files, terminals, elicitation."""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from ostler.backends.acp.requested_access import requested_access
from ostler.backends.acp.tool_call_display import display_path, edited_paths, make_display
from ostler.backends.acp.update_translator import UpdateTranslator
from ostler.core.errors import OstlerError
from ostler.core.events import ToolCalled
from ostler.core.permission import AnswerOption, Decision, Need, Permission, Question
from ostler.core.protocols import BackendContext
from ostler.core.tools import ToolCall, ToolKind, ToolResult
from ostler.wire.acp import NOT_FOUND, PermissionOption, ToolCallFields
from ostler.wire.acp_decode import decode_lenient, decode_params
from ostler.wire.acp_observer import AcpObserver
from ostler.wire.acp_requests import (
    CreateElicitationRequest,
    CreateTerminalRequest,
    PermissionRequestCore,
    ReadTextFileRequest,
    RequestPermissionRequest,
    TerminalRef,
    WriteTextFileRequest,
    cancelled_outcome,
    selected_outcome,
)
from ostler.wire.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, Params, RpcError

T = TypeVar("T")
PredictNeeds = Callable[[str, str, Sequence[str], str, Sequence[str], Sequence[str]], Awaitable[tuple[Need, ...]]]
_ANSWER_KINDS: dict[str, Any] = {
    "allow_once": "allow_once",
    "allow_always": "allow_always",
    "reject_once": "deny",
    "reject_always": "deny_always",
}
_ERROR_CODES = {"not_found": NOT_FOUND, "bad_path": INVALID_PARAMS, "bad_arguments": INVALID_PARAMS}


class TerminalService(Protocol):
    """The agent's terminals; each method returns the response to a request."""

    async def output(self, terminal_id: str) -> dict[str, Any]: ...

    async def wait(self, terminal_id: str) -> dict[str, Any]: ...

    async def kill(self, terminal_id: str) -> None: ...

    async def release(self, terminal_id: str) -> None: ...


class ClientServices(msgspec.Struct, frozen=True):
    """The parts of this client that the agent may use.

    `predict_needs` returns what one of the agent's own calls needs, `on_edit_allowed` is called for each allowed edit,
    `on_turn_end` at the end of a turn; `answers` are preset answers to elicitations.
    """

    predict_needs: PredictNeeds
    terminals: TerminalService
    on_edit_allowed: Callable[[str, str], None] = lambda path, text: None
    on_turn_end: Callable[[], None] = lambda: None
    files: bool = True
    terminal: bool = True
    answers: Mapping[str, str] = {}


class ClientRequestHandler:
    """Handles the requests of one agent."""

    def __init__(
        self,
        context: BackendContext,
        cwd: str,
        updates: UpdateTranslator,
        services: ClientServices,
        observer: AcpObserver,
    ) -> None:
        self._context = context
        self._cwd = cwd
        self._updates = updates
        self._services = services
        self._observer = observer
        self.missing_files_are_empty = False  # what some agents expect
        self._id_token = os.urandom(4).hex()
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
            **(files if services.files else {}),
            **(terminals if services.terminal else {}),
        }

    def handle_request(self, method: str, params: Params) -> Awaitable[Any]:
        """Return the awaitable response. Raises `RpcError` for a method that was not offered."""
        if method not in self._methods:
            raise RpcError(METHOD_NOT_FOUND, f"this client has no method {method!r}")
        return self._methods[method](params)

    # -- permissions -----------------------------------------------------------------------------------------------

    async def _permission(self, params: Params) -> dict[str, Any]:
        decode_params(PermissionRequestCore, params)
        request = decode_lenient(RequestPermissionRequest, params)
        call = self._updates.apply_tool_call(request.tool_call)
        title, access = call.title or "", requested_access(call)
        needs = await self._services.predict_needs(
            access.kind, title, access.paths, access.command, edited_paths(call), access.hints
        )
        if not access.is_complete:
            needs = (*needs, Need("agent", title, danger="deny", reason="the request is too large to be checked"))
        preview = make_display(call, self._cwd)
        options = tuple(
            AnswerOption(o.option_id, o.name, _ANSWER_KINDS[o.kind]) for o in request.options if o.kind in _ANSWER_KINDS
        )
        call_id = self._updates.local_call_id(call.tool_call_id)
        permission = Permission(title or call.kind or "a tool call", needs, preview, options, call_id)
        decision = await self._context.decide(permission)
        outcome = select_option(decision, request.options)
        if outcome == cancelled_outcome():  # the agent offers no option for this decision
            decision = msgspec.structs.replace(decision, answer="cancel")
        elif decision.answer == "allow":
            self._report_edits(call)
        self._observer.on_decision(msgspec.structs.replace(request, tool_call=call), decision)
        return outcome

    def _report_edits(self, call: ToolCallFields) -> None:
        for item in call.content or ():
            if item.type == "diff" and item.path and item.new_text is not None:
                self._services.on_edit_allowed(item.path, item.new_text)

    # -- files -----------------------------------------------------------------------------------------------------

    async def _read(self, params: Params) -> dict[str, Any]:
        request = decode_params(ReadTextFileRequest, params)
        arguments = {"path": request.path, "line": request.line, "limit": request.limit}
        result, subject = await self._call_tool("fs/read_text_file", "read_text_file", "read", arguments, request.path)
        if self.missing_files_are_empty and _is_missing(result):
            return {"content": ""}
        return {"content": self._require_ok(result, "fs/read_text_file", subject).data["content"]}

    async def _write(self, params: Params) -> dict[str, Any]:
        request = decode_params(WriteTextFileRequest, params)
        arguments = {"path": request.path, "content": request.content}
        await self._run_tool("fs/write_text_file", "write_text_file", "edit", arguments, request.path)
        return {}

    # -- terminals -------------------------------------------------------------------------------------------------

    async def _create(self, params: Params) -> dict[str, Any]:
        request = decode_params(CreateTerminalRequest, params)
        arguments = {
            "command": request.command,
            "args": list(request.args),
            "env": {variable.name: variable.value for variable in request.env},
            "cwd": request.cwd or "",
            "output_byte_limit": request.output_byte_limit,
        }
        result = await self._run_tool("terminal/create", "create_terminal", "execute", arguments, "")
        response: dict[str, Any] = result.data
        self._observer.on_terminal("created", response["terminalId"], " ".join((request.command, *request.args)))
        return response

    async def _output(self, params: Params) -> dict[str, Any]:
        terminal = decode_params(TerminalRef, params).terminal_id
        response = await self._terminal_result(self._services.terminals.output(terminal))
        self._updates.terminal_output[terminal] = response["output"]
        self._observer.on_terminal("output", terminal, response["output"])
        return response

    async def _wait(self, params: Params) -> dict[str, Any]:
        terminal = decode_params(TerminalRef, params).terminal_id
        response = await self._terminal_result(self._services.terminals.wait(terminal))
        self._observer.on_terminal("exited", terminal, str(response["signal"] or response["exitCode"]))
        return response

    async def _kill(self, params: Params) -> dict[str, Any]:
        await self._terminal_result(self._services.terminals.kill(decode_params(TerminalRef, params).terminal_id))
        return {}

    async def _release(self, params: Params) -> dict[str, Any]:
        """Release a terminal; its last output is stored for display."""
        terminal = decode_params(TerminalRef, params).terminal_id
        last = await self._terminal_result(self._services.terminals.output(terminal))
        self._updates.terminal_output[terminal] = last["output"]
        await self._terminal_result(self._services.terminals.release(terminal))
        self._observer.on_terminal("released", terminal)
        return {}

    async def _terminal_result(self, work: Awaitable[T]) -> T:
        try:
            return await work
        except OstlerError as error:
            raise RpcError(NOT_FOUND if error.fault.code == "not_found" else INTERNAL_ERROR, str(error)) from None

    # -- elicitation -----------------------------------------------------------------------------------------------

    async def _elicit(self, params: Params) -> dict[str, Any]:
        request = decode_params(CreateElicitationRequest, params)
        content = fill_form(request, self._services.answers)
        if content is not None:
            return {"action": "accept", "content": content}
        reply = await self._context.ask(make_question(request, self._updates.name))
        has_content = reply.action == "accept" and reply.content is not None
        return {"action": reply.action} | ({"content": reply.content} if has_content else {})

    # -- tool host -------------------------------------------------------------------------------------------------

    async def _run_tool(
        self, method: str, tool: str, kind: ToolKind, arguments: dict[str, Any], path: str
    ) -> ToolResult:
        """Run a tool call for the agent. Raises `RpcError` with the reason if it was denied or failed."""
        result, subject = await self._call_tool(method, tool, kind, arguments, path)
        return self._require_ok(result, method, subject)

    async def _call_tool(
        self, method: str, tool: str, kind: ToolKind, arguments: dict[str, Any], path: str
    ) -> tuple[ToolResult, str]:
        """Run a tool call and return its result, and its subject for messages."""
        set_arguments = {
            name: value for name, value in arguments.items() if name == "content" or value not in (None, "", [], {})
        }
        call = ToolCall(self._new_id("call"), tool, set_arguments, origin="protocol")
        subject = display_path(path, self._cwd) or str(arguments.get("command", ""))
        self._context.emit(ToolCalled(call, f"{method} {subject}", kind, (subject,) if path else ()))
        return await self._context.run_tool(call), subject

    def _require_ok(self, result: ToolResult, method: str, subject: str) -> ToolResult:
        """Return the result. Raises `RpcError` with the reason if the call was denied or failed."""
        if result.status == "ok":
            return result
        reason = result.fault.message if result.fault else result.for_model
        report = self._observer.on_refused if result.status == "denied" else self._observer.on_failed
        report(method, subject, reason)
        raise RpcError(_ERROR_CODES.get(result.fault.code if result.fault else "", INTERNAL_ERROR), reason)

    def _new_id(self, kind: str) -> str:
        self._count += 1
        return f"acp-{kind}-{self._id_token}-{self._count}"


def _is_missing(result: ToolResult) -> bool:
    return result.fault is not None and result.fault.code == "not_found"


def select_option(decision: Decision, options: Sequence[PermissionOption]) -> dict[str, Any]:
    """Return the outcome for a decision: the option the user chose, else by kind, once before always."""
    if decision.answer == "cancel":
        return cancelled_outcome()
    allow = decision.answer == "allow"
    kinds = ["allow_once", "allow_always"] if allow else ["reject_once", "reject_always"]
    candidates = sorted((o for o in options if o.kind in kinds), key=lambda option: kinds.index(option.kind))
    chosen = [option for option in candidates if option.option_id == decision.option_id]
    if chosen and (decision.scope != "once" or chosen[0].kind != "allow_always"):
        return selected_outcome(chosen[0].option_id)
    return selected_outcome(candidates[0].option_id) if candidates else cancelled_outcome()


def make_question(request: CreateElicitationRequest, agent: str) -> Question:
    """Convert an elicitation into a question; a URL is shown to the user and never opened."""
    schema: dict[str, object] | None = request.requested_schema
    return Question("", request.message, schema, request.url or "", agent)


def fill_form(request: CreateElicitationRequest, answers: Mapping[str, str]) -> dict[str, Any] | None:
    """Fill in the form from preset answers. Return None if a required answer is missing."""
    schema = request.requested_schema
    if not answers or schema is None or request.mode == "url":
        return None
    properties = schema.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    required = schema.get("required")
    if any(name not in answers for name in (required if isinstance(required, list) else properties)):
        return None
    return {name: _convert(answers[name], kind) for name, kind in properties.items() if name in answers}


def _convert(text: str, schema: Any) -> Any:
    type_name = schema.get("type") if isinstance(schema, dict) else "string"
    try:
        if type_name == "integer":
            return int(text)
        if type_name == "number":
            return float(text)
    except ValueError:
        return text
    if type_name == "boolean":
        return text.lower() in ("true", "yes", "1")
    return text.split(",") if type_name == "array" else text
