"""The mirror of a conversation: every frame as it was, one per line, with nothing masked but secrets."""

from typing import Any

import msgspec

from ostler.app.acp_text_output import TextWriter
from ostler.backends.acp.observer import AcpObserver
from ostler.core.permission import Decision
from ostler.wire.acp_requests import RequestPermissionRequest
from ostler.wire.jsonrpc import FrameDirection
from ostler.wire.jsonrpc_lines import InvalidJsonLine, decode

MASK = "***"
_SECRET_KEYS = ("env", "headers")
_SECRET_MARKERS = tuple(f'"{name}"'.encode() for name in (*_SECRET_KEYS, "authenticate"))


class FrameWriter(AcpObserver):
    """Writes frames as they pass, and our own remarks as frames of a method that begins with `client/`."""

    def __init__(self, out: TextWriter) -> None:
        self._out = out

    def mirror(self, direction: FrameDirection, line: bytes) -> None:
        """A line of either side; one that is no JSON object is no frame and would spoil the stream."""
        if not _is_json_object(line):
            return
        text = line.decode("utf-8", "replace")
        self._write_line(_mask_line(decode(line), text) if any(part in line for part in _SECRET_MARKERS) else text)

    def write_client_event(self, method: str, params: Any) -> None:
        """Something the client has to say about itself."""
        self._write_line(msgspec.json.encode({"jsonrpc": "2.0", "method": method, "params": params}).decode())

    def on_decision(self, request: RequestPermissionRequest, decision: Decision) -> None:
        call = request.tool_call
        told = {"toolName": call.name or call.title or call.tool_call_id, "toolKind": call.kind}
        more = {"hint": decision.reason} if decision.reason else {}
        self.write_client_event("client/permission_decision", {**told, "decision": decision.answer, **more})

    def _write_line(self, text: str) -> None:
        self._out.write(text + "\n")


def _is_json_object(line: bytes) -> bool:
    """Whether a line is a JSON object, told without making one; what is odd is looked at again with patience."""
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
    """The line without its secrets; to the letter when it has none."""
    params = frame.get("params")
    if frame.get("method") == "authenticate" and isinstance(params, dict):
        masked: Any = {**frame, "params": {k: v if k == "methodId" else MASK for k, v in params.items()}}
    else:
        masked = mask(frame)
    return text if masked == frame else msgspec.json.encode(masked).decode()


def mask(value: Any) -> Any:
    """The same value with the values of environments and headers masked."""
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
