"""Converts the server's tool requests to calls of this session, and their results to what the server gets."""

import os
from collections.abc import Container, Mapping
from typing import Any

import msgspec

from ostler.backends.agent_zero.transport import STEP_LIMIT
from ostler.core.errors import BackendError
from ostler.core.tool_aliases import normalize_name, resolve_tool_name, tools_by_alias
from ostler.core.tools import ToolCall, ToolResult
from ostler.text.sanitise import sanitise
from ostler.wire.agent_zero.zero_events import ZeroToolRequest, ZeroToolResult

MAX_CALLS = 500  # of one turn
MAX_ID_LENGTH = 100
_DETAILS = (
    *("exit_code", "seconds", "timed_out", "message", "running"),
    *("path", "file", "total_lines", "line_from", "line_to"),
)


class LocalCalls:
    """The calls of one turn. The same id with the same content is one call; an id of another call gets a suffix."""

    def __init__(self, host: str, used_ids: Container[str]) -> None:
        self._host = host
        self._used_ids = used_ids
        self._calls: dict[str, ToolCall] = {}
        self._count = 0

    def call_for(self, request: ZeroToolRequest) -> ToolCall:
        """Return the call of a request. Raises `BackendError` after too many calls."""
        self._count += 1
        if self._count > MAX_CALLS:
            raise BackendError(f"Agent Zero requested more than {MAX_CALLS} tools in this turn", code=STEP_LIMIT)
        given = sanitise(request.call_id)[:MAX_ID_LENGTH]
        known = self._calls.get(given)
        call = ToolCall(self._local_id(given), request.tool_name, request.payload, raw=request.raw)
        if known is not None and (known.tool, known.arguments, known.raw) == (call.tool, call.arguments, call.raw):
            return known
        if given:
            self._calls[given] = call
        return call

    def is_local(self, call_id: str) -> bool:
        """Return whether the server's id belongs to a call of this turn."""
        return call_id[:MAX_ID_LENGTH] in self._calls

    def result_for(self, request: ZeroToolRequest, result: ToolResult) -> ZeroToolResult:
        """Return what the server gets: the real output, or why there is none."""
        details: dict[str, Any] = {"host": self._host, "status": result.status}
        if request.command:
            details["command"] = request.command
        if result.status == "denied":
            reason = result.fault.message if result.fault else result.for_model
            details["reason"] = reason
            return ZeroToolResult(request.tool_name, False, result.for_model, details, request.call_id)
        details |= _command_details(result)
        if result.fault:
            details["code"] = result.fault.code
        return ZeroToolResult(request.tool_name, result.status == "ok", _output(result), details, request.call_id)

    def _local_id(self, given: str) -> str:
        if given and given not in self._calls and given not in self._used_ids:
            return given
        return f"{given or 'zero'}-{os.urandom(4).hex()}"


def _output(result: ToolResult) -> str:
    """Return the output; that of a failed command contains its stderr."""
    data = result.data if isinstance(result.data, dict) else {}
    stderr = data.get("stderr")
    if result.status == "ok" or not isinstance(stderr, str) or stderr.strip() in result.for_model:
        return result.for_model
    return f"{result.for_model}\n{stderr}"


def _command_details(result: ToolResult) -> dict[str, Any]:
    data = result.data if isinstance(result.data, dict) else {}
    return {name: data[name] for name in _DETAILS if data.get(name) is not None}


def describe(request: ZeroToolRequest) -> ZeroToolRequest:
    """Return the request with words that can be shown: without control characters, and not too long."""
    return msgspec.structs.replace(
        request, command=sanitise(request.command)[:2000], reason=sanitise(request.reason)[:2000]
    )


class DescribedTools:
    """Tools with their arguments, by the names of the description. Without any, every tool can be requested."""

    def __init__(self, arguments: Mapping[str, str]) -> None:
        self._arguments = arguments
        self._names = {tools_by_alias()[normalize_name(name)]: name for name in arguments}

    def problem(self, tool: str) -> str:
        """Return why a tool cannot be requested, or an empty text."""
        if not self._names or resolve_tool_name(tool, self._names):
            return ""
        return f"there is no tool {tool!r:.60}; available: {', '.join(self._arguments)}"

    def explain(self, tool: str, error: str) -> str:
        """Return an error about arguments with those of the description."""
        name = self._names.get(resolve_tool_name(tool, self._names) or "", "")
        return f"{error.partition('; it takes ')[0]}; {name} takes {self._arguments[name]}" if name else error
