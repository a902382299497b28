"""Runs the server's calls on this machine, each id once, and sends their results."""

import asyncio
import logging
import time
from collections.abc import Callable, Container

import msgspec

from ostler.backends.remote.project_checks import HostChecks, ProjectChecks
from ostler.backends.remote.stream import ProtocolViolation
from ostler.core.display import Display, DisplayDiff
from ostler.core.errors import OstlerError
from ostler.core.events import ToolCalled, ToolFinished
from ostler.core.protocols import BackendContext
from ostler.core.session_view import find_start
from ostler.core.tool_aliases import resolve_tool_name
from ostler.core.tools import ToolCall, ToolResult
from ostler.text.truncate import truncate_middle
from ostler.wire.client_frames import ToolResultMessage
from ostler.wire.frames import MAX_FRAME_BYTES, encode_frame
from ostler.wire.frames_shared import PROJECT_CHECKS
from ostler.wire.server_frames import ToolCallMessage

MAX_OPEN_CALLS = 64
MAX_CALLS = 2000  # of one turn
MAX_REFUSED = 500  # of one turn; then the server is not believed any more
MAX_ID = 256
MAX_OUTPUT = 1_000_000  # characters
log = logging.getLogger("ostler.remote")
MAX_SHOWN = 20


class WrittenFiles:
    """The files that a turn wrote, each with its last operation, in order."""

    def __init__(self) -> None:
        self._operations: dict[str, str] = {}

    def add(self, result: ToolResult) -> tuple[str, ...]:
        """Add the files of a result. Return their paths."""
        found = {
            block.path: f"{block.operation} {block.path} (+{block.additions} -{block.deletions})"
            for block in result.for_human.blocks
            if isinstance(block, DisplayDiff) and block.operation != "unchanged"
        }
        if not found and result.status == "ok" and isinstance(result.data, dict):
            path, operation = result.data.get("path"), result.data.get("operation")
            if isinstance(path, str) and operation in ("created", "updated", "appended", "deleted", "renamed"):
                found = {path: f"{operation} {path}"}
        if result.status == "ok":
            self._operations.update(found)
        return tuple(found) if result.status == "ok" else ()

    def summary(self) -> str:
        """Return a line with the files, or an empty text if there are none."""
        lines = list(self._operations.values())
        more = f", and {len(lines) - MAX_SHOWN} more" if len(lines) > MAX_SHOWN else ""
        return f"on this machine: {', '.join(lines[:MAX_SHOWN])}{more}" if lines else ""


