"""The mirror of a conversation: every frame as it was, one per line, with nothing masked but secrets."""

from typing import Any

import msgspec

from ostler.app.acp_text import Writer
from ostler.backends.acp.watch import Watch
from ostler.vocabulary.permission import Decision
from ostler.wire.acp_calls import PermissionRequest
from ostler.wire.jsonrpc import Direction
from ostler.wire.jsonrpc_lines import NotJson, decode

MASK = "***"
_PAIRS = ("env", "headers")
_MAY_HOLD = tuple(f'"{name}"'.encode() for name in (*_PAIRS, "authenticate"))


class FrameMirror(Watch):
    """Writes frames as they pass, and our own remarks as frames of a method that begins with `client/`."""

    def __init__(self, out: Writer) -> None:
        self._out = out

    def mirror(self, direction: Direction, line: bytes) -> None:
        """A line of either side; one that is no JSON object is no frame and would spoil the stream."""
        if not _is_object(line):
            return
        text = line.decode("utf-8", "replace")
        self._line(_masked_line(decode(line), text) if any(part in line for part in _MAY_HOLD) else text)

    def remark(self, method: str, params: Any) -> None:
        """Something the client has to say about itself."""
        self._line(msgspec.json.encode({"jsonrpc": "2.0", "method": method, "params": params}).decode())

    def decided(self, asked: PermissionRequest, decision: Decision) -> None:
        call = asked.tool_call
        told = {"toolName": call.name or call.title or call.tool_call_id, "toolKind": call.kind}
        more = {"hint": decision.reason} if decision.reason else {}
        self.remark("client/permission_decision", {**told, "decision": decision.answer, **more})

    def _line(self, text: str) -> None:
        self._out.write(text + "\n")


def _is_object(line: bytes) -> bool:
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
    except NotJson:
        return False


def _masked_line(frame: dict[str, Any], text: str) -> str:
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
    return {key: _masked(key, item) for key, item in value.items()}


def _masked(key: str, item: Any) -> Any:
    if key in _PAIRS and isinstance(item, dict):
        return dict.fromkeys(item, MASK)
    if key in _PAIRS and isinstance(item, list):
        return [{**pair, "value": MASK} if isinstance(pair, dict) and "value" in pair else pair for pair in item]
    return mask(item)
