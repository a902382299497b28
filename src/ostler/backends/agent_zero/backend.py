"""The Agent Zero backend: one conversation on a server, with tools of this machine."""

import itertools
import os
from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec

from ostler.backends.agent_zero.answer_writer import AnswerWriter
from ostler.backends.agent_zero.local_calls import DescribedTools, LocalCalls, describe
from ostler.backends.agent_zero.log_view import LogView, server_notice, tool_label
from ostler.backends.agent_zero.transport import (
    COMMON_OPTIONS,
    STEP_LIMIT,
    TIME_LIMIT,
    TransportProbe,
    TransportStart,
    ZeroMessage,
    ZeroTransport,
    choose_transport,
    make_message,
)
from ostler.backends.agent_zero.workspace_context import ContextSender
from ostler.core.display import Display, DisplayText
from ostler.core.errors import BackendError, Fault, OstlerError
from ostler.core.events import (
    Delivered,
    InfoChanged,
    Notice,
    RemoteCursor,
    ToolCalled,
    ToolFinished,
    TurnEnded,
    UsageReported,
    Waiting,
)
from ostler.core.permission import is_confirmed, make_confirmation
from ostler.core.prompt import Prompt
from ostler.core.protocols import BackendContext
from ostler.core.sessions import (
    Compact,
    SessionChange,
    SessionInfo,
    SessionOption,
    SessionStart,
    SetOption,
    SlashCommand,
    Steer,
)
from ostler.core.tools import ToolCall, ToolResult
from ostler.wire.agent_zero.server_documents import ZeroLogItem
from ostler.wire.agent_zero.zero_events import PARAGRAPH, ZeroEvent, ZeroToolRequest, ZeroToolResult

NAME = "agent_zero"
_EMPTYING = ("reset", "compact")  # commands after which the server no longer has the description
_LIMITS = {STEP_LIMIT: "steps", TIME_LIMIT: "time"}
_FAILURE_STARTS = {**dict.fromkeys(_LIMITS, "Stopped at a limit: "), "agent_error": "", "empty": ""}  # by code
SEND_CONTEXT = SlashCommand("send-context", "send the description of the workspace with the next prompt")
OnRequest = Callable[[str, ZeroToolRequest], None]


class ZeroPlan(msgspec.Struct, frozen=True):
    """What a session with Agent Zero needs besides its transport.

    `host` is the name of this machine, where the tools run. `forked`: the session is a copy, so that it must not
    continue the conversation of the original. `options` are the values of the settings. `on_request` gets the words of
    each tool request by call id, for the approval request. `warnings` are shown when the session is opened. `tools` are
    the names and arguments that the description of the workspace lists; none means that every tool can be requested.
    """

    address: str
    host: str
    forked: bool = False
    options: dict[str, str] = {}
    on_request: OnRequest = lambda call_id, request: None
    warnings: tuple[str, ...] = ()
    tools: dict[str, str] = {}


