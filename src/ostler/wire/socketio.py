"""Packets of Socket.IO 5 over Engine.IO 4, as texts on a WebSocket, for one namespace."""

import json
from typing import Any, Literal

import msgspec

SocketIoKind = Literal["open", "close", "ping", "connected", "refused", "disconnected", "event", "ack", "other"]
PONG = "3"
_ENGINE: dict[str, SocketIoKind] = {"0": "open", "1": "close", "2": "ping"}
_SOCKET: dict[str, SocketIoKind] = {
    "0": "connected",
    "1": "disconnected",
    "2": "event",
    "3": "ack",
    "4": "refused",
}
_MESSAGE = "4"


class SocketIoPacket(msgspec.Struct, frozen=True):
    """A received packet. `data` is the first argument of an event or an acknowledgement, or the parsed body."""

    kind: SocketIoKind
    data: Any = None
    event: str = ""
    ack_id: int | None = None


def read_packet(text: str, namespace: str) -> SocketIoPacket:
    """Read a packet; one that is malformed, binary or of another namespace has the kind `other`."""
    kind = _ENGINE.get(text[:1])
    if kind is not None:
        return SocketIoPacket(kind, _parse(text[1:]))
    if text[:1] != _MESSAGE or (kind := _SOCKET.get(text[1:2])) is None:
        return SocketIoPacket("other")
    body = text[2:]
    prefix = f"{namespace},"
    if body != namespace and not body.startswith(prefix):
        return SocketIoPacket("other")
    body = body.removeprefix(prefix) if body != namespace else ""
    digits = len(body) - len(body.lstrip("0123456789")) if kind in ("event", "ack") else 0
    if digits > 9:
        return SocketIoPacket("other")
    ack_id = int(body[:digits]) if digits else None
    return _with_arguments(kind, ack_id, _parse(body[digits:]))


def _with_arguments(kind: SocketIoKind, ack_id: int | None, value: Any) -> SocketIoPacket:
    if kind == "ack":
        valid = ack_id is not None and isinstance(value, list)
        return SocketIoPacket("ack", value[0] if value else None, "", ack_id) if valid else SocketIoPacket("other")
    if kind == "event":
        if not isinstance(value, list) or not value or not isinstance(value[0], str):
            return SocketIoPacket("other")
        return SocketIoPacket("event", value[1] if len(value) > 1 else None, value[0], ack_id)
    return SocketIoPacket(kind, value)


def connect_packet(namespace: str, auth: dict[str, Any]) -> str:
    return f"40{namespace},{json.dumps(auth)}"


def event_packet(namespace: str, event: str, data: Any, ack_id: int | None = None) -> str:
    """Return an event; with `ack_id` the peer acknowledges it."""
    return f"42{namespace},{'' if ack_id is None else ack_id}{json.dumps([event, data])}"


def _parse(text: str) -> Any:
    try:
        return msgspec.json.decode(text) if text else None
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None
