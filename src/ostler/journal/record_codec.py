"""Encodes and decodes one journal record as a JSON line with version, sequence number, time and checksum.

The frame never changes; the version says how to decode the event in it.
"""

import re
import zlib

import msgspec

from ostler.core.events import Envelope, Event, ToolFinished, UnknownEvent
from ostler.text.lazy_regex import lazy_regex
from ostler.wire.event_codec import EventDecodeError, decode_event, encode_event

VERSION = 1
MAX_RECORD_BYTES = 64 * 1024 * 1024
RECORD_START = b'{"v":'

_HEAD = lazy_regex(
    rb'\{"v":(?P<version>\d{1,9}),"seq":(?P<seq>\d{1,15}),"time":(?P<time>[0-9.eE+-]{1,32}),'
    rb'"event":(?P<event>\{"type":"(?P<kind>[^"\\]{1,64})")'
    rb'(?:,"result":\{"call_id":"(?P<call>[^"\\]{0,200})")?'
)
_TAIL_LENGTH = len(b',"crc":"00000000"}\n')
_VERSION = str(VERSION).encode()

RecordFrame = re.Match[bytes]


class NewerFormatError(ValueError):
    """A valid record that was written by a newer version of Ostler."""


def encode(envelope: Envelope) -> bytes:
    """Encode a record as a line, including the newline."""
    head = b'{"v":%d,"seq":%d,"time":%b' % (VERSION, envelope.seq, repr(float(envelope.time)).encode())
    body = b'%b,"event":%b' % (head, _encode_type_first(envelope.event))
    return b'%b,"crc":"%08x"}\n' % (body, zlib.crc32(body))


def parse_frame(line: bytes) -> RecordFrame | None:
    """Parse a line that ends with a newline. Return None if it is not a valid record.

    Raises `NewerFormatError` if the record's version is not supported.
    """
    frame = _HEAD.match(line)
    if frame is None or not line.endswith(b',"crc":"%08x"}\n' % zlib.crc32(memoryview(line)[:-_TAIL_LENGTH])):
        return None
    if frame["version"] != _VERSION:
        seq, version = int(frame["seq"]), int(frame["version"])
        raise NewerFormatError(f"record {seq} has format {version}; this version reads up to {VERSION}")
    return frame


def decode(line: bytes) -> Envelope:
    """Decode a line that ends with a newline; an event that cannot be decoded becomes an `UnknownEvent`.

    Raises `EventDecodeError` if the line is not a valid record.
    """
    frame = parse_frame(line)
    if frame is None:
        raise EventDecodeError("not a valid record")
    return Envelope(int(frame["seq"]), float(frame["time"]), _decode_frame_event(frame, line))


def result_call_id(frame: RecordFrame, line: bytes) -> str:
    """Return the call id of a `tool_finished` record."""
    if frame["call"] is not None:
        return frame["call"].decode("utf-8", "replace")
    event = _decode_frame_event(frame, line)  # the id contains escaped characters
    return event.result.call_id if isinstance(event, ToolFinished) else ""


def _decode_frame_event(frame: RecordFrame, line: bytes) -> Event:
    try:
        return decode_event(line[frame.start("event") : -_TAIL_LENGTH])
    except EventDecodeError:
        return UnknownEvent(frame["kind"].decode("utf-8", "replace"), {})


def _encode_type_first(event: Event) -> bytes:
    """Encode an event with its type as the first field, where `parse_frame` expects it."""
    data = encode_event(event)
    if not isinstance(event, UnknownEvent):
        return data
    plain = msgspec.json.decode(data)
    return msgspec.json.encode({"type": plain.pop("type"), **plain})