class AgentZeroBackend:
    """Sends prompts to the server and shows what it does. Its tool requests are calls of this session."""

    def __init__(
        self, plan: ZeroPlan, probes: Sequence[TransportProbe], context_sender: ContextSender | None = None
    ) -> None:
        self._plan = plan
        self._probes = probes
        self._context_sender = context_sender
        self._described_tools = DescribedTools(plan.tools)
        self._used_ids: set[str] = set()
        self._is_emptied = False  # the server has deleted or summarised the messages since the last prompt
        self._resumed_id = ""
        self._resumed_seq = 0
        self._last_status = ""
        self._start: SessionStart
        self._context: BackendContext
        self._transport: ZeroTransport | None = None
        self._writer: AnswerWriter
        self._log: LogView
        self._calls: LocalCalls

    # -- backend ---------------------------------------------------------------------------------------------------

    async def open(self, start: SessionStart, context: BackendContext) -> SessionInfo:
        """Open the session. The first prompt contacts the server, so that its errors are part of that turn."""
        self._start, self._context = start, context
        records = context.records()
        self._used_ids = {
            event.call.id
            for index in records.indexes_of(("tool_called",))
            if isinstance(event := records[index].event, ToolCalled)
        }
        stored = self._stored_conversation()
        self._resumed_id = "" if self._plan.forked else stored.epoch
        self._resumed_seq = stored.seq
        if self._context_sender is not None and not self._plan.forked:
            self._context_sender.restore(stored.epoch, stored.described)
        if self._plan.forked and stored.epoch:
            text = "Agent Zero cannot copy a conversation; this copy starts a new one without the earlier messages"
            context.emit(Notice("warning", text))
        for text in self._plan.warnings:
            context.emit(Notice("warning", text))
        self._begin_turn()
        return self._info()

    async def run_turn(self, prompt: Prompt | None) -> TurnEnded:
        if prompt is None:
            raise BackendError("Agent Zero has not started a turn", code="protocol")
        self._begin_turn()
        try:
            transport = await self._connect()
            if ended := await self._run_command(transport, prompt):
                return ended
            await self._send(transport, prompt)
        except OstlerError as error:
            return self._fail(error.fault)
        except BaseException:
            self._end_turn(truncated=True)
            await self._stop()
            raise
        self._end_turn()
        return TurnEnded("", "done")

    async def apply(self, change: SessionChange) -> bool:
        try:
            match change:
                case SetOption(name, value):
                    return await self._set_option(name, value)
                case Steer(prompt):
                    return await self._steer(prompt)
                case Compact(undo=False):
                    return await self._compact()
        except OstlerError as error:
            self._context.emit(Notice("warning", str(error)))
        return False

    async def aclose(self) -> None:
        if self._transport is not None:
            await self._transport.aclose()

    # -- listener of the transport -----------------------------------------------------------------------------------

    def on_event(self, event: ZeroEvent) -> None:
        match event.kind:
            case "final_response":
                self._writer.add_answer(event.text)
            case "retraction":
                self._writer.retract(event.text)
            case "piece":
                self._log.finish()
                separator = "\n\n" if event.type == PARAGRAPH and self._writer.text else ""
                self._writer.add_piece(separator + event.text)
            case "thinking":
                self._writer.add_thought(event.text)
            case "tool_output":
                self._show_output(event)
            case _ if event.text:
                self._show_status(event)

    def on_log_item(self, item: ZeroLogItem) -> None:
        self._log.show(item)

    def on_waiting(self, seconds: float) -> None:
        self._context.emit(Waiting(seconds, f"Agent Zero at {self._plan.address} has been working for {seconds:.0f} s"))

    def on_conversation(self, context_id: str) -> None:
        self._context.emit(RemoteCursor(context_id, 0))

    def on_notice(self, text: str, *, is_warning: bool = False) -> None:
        self._context.emit(Notice("warning" if is_warning else "info", text))

    async def confirm(self, text: str) -> bool:
        return is_confirmed(await self._context.ask(make_confirmation(text, "continue", asked_by="Agent Zero")))

    async def run_tool(self, request: ZeroToolRequest) -> ZeroToolResult:
        request = describe(request)
        call = self._calls.call_for(request)
        self._used_ids.add(call.id)
        self._writer.finish((call,))
        is_operation = self._transport is not None and not self._transport.requests_tools
        # The command of an operation is not from the server, but describes it in the title.
        self._plan.on_request(call.id, msgspec.structs.replace(request, command="") if is_operation else request)
        title = request.command if is_operation else tool_label(call.tool)
        self._context.emit(ToolCalled(call, f"{title} on {self._plan.host}"))
        if not is_operation and (problem := self._described_tools.problem(request.tool_name)):
            result = ToolResult(call.id, "failed", problem, Display(problem), fault=Fault("unknown_tool", problem))
            self._context.emit(ToolFinished(result))
            return self._calls.result_for(request, result)
        result = await self._context.run_tool(call)
        if not is_operation and result.fault is not None and result.fault.code == "bad_arguments":
            text = self._described_tools.explain(request.tool_name, result.for_model)
            result = msgspec.structs.replace(result, for_model=text)
        return self._calls.result_for(request, result)

    # -- internals -------------------------------------------------------------------------------------------------

    def _begin_turn(self) -> None:
        self._writer = AnswerWriter(self._context.emit)
        self._log = LogView(self._context.emit, self._writer, os.urandom(4).hex())
        self._calls = LocalCalls(self._plan.host, self._used_ids)
        self._last_status = ""

    def _end_turn(self, *, truncated: bool = False) -> None:
        self._log.finish()
        self._writer.finish(truncated=truncated)

    def _fail(self, fault: Fault) -> TurnEnded:
        """End the turn with the error as its final response."""
        self._end_turn(truncated=True)
        start = _FAILURE_STARTS.get(fault.code, "The request to Agent Zero failed: ")
        self._writer.add_piece(f"{start}{fault.message}")
        self._writer.finish()
        limit = _LIMITS.get(fault.code, "")
        return TurnEnded("", "limit", limit=limit) if limit else TurnEnded("", "failed", fault)

    async def _connect(self) -> ZeroTransport:
        """Return the transport; the first call asks the server which one it supports."""
        if self._transport is None:
            options = {name: value for name, value in self._start.options.items() if value}
            start = TransportStart(self._resumed_id, options, self._resumed_seq)
            self._transport = await choose_transport(self._probes, start, self)
            self._context.emit(InfoChanged(self._info()))
        return self._transport

    async def _send(self, transport: ZeroTransport, prompt: Prompt) -> None:
        is_new_history = self._is_emptied or not transport.context_id
        notes, context = self._context.unsent_notes(is_new_history=is_new_history), None
        self._is_emptied = False

        async def describe(context_id: str) -> ZeroMessage:
            nonlocal context
            if self._context_sender is not None:
                context = await self._context_sender.for_prompt(context_id, requests_tools=transport.requests_tools)
            message = make_message(prompt, notes, context.text if context else "")
            return msgspec.structs.replace(message, tree=context.tree if context else "")

        async def begin_again() -> ZeroMessage:
            nonlocal notes
            notes = tuple(dict.fromkeys((*self._context.unsent_notes(is_new_history=True), *notes)))
            return await describe("")

        message = await describe(transport.context_id)
        await transport.run(msgspec.structs.replace(message, for_new_conversation=begin_again))
        if context is not None and self._context_sender is not None:
            self._context_sender.on_sent(context, transport.context_id)
            self._context.emit(RemoteCursor(transport.context_id, transport.seq, context.signature))
        elif transport.seq:
            self._context.emit(RemoteCursor(transport.context_id, transport.seq))
        await self._report_tokens(transport)

    async def _report_tokens(self, transport: ZeroTransport) -> None:
        with suppress(OstlerError):
            used, limit = await transport.tokens()
            if used:
                self._context.emit(UsageReported("", context_used=used, context_limit=limit))

    async def _run_command(self, transport: ZeroTransport, prompt: Prompt) -> TurnEnded | None:
        """Run a slash command of this backend; None if the prompt is not one."""
        name = prompt.text.strip().partition(" ")[0]
        if not name.startswith("/") or name[1:] not in (command.name for command in self._info().commands):
            return None
        if name[1:] == SEND_CONTEXT.name and self._context_sender is not None:
            self._context_sender.request()
            message = "the description of the workspace will be sent with the next prompt"
        else:
            message = await transport.run_command(name[1:])
            if name[1:] in _EMPTYING:
                self._forget_description(transport)
            self._end_turn()
        self._context.emit(Notice("info", message))
        return TurnEnded("", "done")

    async def _stop(self) -> None:
        """Stop the server after the turn was cancelled, and tell the user whether it goes on."""
        if self._transport is None:
            return
        try:
            message = await self._transport.stop()
        except OstlerError as error:
            message = f"stopped waiting; Agent Zero may go on working: {error}"
        if message:
            self._context.emit(Notice("info", message))

    async def _set_option(self, name: str, value: str) -> bool:
        accepted = await (await self._connect()).set_option(name, value)
        if accepted:
            self._context.emit(InfoChanged(self._info()))
        return accepted

    async def _compact(self) -> bool:
        if self._transport is None or not await self._transport.compact():
            return False
        self._forget_description(self._transport)
        return True

    def _forget_description(self, transport: ZeroTransport) -> None:
        """Send instructions and the description again, because the server has removed them from the conversation."""
        self._is_emptied = True
        if self._context_sender is None:
            return
        self._context_sender.restore("", "")
        self.on_conversation("")
        if transport.context_id:
            self._context.emit(RemoteCursor(transport.context_id, transport.seq))

    async def _steer(self, prompt: Prompt) -> bool:
        if self._transport is None:
            return False
        try:
            accepted = await self._transport.steer(ZeroMessage(make_message(prompt, (), "").text))
        except OstlerError:
            return False
        if accepted:
            self._context.emit(Delivered(prompt.id))
        return accepted

    def _show_status(self, event: ZeroEvent) -> None:
        """Show a status line once, and an event of an unknown type under its name."""
        text = (
            f"{tool_label(event.type)}: {event.text}"
            if event.kind == "other" and event.type not in ("", "error")
            else event.text
        )
        if text != self._last_status:
            self._last_status = text
            self._context.emit(Notice("error" if event.type == "error" else "info", server_notice(text)))

    def _show_output(self, event: ZeroEvent) -> None:
        """Show the output of a tool that ran on the server; local calls have their own result."""
        if event.call_id and self._calls.is_local(event.call_id):
            return
        self._writer.finish()  # the text before the call
        name = tool_label(event.type) or "tool"
        call = ToolCall(f"{event.call_id or 'zero'}-{os.urandom(4).hex()}", name, {}, "protocol")
        self._context.emit(ToolCalled(call, f"{call.tool} on the server"))
        display = Display("on the server", (DisplayText(event.text, "output"),))
        result = ToolResult(call.id, "ok" if event.ok else "failed", event.text, display)
        self._context.emit(ToolFinished(result))

    def _stored_conversation(self) -> RemoteCursor:
        stored = [event for event in self._context.events() if isinstance(event, RemoteCursor)]
        last = stored[-1] if stored else RemoteCursor("", 0)
        same = itertools.takewhile(lambda event: event.epoch == last.epoch, reversed(stored))
        return RemoteCursor(last.epoch, last.seq, next((event.described for event in same if event.described), ""))

    def _info(self) -> SessionInfo:
        transport = self._transport
        own = (SEND_CONTEXT,) if self._context_sender is not None else ()
        commands = (*own, *(transport.commands() if transport else ()))
        options = transport.options() if transport else self._options_before_connecting()
        return SessionInfo(NAME, options, commands, can_steer=True)

    def _options_before_connecting(self) -> tuple[SessionOption, ...]:
        """Return the options of every server, so that they can be set before the first prompt."""
        values = {**self._plan.options, **{name: value for name, value in self._start.options.items() if value}}
        return tuple(
            SessionOption(name, values.get(name, ""), label, has_default=True) for name, label in COMMON_OPTIONS.items()
        )
