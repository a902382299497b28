"""Runs the calls of a session on its client's machine."""

import asyncio
import json
import logging
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ostler.core.display import Display, DisplayText
from ostler.core.errors import ToolError
from ostler.core.events import ToolProgress, ToolsChanged, ToolStarted
from ostler.core.protocols import BackendContext, ToolRunner
from ostler.core.session_view import find_start
from ostler.core.tools import CALLS_THAT_CANNOT_RUN, NO_CHECKS, FoundChecks, ToolCall, ToolResult, ToolSpec
from ostler.frontends.server.config import ServingConfig
from ostler.frontends.server.host_link import HostLink
from ostler.frontends.server.schema_check import find_mismatch
from ostler.http.rate_limit import RateLimit
from ostler.text.truncate import truncate_middle
from ostler.wire.client_frames import ToolProgressMessage, ToolResultMessage
from ostler.wire.frames_shared import PROJECT_CHECKS

log = logging.getLogger("ostler.server")
FIND_CHECKS_SECONDS = 120.0
MAX_CHECKS = 20
CHILD_TOOL = "task"  # a child session cannot start children
MAX_CHECK_LENGTH = 4000
CHECK_FIRST = "The call may have run. Check before you retry."


class RemoteTools:
    """Implements `ToolRunner`. `session_tools` runs tools that act on the session, on the server.

    A child session has its own, with the limits of its parent.
    """

    def __init__(
        self,
        link: HostLink,
        config: ServingConfig,
        session_tools: ToolRunner | None = None,
        trace: Callable[[], str] = lambda: "",
    ) -> None:
        self._link = link
        self._config = config
        self._session_tools = session_tools
        self._trace = trace
        self._calls = RateLimit(config.calls_per_minute)
        self._bytes = RateLimit(config.bytes_per_minute)
        self._context: BackendContext | None = None
        self._id_prefix = ""
        self._is_offered: Callable[[str], bool] = lambda tool: True

    def for_child(self, is_offered: Callable[[str], bool]) -> "RemoteTools":
        """Return the tools for a child session, whose calls the host must be able to tell from those of others."""
        child = RemoteTools(self._link, self._config, self._session_tools, self._trace)
        child._calls, child._bytes = self._calls, self._bytes
        child._id_prefix = f"child-{os.urandom(6).hex()}-"
        child._is_offered = lambda tool: tool != CHILD_TOOL and is_offered(tool)
        return child

    async def open(self, context: BackendContext) -> None:
        self._context = context
        if self._session_tools and not self._id_prefix:
            await self._session_tools.open(context)

    def specs(self) -> Sequence[ToolSpec]:
        own = self._session_specs()
        return [own.get(spec.name, spec) for spec in self._link.tools.values() if self._is_offered(spec.name)]

    def session_tool_names(self) -> tuple[str, ...]:
        """Return the tools that the server has for hosts that declare them as the session's."""
        return tuple(spec.name for spec in self._session_tools.specs()) if self._session_tools else ()

    async def aclose(self) -> None:
        self._context = None
        if self._session_tools and not self._id_prefix:
            await self._session_tools.aclose()

    def report_change(self) -> None:
        """Report that the manifest changed."""
        if self._context:
            self._context.emit(ToolsChanged(tuple(self._link.tools)))

    def show_progress(self, message: ToolProgressMessage) -> None:
        if self._context and message.tool_call_id in self._link.open_calls:
            self._context.emit(ToolProgress(message.tool_call_id, message.display))

    def repeats(self, call: ToolCall) -> bool:
        """A tool host runs each id once; a tool of the server would run twice, and a check gets a new id."""
        return call.origin != "validation" and call.tool not in self._session_specs()

    async def run(self, call: ToolCall, context: BackendContext) -> ToolResult:
        began, result = time.monotonic(), ToolResult(call.id, "failed", "")
        is_here = call.tool in self._session_specs()
        try:
            if self._session_tools and is_here:
                result = await self._session_tools.run(call, context)
            else:
                result = await self._forward(call, context)
        finally:
            self._log(call, result, began, context, "the server" if is_here else self._host_name())
        return result

    async def _forward(self, call: ToolCall, context: BackendContext) -> ToolResult:
        """Run a call on the host, or return why it did not run."""
        try:
            was_started = find_start(context.records(), call.id) is not None
            effects = was_started or self._check(call).effects
            if not await self._link.wait_connected():
                reason = f"{self._host_name()} was not connected for {self._config.host_wait:g} seconds"
                return _unknown_result(call.id, reason, may_have_run=was_started)
            if not was_started:
                await context.record_start(ToolStarted(call.id, call.tool, effects))
            return await self._run_on_host(call, effects)
        except ToolError as error:
            return ToolResult(call.id, "failed", str(error), fault=error.fault)

    async def find_checks(self) -> FoundChecks:
        """Ask the host which of its project's checks the edits of this turn need. Raises `ToolError`."""
        if not self._link.answers_checks:
            return NO_CHECKS
        if not await self._link.wait_connected():
            raise ToolError(f"the edits were not checked: {self._host_name()} is not connected", code="unchecked")
        call = ToolCall(f"{PROJECT_CHECKS}-{os.urandom(8).hex()}", PROJECT_CHECKS, {}, origin="validation")
        try:
            answer = await self._link.run(call, self._trace(), FIND_CHECKS_SECONDS)
        finally:
            self._link.close_call(call.id)
        if isinstance(answer, str):
            raise ToolError(f"the edits were not checked: {answer}", code="unchecked")
        return _read_checks(answer.data)

    def _session_specs(self) -> dict[str, ToolSpec]:
        """Return the tools that the host declared as the session's and that the server has."""
        if not self._session_tools:
            return {}
        declared = {spec.name: spec for spec in self._link.tools.values() if spec.runs_in == "session"}
        return {
            spec.name: msgspec.structs.replace(spec, description=declared[spec.name].description or spec.description)
            for spec in self._session_tools.specs()
            if spec.name in declared and self._is_offered(spec.name)
        }

    def _check(self, call: ToolCall) -> ToolSpec:
        """Return the tool of a call that may be forwarded. Raises `ToolError` for the model."""
        spec = self._link.tools.get(call.tool)
        if spec is None or not self._is_offered(call.tool):
            if call.tool in CALLS_THAT_CANNOT_RUN and not call.arguments:
                raise ToolError(CALLS_THAT_CANNOT_RUN[call.tool], code="bad_call")
            names = ", ".join(sorted(spec.name for spec in self.specs())) or "none"
            raise ToolError(f"there is no tool {call.tool!r:.60}; available: {names}", code="unknown_tool")
        if call.raw.strip() and not call.arguments and not _is_empty_object(call.raw):
            raise ToolError(f"the arguments of {call.tool} are not a JSON object", code="bad_arguments")
        try:
            size = len(msgspec.json.encode(call.arguments))  # raises, if they cannot be written
            problem = find_mismatch(spec.schema, call.arguments)
        except (UnicodeEncodeError, RecursionError):
            raise ToolError(f"the arguments of {call.tool} cannot be sent", code="bad_arguments") from None
        if problem:
            raise ToolError(f"the arguments of {call.tool} do not match its schema: {problem}", code="bad_arguments")
        if size > self._config.max_frame // 2:
            raise ToolError(f"the arguments of {call.tool} have {size} bytes, which is too much", code="too_large")
        self._check_rate(size)
        return spec

    def _check_rate(self, size: int) -> None:
        for limit, amount, unit in ((self._calls, 1, "calls"), (self._bytes, size, "bytes")):
            if seconds := limit.take(amount):
                text = f"more than {limit.per_minute:g} {unit} per minute; wait {seconds:.0f} seconds"
                raise ToolError(text, code="rate_limited")

    async def _run_on_host(self, call: ToolCall, effects: bool) -> ToolResult:
        sent = msgspec.structs.replace(call, id=f"{self._id_prefix}{call.id}")
        try:
            answer = await self._link.run(sent, self._trace(), self._config.call_timeout)
            if isinstance(answer, str):
                await self._link.cancel(sent.id, 0.0)
                return _unknown_result(call.id, answer)
        except asyncio.CancelledError:
            stopped = await self._link.cancel(sent.id, self._config.cancel_wait)
            if stopped is None and effects:
                return _unknown_result(call.id, "it was cancelled")
            if stopped is None:
                return ToolResult(call.id, "cancelled", "Cancelled before it finished.")
            answer = stopped
        finally:
            self._link.close_call(sent.id)
        return self._result(call, answer)

    def _result(self, call: ToolCall, answer: ToolResultMessage) -> ToolResult:
        output = answer.output
        text = "" if output is None else output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
        limit = self._config.max_output
        if len(text.encode("utf-8", "replace")) > limit:
            text = truncate_middle(text, limit if text.isascii() else limit // 4).text
        self._bytes.spend(len(text))
        status = answer.status or ("failed" if answer.error else "ok")
        if answer.error and answer.error not in text:
            text = f"Tool {call.tool!r} failed: {answer.error[:4000]}\n{text}".rstrip()
        display = answer.display or Display(blocks=(DisplayText(text[:4000], "output"),) if text else ())
        return ToolResult(call.id, status, text, display, answer.data, answer.images[:8])

    def _host_name(self) -> str:
        return self._link.info.name or self._link.info.id or "the client that runs the tools"

    def _log(self, call: ToolCall, result: ToolResult, began: float, context: BackendContext, host: str) -> None:
        fields = {
            "tool": call.tool[:64],
            "call": call.id[:128],
            "host": host,
            "status": result.status,
            "ms": round((time.monotonic() - began) * 1000),
            "argument_bytes": _argument_size(call),
            "output_bytes": len(result.for_model.encode("utf-8", "replace")),
            "trace": self._trace(),
        }
        log.info("tool call", extra={"session": getattr(context, "id", ""), "fields": fields})


def _read_checks(data: Any) -> FoundChecks:
    """Return the checks in the host's answer, without what cannot be one."""
    try:
        found = msgspec.convert(data or {}, FoundChecks)
    except msgspec.ValidationError:
        return NO_CHECKS
    commands = [command for command in found.commands if 0 < len(command) <= MAX_CHECK_LENGTH]
    return FoundChecks(tuple(commands[:MAX_CHECKS]), min(max(found.seconds, 1.0), 3600.0))


def _unknown_result(call_id: str, reason: str, *, may_have_run: bool = True) -> ToolResult:
    advice = CHECK_FIRST if may_have_run else "The call was not sent to it."
    return ToolResult(call_id, "unknown", f"The outcome is unknown: {reason}. {advice}")


def _argument_size(call: ToolCall) -> int:
    """Return the size of the arguments in bytes, or 0 if they cannot be written."""
    try:
        return len(msgspec.json.encode(call.arguments))
    except (UnicodeEncodeError, RecursionError):
        return 0


def _is_empty_object(raw: str) -> bool:
    try:
        return bool(json.loads(raw) == {})
    except (ValueError, RecursionError):
        return False