class HostCalls:
    """The calls of the running turn. `tools` are the names in the manifest."""

    def __init__(
        self,
        context: BackendContext,
        session_id: str,
        send: Callable[[ToolResultMessage], object],
        tools: Callable[[], Container[str]],
        local_id: str,
        checks: HostChecks | None = None,
    ) -> None:
        self.checks = ProjectChecks(checks)
        self._log_extra = {"session": local_id}
        self.written = WrittenFiles()
        self._context = context
        self._session_id = session_id
        self._send = send
        self._tools = tools
        self._announced: dict[str, ToolCall] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._ran: set[str] = set()
        self._count = self._refused = 0

    def announce(self, call: ToolCall) -> None:
        """Note a call that the session knows already."""
        self._announced[call.id] = call

    def ran_here(self, call_id: str) -> bool:
        return call_id in self._ran

    def reset_limits(self) -> None:
        """Count from 0 again. The server must not cause this: a local turn begins, not one of its own."""
        self._count = self._refused = 0

    def begin_turn(self) -> None:
        self._announced.clear()
        self.written = WrittenFiles()
        self.checks.begin_turn()

    def restore_turn(self) -> None:
        """Note what the calls of a turn have changed that an earlier process of this side began."""
        records = self._context.records()
        began = max(records.indexes_of(("turn_started",)), default=0)
        calls: dict[str, ToolCall] = {}
        for index in records.indexes_of(("tool_called", "tool_finished")):
            event = records[index].event if index > began else None
            if isinstance(event, ToolCalled):
                calls[event.call.id] = event.call
            elif isinstance(event, ToolFinished) and (call := calls.get(event.result.call_id)):
                self._ran.add(call.id)
                self._note_changes(call, event.result)

    def _note_changes(self, call: ToolCall, result: ToolResult) -> tuple[str, ...]:
        """Note what a call changed, for the checks and the summary. Return the files that it wrote."""
        written = self.written.add(result)
        if call.origin == "validation":
            self.checks.forget_edits()
        else:
            self.checks.add_changes(written, others=not written and self._had_effects(call.id))
        return written

    async def end_turn(self) -> None:
        """Stop what still runs; the server does not wait for it any more."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def stop(self) -> None:
        """Stop what runs, because another machine runs the tools now. The server has ended these calls."""
        for task in tuple(self._running.values()):
            task.cancel()

    def start(self, message: ToolCallMessage, refusal: str = "") -> None:
        """Run a call and send its result. A call that may not run gets `refusal` or another reason as its result.

        Raises `ProtocolViolation` if the server makes more calls than a turn can need.
        """
        call_id = message.tool_call_id
        if call_id in self._running:
            return  # sent again after a cut; its result follows
        if reason := refusal or self._find_refusal(message):
            self._refuse(call_id, reason, message.trace_id)
            return
        self._count += 1
        self._ran.add(call_id)
        run = self._find_checks if message.name == PROJECT_CHECKS else self._run
        self._running[call_id] = asyncio.create_task(run(message), name=f"call of the server {call_id[:40]}")

    def cancel(self, call_id: str) -> None:
        if task := self._running.get(call_id):
            task.cancel()

    def _find_refusal(self, message: ToolCallMessage) -> str:
        call_id = message.tool_call_id
        if not 0 < len(call_id) <= MAX_ID or not call_id.isprintable():
            return "the id of the call is not valid"
        if message.name != PROJECT_CHECKS and resolve_tool_name(message.name, self._tools()) is None:
            return f"there is no tool {message.name[:64]!r} in the manifest"
        if self._is_users_call(call_id):
            return "the id belongs to a call of the user"
        if len(self._running) >= MAX_OPEN_CALLS:
            return f"{MAX_OPEN_CALLS} calls run already; wait for their results"
        if self._count >= MAX_CALLS:
            return f"more than {MAX_CALLS} calls in one turn"
        return ""

    def _is_users_call(self, call_id: str) -> bool:
        records = self._context.records()
        if records.result_seq(call_id) is None:
            return False
        events = (records[index].event for index in records.indexes_of(("tool_called",)))
        return any(isinstance(e, ToolCalled) and e.call.id == call_id and e.call.origin == "person" for e in events)

    def _refuse(self, call_id: str, reason: str, trace_id: str) -> None:
        self._refused += 1
        if self._refused > MAX_REFUSED:
            raise ProtocolViolation("the server makes calls without end that were refused")
        log.warning("refused a call: %s", reason, extra=self._log_extra)
        text = f"Not run: {reason}."
        self._send(
            ToolResultMessage(call_id[:MAX_ID], text, self._session_id, reason, "failed", trace_id=trace_id[:64])
        )

    def _is_announced(self, call: ToolCall) -> bool:
        known = self._announced.get(call.id)
        return known is not None and (known.tool, known.arguments, known.rules) == (
            call.tool,
            call.arguments,
            call.rules,
        )

    async def _find_checks(self, message: ToolCallMessage) -> None:
        """Send which checks the edits of this turn need. Nothing runs here, so nothing is recorded."""
        try:
            data = await self.checks.answer(message.tool_call_id)
        finally:
            self._running.pop(message.tool_call_id, None)
        self._send(ToolResultMessage(message.tool_call_id, "", self._session_id, "", "ok", data=data))

    async def _run(self, message: ToolCallMessage) -> None:
        if message.origin == "validation":
            await self.checks.recall()
        call = ToolCall(message.tool_call_id, message.name, message.arguments, message.origin, message.rules)
        call = msgspec.structs.replace(call, origin=self.checks.origin(call))
        known, began = self._context.records().result(call.id), time.monotonic()
        try:
            if known is None and not self._is_announced(call):
                self._announced[call.id] = call
                self._context.emit(ToolCalled(call))
            result = known or await self._context.run_tool(call)
        except asyncio.CancelledError:
            stored = self._context.records().result(call.id)
            result = stored or ToolResult(call.id, "cancelled", "Cancelled before it finished.")
        except OstlerError as error:
            result = ToolResult(call.id, "unknown", f"The result could not be saved: {error}")
        finally:
            self._running.pop(call.id, None)
        milliseconds = int((time.monotonic() - began) * 1000)
        written = self.written.add(result) if known is None else ()
        if call.origin == "validation":
            await self.checks.finish_check()
        elif known is None:
            self.checks.add_changes(written, others=not written and self._had_effects(call.id))
        self._log(call, result, milliseconds, message.trace_id, written)
        self._send(result_message(self._session_id, result, written, milliseconds, message.trace_id))

    def _had_effects(self, call_id: str) -> bool:
        # A call of a turn that was given up here may end after the next one began.
        started = find_start(self._context.records(), call_id, in_any_turn=True)
        return started is not None and started.effects

    def _log(self, call: ToolCall, result: ToolResult, ms: int, trace: str, written: tuple[str, ...]) -> None:
        level = logging.INFO if result.status == "ok" else logging.WARNING
        text = "call tool=%s status=%s ms=%d bytes=%d trace=%s written=%s"
        arguments = (call.tool[:64], result.status, ms, len(result.for_model), trace[:64], ", ".join(written) or "-")
        log.log(level, text, *arguments, extra=self._log_extra)


def result_message(
    session_id: str, result: ToolResult, written: tuple[str, ...], milliseconds: int, trace_id: str
) -> ToolResultMessage:
    """Return the message of a result; what does not fit is left out, the model's text last."""
    text = result.for_model
    if len(text) > MAX_OUTPUT:
        text = truncate_middle(text, MAX_OUTPUT).text
    message = ToolResultMessage(
        result.call_id,
        text,
        session_id,
        result.fault.message[:4000] if result.fault else "",
        result.status,
        result.for_human if result.for_human != Display() else None,
        _plain(result.data),
        result.images,
        written[:200],
        milliseconds,
        trace_id[:64],
    )
    for left_out in ({}, {"data": None}, {"display": None}, {"images": ()}):
        message = msgspec.structs.replace(message, **left_out)
        if len(encode_frame(message)) <= MAX_FRAME_BYTES // 2:
            return message
    return msgspec.structs.replace(message, output=truncate_middle(text, 100_000).text, written=())


def _plain(data: object) -> object:
    """Return data as JSON values, or None if it cannot be written as JSON."""
    try:
        return msgspec.json.decode(msgspec.json.encode(data))
    except (TypeError, ValueError, RecursionError):
        return None
