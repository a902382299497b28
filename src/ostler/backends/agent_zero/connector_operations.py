"""Converts the file and command operations of the connector to tool requests, and results to its replies."""

import shlex
from typing import Any

from ostler.core.errors import ToolError
from ostler.wire.agent_zero.loose_values import first_text
from ostler.wire.agent_zero.zero_events import ZeroToolRequest, ZeroToolResult

FILE_OP, EXEC_OP = "connector_file_op", "connector_exec_op"
READ_TOOL, WRITE_TOOL, PATCH_TOOL, SHELL_TOOL = "connector_read", "connector_write", "patch", "bash"
DEFAULT_EXEC_SECONDS, MAX_EXEC_SECONDS = 180.0, 600.0
NO_INPUT = "no command waits for input: each command runs to its end, without a terminal; run a new command instead"
_INTERPRETERS = {"python": "python3 -c", "nodejs": "node -e"}
_BEGIN, _UPDATE, _END = "*** Begin Patch", "*** Update File:", "*** End Patch"
_METADATA = ("file", "total_lines", "line_from", "line_to")


def operation_id(members: dict[str, Any]) -> str:
    value = members.get("op_id")
    return str(value) if isinstance(value, str | int) else ""


def read_operation(event: str, members: dict[str, Any], exec_seconds: float) -> ZeroToolRequest | dict[str, Any]:
    """Return the tool request of an operation, or its result if nothing has to run. Raises `ToolError`."""
    if event == FILE_OP:
        return _file_request(members)
    if event == EXEC_OP:
        return _exec_request(members, exec_seconds)
    raise ToolError(f"Ostler does not support {event[:60]}", code="unsupported")


def operation_reply(members: dict[str, Any], result: ZeroToolResult) -> dict[str, Any]:
    """Return what the server gets for an operation that ran, failed or was denied."""
    op_id = members.get("op_id", "")
    ran = result.ok or (result.tool_name == SHELL_TOOL and "exit_code" in result.details)
    if not ran:
        return {"op_id": op_id, "ok": False, "error": result.output, "host": result.details.get("host", "")}
    if result.tool_name == SHELL_TOOL:
        session = members.get("session") if isinstance(members.get("session"), int) else 0
        shown = {"message": f"Session {session} completed.", "output": result.output, "running": False}
        shown["exit_code"] = result.details.get("exit_code", 0)
    elif result.tool_name == READ_TOOL:
        shown = {"content": result.output}
    else:
        shown = {"path": first_text(members, "path"), "message": result.output}
    shown |= {name: result.details[name] for name in _METADATA if name in result.details}
    return {"op_id": op_id, "ok": True, "result": shown, "host": result.details.get("host", "")}


def refusal(members: dict[str, Any], reason: str) -> dict[str, Any]:
    return {"op_id": members.get("op_id", ""), "ok": False, "error": reason}


def exec_seconds_of(hello: dict[str, Any]) -> float:
    """Return the longest time of a command that the server's configuration allows."""
    config = hello.get("exec_config")
    timeouts = config.get("code_exec_timeouts") if isinstance(config, dict) else None
    value = timeouts.get("max_exec_timeout") if isinstance(timeouts, dict) else None
    if not isinstance(value, int | float) or not value > 0:
        return DEFAULT_EXEC_SECONDS
    return float(min(value, MAX_EXEC_SECONDS))


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
        return _request(members, PATCH_TOOL, {"patch": context_patch(path, patch)}, f"patch {path}")
    payload = {name: members[name] for name in names if members.get(name) is not None}
    if operation == "stat":
        payload["metadata_only"] = True
    return _request(members, tool, {"path": path, **payload}, f"{operation} {path}")


def context_patch(path: str, patch: str) -> str:
    """Return the hunks of a patch as a patch of `path` alone, whatever file it names. Raises `ToolError`."""
    lines = [line for line in patch.strip("\r\n").splitlines() if line.rstrip() not in (_BEGIN, _END)]
    headers = [line for line in lines if line.startswith("***")]
    if "\n" in path or "\r" in path or any(not line.startswith(_UPDATE) for line in headers) or len(headers) > 1:
        raise ToolError("patch_text can only change one existing file", code="bad_arguments")
    hunks = [line for line in lines if not line.startswith("***")]
    return "\n".join((_BEGIN, f"{_UPDATE} {path}", *hunks, _END, ""))


def _exec_request(members: dict[str, Any], seconds: float) -> ZeroToolRequest | dict[str, Any]:
    runtime, code = first_text(members, "runtime").strip().lower(), first_text(members, "code")
    if runtime == "reset":
        shown = {"message": "There is no running command.", "output": "", "running": False}
        return {"op_id": members.get("op_id", ""), "ok": True, "result": shown}
    if runtime in ("input", "output"):
        raise ToolError(NO_INPUT, code="unsupported")
    if runtime != "terminal" and runtime not in _INTERPRETERS:
        raise ToolError(f"unknown runtime {runtime[:40]!r}", code="unsupported")
    if not code.strip():
        raise ToolError(f"code is required for runtime={runtime}", code="bad_arguments")
    command = code if runtime == "terminal" else f"{_INTERPRETERS[runtime]} {shlex.quote(code)}"
    return _request(members, SHELL_TOOL, {"command": command, "timeout": seconds}, f"{runtime} command")


def _request(members: dict[str, Any], tool: str, payload: dict[str, Any], words: str) -> ZeroToolRequest:
    return ZeroToolRequest(tool, payload, words, first_text(members, "reason"), operation_id(members))
