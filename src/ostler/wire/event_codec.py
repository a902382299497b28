"""Encodes and decodes events and envelopes as JSON; unknown event types survive a round trip."""

from functools import cache
from typing import Any

import msgspec

from ostler.core.events import EVENT_TYPES, Envelope, Event, KnownEvent, UnknownEvent


class EventDecodeError(ValueError):
    """Data that is not a valid event; the message says why."""


class _RawEnvelope(msgspec.Struct):
    seq: int
    time: float
    event: msgspec.Raw


@cache
def _decoder() -> msgspec.json.Decoder[KnownEvent]:
    return msgspec.json.Decoder(KnownEvent)


@cache
def _known_types() -> frozenset[object]:
    return frozenset(kind.__struct_config__.tag for kind in EVENT_TYPES)


def encode_event(event: Event) -> bytes:
    return encode_json({**event.data, "type": event.type} if isinstance(event, UnknownEvent) else event)


def encode_json(value: Any) -> bytes:
    """Encode a value as JSON; unpaired surrogates, which occur in file names and model output, are replaced."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(replace_surrogates(msgspec.to_builtins(value)))


def replace_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {replace_surrogates(key): replace_surrogates(item) for key, item in value.items()}
    return [replace_surrogates(item) for item in value] if isinstance(value, list | tuple) else value


def decode_event(data: bytes | msgspec.Raw) -> Event:
    """Decode an event. An unknown type becomes an `UnknownEvent`.

    Raises `EventDecodeError` if the data is invalid.
    """
    try:
        return _decoder().decode(data)
    except msgspec.DecodeError as error:
        return _decode_unknown(data, error)
    except RecursionError as error:
        raise EventDecodeError("nested too deeply") from error


def _decode_unknown(data: bytes | msgspec.Raw, error: msgspec.DecodeError) -> UnknownEvent:
    try:
        plain = msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        raise EventDecodeError(str(error)) from None
    kind = plain.pop("type", None)
    if not isinstance(kind, str) or kind in _known_types():
        raise EventDecodeError(str(error))
    return UnknownEvent(kind, plain)


def encode_envelope(envelope: Envelope) -> bytes:
    event = msgspec.Raw(encode_event(envelope.event))
    return msgspec.json.encode({"seq": envelope.seq, "time": envelope.time, "event": event})


def decode_envelope(data: bytes) -> Envelope:
    """Decode an envelope. Raises `EventDecodeError` if the data is invalid."""
    try:
        outer = msgspec.json.decode(data, type=_RawEnvelope)
    except (msgspec.DecodeError, RecursionError) as error:
        raise EventDecodeError(str(error)) from None
    return Envelope(outer.seq, outer.time, decode_event(outer.event))
