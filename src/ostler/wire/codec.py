"""Events and envelopes as JSON, so that whatever a newer version says survives an older one."""

from functools import cache
from typing import Any

import msgspec

from ostler.vocabulary.events import KNOWN, Envelope, Event, KnownEvent, Unknown


class BadWire(ValueError):
    """Bytes that are no event of ours, with the reason."""


class _Outer(msgspec.Struct):
    seq: int
    time: float
    event: msgspec.Raw


@cache
def _decoder() -> msgspec.json.Decoder[KnownEvent]:
    return msgspec.json.Decoder(KnownEvent)


@cache
def _known_types() -> frozenset[object]:
    return frozenset(kind.__struct_config__.tag for kind in KNOWN)


def encode_event(event: Event) -> bytes:
    """One event as JSON."""
    plain = {**event.data, "type": event.type} if isinstance(event, Unknown) else event
    try:
        return msgspec.json.encode(plain)
    except UnicodeEncodeError:
        return msgspec.json.encode(_utf8(msgspec.to_builtins(plain)))


def _utf8(value: Any) -> Any:
    """The same with every half of a surrogate pair replaced: file names and models bring them, no wire carries them."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_utf8(key): _utf8(item) for key, item in value.items()}
    return [_utf8(item) for item in value] if isinstance(value, list | tuple) else value


def decode_event(data: bytes | msgspec.Raw) -> Event:
    """One event from JSON; a type we do not know becomes `Unknown`, anything else wrong is `BadWire`."""
    try:
        return _decoder().decode(data)
    except msgspec.DecodeError as error:
        return _unknown(data, error)
    except RecursionError as error:
        raise BadWire("nested too deeply") from error


def _unknown(data: bytes | msgspec.Raw, error: msgspec.DecodeError) -> Unknown:
    try:
        plain = msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        raise BadWire(str(error)) from None
    kind = plain.pop("type", None)
    if not isinstance(kind, str) or kind in _known_types():
        raise BadWire(str(error))
    return Unknown(kind, plain)


def encode_envelope(envelope: Envelope) -> bytes:
    """An event with its place, as JSON."""
    event = msgspec.Raw(encode_event(envelope.event))
    return msgspec.json.encode({"seq": envelope.seq, "time": envelope.time, "event": event})


def decode_envelope(data: bytes) -> Envelope:
    """An event with its place, from JSON."""
    try:
        outer = msgspec.json.decode(data, type=_Outer)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadWire(str(error)) from None
    return Envelope(outer.seq, outer.time, decode_event(outer.event))
