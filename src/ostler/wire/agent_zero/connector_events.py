"""Events of the connector of newer Agent Zero servers."""

from typing import Any

import msgspec

from ostler.wire.agent_zero.loose_values import first_text
from ostler.wire.agent_zero.server_documents import ZeroLogItem, read_heading

PROTOCOL = "a0-connector.v1"
NAMESPACE = "/ws"
HANDLER = "plugins/_a0_connector/ws_connector"
MAX_NUMBER = 10**12  # of an event
ANSWERS = ("assistant_message", "assistant_delta")
_LOG_TYPES = {
    "user_message": "user",
    "tool_start": "tool",
    "tool_output": "tool",
    "tool_end": "tool",
    "code_start": "code_exe",
    "code_output": "code_exe",
    "warning": "warning",
    "error": "error",
    "util_message": "util",
    "status": "agent",
    "message_complete": "progress",
    "context_updated": "progress",
}
_STEP_MEMBERS = frozenset(("step", "reasoning", "headline", "tool_name"))  # of a step that is still being received
_OWN_MEMBERS = frozenset(("context_id", "op_id", "code"))


class ConnectorEvent(msgspec.Struct, frozen=True):
    """One event of a conversation. It is sent again when it grows; `seq` stays the same."""

    seq: int
    kind: str
    text: str = ""
    heading: str = ""
    meta: dict[str, Any] = {}

    def log_item(self) -> ZeroLogItem:
        """Return the event as an item of the log, whose display it shares."""
        kind = _LOG_TYPES.get(self.kind, "info")
        if kind == "agent" and "thoughts" not in self.meta:
            is_step = not _STEP_MEMBERS.isdisjoint(self.meta) or (self.heading and not self.meta)
            kind = "progress" if is_step else "status"
        return ZeroLogItem(self.seq, kind, self.heading, self.text, self.meta)


class Capabilities(msgspec.Struct, frozen=True):
    """What the connector of a server needs. `problem` says why it cannot be used; empty if it can."""

    needs_login: bool = False
    features: tuple[str, ...] = ()
    problem: str = ""
    version: str = ""
    server_version: str = ""


def unwrap(payload: Any) -> dict[str, Any]:
    """Return the members of an event; the server puts them below `data` in an envelope."""
    if not isinstance(payload, dict):
        return {}
    nested = payload.get("data")
    return nested if isinstance(nested, dict) and _OWN_MEMBERS.isdisjoint(payload) else payload


def read_event(members: dict[str, Any]) -> ConnectorEvent | None:
    """Read one event of a conversation; None if it has no number or no type."""
    seq, kind = members.get("sequence"), members.get("event")
    if not isinstance(seq, int) or isinstance(seq, bool) or not isinstance(kind, str) or not kind:
        return None
    if not 0 <= seq <= MAX_NUMBER:
        return None
    data = members.get("data")
    data = data if isinstance(data, dict) else {}
    meta = data.get("meta")
    return ConnectorEvent(
        seq, kind, first_text(data, "text"), read_heading(data), meta if isinstance(meta, dict) else {}
    )


def read_position(members: dict[str, Any]) -> int:
    """Return how many changes of the log the server has sent, of which there are at least as many as events."""
    position = members.get("last_sequence")
    return position if isinstance(position, int) and not isinstance(position, bool) else MAX_NUMBER


def read_snapshot(members: dict[str, Any]) -> list[ConnectorEvent]:
    events = members.get("events")
    read = [read_event(event) for event in events if isinstance(event, dict)] if isinstance(events, list) else []
    return sorted((event for event in read if event), key=lambda event: event.seq)


def read_capabilities(value: Any) -> Capabilities:
    if not isinstance(value, dict) or not isinstance(value.get("protocol"), str):
        return Capabilities(problem="its answer is not that of a connector")
    if value["protocol"] != PROTOCOL:
        return Capabilities(problem=f"it speaks {value['protocol'][:60]!r}, and Ostler {PROTOCOL!r}")
    features = value.get("features")
    return Capabilities(
        value.get("auth_required") is not False,
        tuple(name for name in features if isinstance(name, str)) if isinstance(features, list) else (),
        version=first_text(value, "version")[:40],
        server_version=first_text(value, "agent_zero_version")[:40],
    )


def read_reply(value: Any) -> tuple[dict[str, Any], str]:
    """Return the data of an acknowledgement and its error text, of which one is empty."""
    results = value.get("results") if isinstance(value, dict) else None
    for item in results if isinstance(results, list) else ():
        if not isinstance(item, dict):
            continue
        if item.get("ok") is True:
            data = item.get("data")
            return (data, "") if isinstance(data, dict) else ({}, "")
        error = item.get("error")
        if isinstance(error, dict):
            text = first_text(error, "error", "message") or "unknown error"
            return {}, ": ".join(part for part in (first_text(error, "code"), text) if part)
    return {}, "" if isinstance(value, dict) else "its reply is not an object"
