"""Converts the file and command operations of the connector to tool requests, and results to its replies."""

import shlex
from typing import Any

from ostler.core.errors import ToolError
from ostler.wire.agent_zero.loose_values import first_text
from ostler.wire.agent_zero.zero_events import ZeroToolRequest, ZeroToolResult

FILE_OP, EXEC_OP = "connector_file_op", "connector_exec_op"
READ_TOOL, WRITE_TOOL = "connector_read", "connector_write"
PATCH_TOOL, SHELL_TOOL = "connector_patch", "connector_shell"
FILE_SECONDS, EXEC_SECONDS, EXEC_MARGIN = 25.0, 100.0, 8.0  # a server waits for 30, and for 15 more than a command
_INTERPRETERS = {"python": "python3 -c", "nodejs": "node -e"}
_ACTIONS = {
    "terminal": "run",
    "python": "run",
    "nodejs": "run",
    "output": "output",
    "reset": "reset",
    "input": "input",
}
_TIMEOUT_GROUPS = {"output": "output_timeouts"}
_TIMEOUTS = {
    "first": "first_output_timeout",
    "between": "between_output_timeout",
    "total": "max_exec_timeout",
    "dialog": "dialog_timeout",
}
_SHELL_DETAILS = ("message", "running", "exit_code")
_BEGIN, _UPDATE, _END = "*** Begin Patch", "*** Update File:", "*** End Patch"
_METADATA = ("file", "total_lines", "line_from", "line_to")


def operation_id(members: dict[str, Any]) -> str:
    value = members.get("op_id")
    return str(value) if isinstance(value, str | int) else ""


def read_operation(event: str, members: dict[str, Any], exec_config: dict[str, Any]) -> ZeroToolRequest:
    """Return the tool request of an operation. Raises `ToolError` if it is not supported.

    `exec_config` is the server's configuration of commands, with their timeouts.
    """
    if event == FILE_OP:
        return _file_request(members)
    if event == EXEC_OP:
        return _exec_request(members, exec_config)
    raise ToolError(f"Ostler does not support {event[:60]}", code="unsupported")


def operation_reply(members: dict[str, Any], result: ZeroToolResult) -> dict[str, Any]:
    """Return what the server gets for an operation that ran, failed or was denied."""
    op_id = members.get("op_id", "")
    host = result.details.get("host", "")
    is_stat = first_text(members, "op").strip().lower() == "stat"
    if not result.ok and "running" not in result.details:
        reply = refusal(members, result.output, host)
        return reply | ({"code": code} if (code := _freshness_code(result)) else {})
    shown: dict[str, Any]
    if result.tool_name == SHELL_TOOL:
        shown = {name: result.details[name] for name in _SHELL_DETAILS if name in result.details}
        shown["output"] = result.output
    elif result.tool_name == READ_TOOL:
        shown = {} if is_stat else {"content": result.output}
    else:
        shown = {"path": first_text(members, "path"), "message": result.output}
    names = ("file",) if is_stat else _METADATA
    shown |= {name: result.details[name] for name in names if name in result.details}
    return {"op_id": op_id, "ok": True, "result": shown, "host": host}


def _freshness_code(result: ZeroToolResult) -> str:
    """Return the code by which the server tells its agent to read a file first, or again."""
    if result.details.get("code") != "changed_on_disk":
        return ""
    return "patch_need_read" if "has not been read" in result.output else "patch_stale_read"


def refusal(members: dict[str, Any], reason: str, host: str) -> dict[str, Any]:
    """Return what the server gets for an operation that did not run on this machine, the host."""
    return {"op_id": members.get("op_id", ""), "ok": False, "error": reason, "host": host}


def _file_request(members: dict[str, Any]) -> ZeroToolRequest:
    operation, path = first_text(members, "op").strip().lower(), first_text(members, "path")
    if not path.strip():
        raise ToolError("the operation names no path", code="bad_arguments")
    names: tuple[str, ...]
    if operation in ("stat", "read"):
        tool, names = READ_TOOL, ("line_from", "line_to") if operation == "read" else ()
    elif operation in ("write", "patch"):
        tool, names = WRITE_TOOL, ("content",) if operation == "write" else ("edits",)
    else:
        raise ToolError(f"unknown file operation {operation[:40]!r}", code="unsupported")
    if operation == "patch" and (patch := first_text(members, "patch_text")):
        if members.get("edits") is not None:
            raise ToolError("give either edits or patch_text", code="bad_arguments")
        return _request(members, PATCH_TOOL, {"path": path, "patch": context_patch(path, patch)}, f"patch {path}")
    payload = {name: members[name] for name in names if members.get(name) is not None}
    payload |= {name: _whole_number(payload[name]) for name in ("line_from", "line_to") if name in payload}
    if isinstance(payload.get("edits"), list):
        payload["edits"] = [_edit(item) for item in payload["edits"]]
    if operation == "stat":
        payload["metadata_only"] = True
    return _request(members, tool, {"path": path, **payload}, f"{operation} {path}")


