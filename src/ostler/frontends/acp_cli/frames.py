"""Writes every ACP frame as a JSON line, with secrets masked."""

from typing import Any

import msgspec

from ostler.core.permission import Decision
from ostler.frontends.acp_cli.text_output import TextWriter
from ostler.wire.acp_observer import AcpObserver
from ostler.wire.acp_requests import RequestPermissionRequest
from ostler.wire.jsonrpc import FrameDirection
from ostler.wire.jsonrpc_lines import InvalidJsonLine, decode

MASK = "***"
_SECRET_KEYS = ("env", "headers")
_SECRET_MARKERS = tuple(f'"{name}"'.encode() for name in (*_SECRET_KEYS, "authenticate"))


class FrameWriter(AcpObserver):
    """Writes the frames of both sides, and client events as frames whose method starts with `client/`."""

    def __init__(self, out: TextWriter) -> None:
        self._out = out

    def mirror(self, direction: FrameDirection, line: bytes) -> None:
        """Write a line of either side; lines that are not JSON objects are skipped."""
        if not _is_json_object(line):
            return
        text = line.decode("utf-8", "replace")
        self._write_line(_mask_line(decode(line), text) if any(part in line for part in _SECRET_MARKERS) else text)

    def write_client_event(self, method: str, params: Any) -> None:
        """Write an event of the client itself."""
        self._write_line(msgspec.json.encode({"jsonrpc": "2.0", "method": method, "params": params}).decode())

    def on_decision(self, request: RequestPermissionRequest, decision: Decision) -> None:
        call = request.tool_call
        event = {"toolName": call.name or call.title or call.tool_call_id, "toolKind": call.kind}
        more = {"hint": decision.reason} if decision.reason else {}
        self.write_client_event("client/permission_decision", {**event, "decision": decision.answer, **more})

    def _write_line(self, text: str) -> None:
        self._out.write(text + "\n")


def _is_json_object(line: bytes) -> bool:
    """Return whether a line is a JSON object; the fast check builds no object, the lenient one is the fallback."""
    if not line.startswith(b"{"):
        return False
    try:
        msgspec.json.decode(line, type=msgspec.Raw)
        return True
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return isinstance(decode(line), dict)
    except InvalidJsonLine:
        return False


def _mask_line(frame: dict[str, Any], text: str) -> str:
    """Return the line with its secrets masked, or the unchanged text if it has none."""
    params = frame.get("params")
    if frame.get("method") == "authenticate" and isinstance(params, dict):
        masked: Any = {**frame, "params": {k: v if k == "methodId" else MASK for k, v in params.items()}}
    else:
        masked = mask(frame)
    return text if masked == frame else msgspec.json.encode(masked).decode()


def mask(value: Any) -> Any:
    """Return `value` with the values of environment variables and headers masked."""
    if isinstance(value, list):
        return [mask(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: _mask_item(key, item) for key, item in value.items()}


def _mask_item(key: str, item: Any) -> Any:
    if key in _SECRET_KEYS and isinstance(item, dict):
        return dict.fromkeys(item, MASK)
    if key in _SECRET_KEYS and isinstance(item, list):
        return [{**pair, "value": MASK} if isinstance(pair, dict) and "value" in pair else pair for pair in item]
    return mask(item)