def _edit(value: Any) -> Any:
    """Return an edit with numbers instead of texts for its lines."""
    if not isinstance(value, dict):
        return value
    return {name: _whole_number(item) if name in ("from", "to") else item for name, item in value.items()}


def _whole_number(value: Any) -> Any:
    is_number = isinstance(value, str) and value.strip().isdecimal() and len(value) < 10
    return int(value) if is_number else value


def context_patch(path: str, patch: str) -> str:
    """Return the hunks of a patch as a patch of `path` alone, whatever file it names. Raises `ToolError`."""
    lines = [line for line in patch.strip("\r\n").splitlines() if line.rstrip() not in (_BEGIN, _END)]
    headers = [line for line in lines if line.startswith("***")]
    if "\n" in path or "\r" in path or any(not line.startswith(_UPDATE) for line in headers) or len(headers) > 1:
        raise ToolError("patch_text can only change one existing file", code="bad_arguments")
    hunks = [line for line in lines if not line.startswith("***")]
    return "\n".join((_BEGIN, f"{_UPDATE} {path}", *hunks, _END, ""))


def _exec_request(members: dict[str, Any], config: dict[str, Any]) -> ZeroToolRequest:
    runtime, code = first_text(members, "runtime").strip().lower(), first_text(members, "code")
    if runtime not in _ACTIONS:
        raise ToolError(f"runtime must be one of: {', '.join(_ACTIONS)}", code="unsupported")
    payload: dict[str, Any] = {"action": _ACTIONS[runtime], "session": _session_number(members.get("session"))}
    if runtime in _INTERPRETERS:
        code = f"{_INTERPRETERS[runtime]} {shlex.quote(code)}" if code.strip() else ""
    if runtime == "input":
        keyboard = members.get("keyboard")
        payload["command"] = keyboard if isinstance(keyboard, str) else code
    elif payload["action"] == "run":
        if not code.strip():
            raise ToolError(f"code is required for runtime={runtime}", code="bad_arguments")
        payload["command"] = code
    if members.get("reset") is True and payload["action"] == "run":
        payload["reset"] = True
    if timeouts := _timeouts(members.get("timeouts"), config.get(_TIMEOUT_GROUPS.get(runtime, "code_exec_timeouts"))):
        payload["timeouts"] = timeouts
    return _request(members, SHELL_TOOL, payload, f"{runtime} in shell session {payload['session']}")


def patience_for(event: str, members: dict[str, Any], exec_config: dict[str, Any]) -> float:
    """Return for how many seconds the server waits for an operation, with a margin for the way."""
    if event != EXEC_OP:
        return FILE_SECONDS
    runtime = first_text(members, "runtime").strip().lower()
    group = exec_config.get(_TIMEOUT_GROUPS.get(runtime, "code_exec_timeouts"))
    return max(_timeouts(members.get("timeouts"), group).values(), default=EXEC_SECONDS) + EXEC_MARGIN


def _session_number(value: Any) -> int:
    number = _whole_number(int(value) if isinstance(value, int | float) and -1e9 < value < 1e9 else value or 0)
    if not isinstance(number, int):
        raise ToolError("session must be an integer", code="bad_arguments")
    return number


def _timeouts(*groups: Any) -> dict[str, float]:
    """Return the timeouts of the first group of the server's configuration that has any."""
    for group in groups:
        given = group if isinstance(group, dict) else {}
        found = {
            name: float(given[key])
            for name, key in _TIMEOUTS.items()
            if isinstance(given.get(key), int | float) and 0 < given[key] < 1e6
        }
        if found:
            return found
    return {}


def _request(members: dict[str, Any], tool: str, payload: dict[str, Any], words: str) -> ZeroToolRequest:
    return ZeroToolRequest(tool, payload, words, first_text(members, "reason"), operation_id(members))
