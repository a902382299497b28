"""One record of a journal as one line: version, number, time, event, and a checksum over all before it.

The frame never changes; the version says how the event in it is to be read.
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
    """A whole record written by a version that came after this one."""


def encode(envelope: Envelope) -> bytes:
    """The line, newline included."""
    head = b'{"v":%d,"seq":%d,"time":%b' % (VERSION, envelope.seq, repr(float(envelope.time)).encode())
    body = b'%b,"event":%b' % (head, _encode_type_first(envelope.event))
    return b'%b,"crc":"%08x"}\n' % (body, zlib.crc32(body))


def parse_frame(line: bytes) -> RecordFrame | None:
    """The frame of a line with its newline, nothing when it is no whole record; `NewerRecord` if it is not for us."""
    frame = _HEAD.match(line)
    if frame is None or not line.endswith(b',"crc":"%08x"}\n' % zlib.crc32(memoryview(line)[:-_TAIL_LENGTH])):
        return None
    if frame["version"] != _VERSION:
        seq, version = int(frame["seq"]), int(frame["version"])
        raise NewerFormatError(f"record {seq} has format {version}; this Ostler reads up to {VERSION}")
    return frame


def decode(line: bytes) -> Envelope:
    """The record of a line with its newline; an event that makes no sense to us is `Unknown`."""
    frame = parse_frame(line)
    if frame is None:
        raise EventDecodeError("this is no whole record")
    return Envelope(int(frame["seq"]), float(frame["time"]), _decode_frame_event(frame, line))


def result_call_id(frame: RecordFrame, line: bytes) -> str:
    """Which call a `tool_finished` answers."""
    if frame["call"] is not None:
        return frame["call"].decode("utf-8", "replace")
    event = _decode_frame_event(frame, line)  # an id that JSON must escape
    return event.result.call_id if isinstance(event, ToolFinished) else ""


def _decode_frame_event(frame: RecordFrame, line: bytes) -> Event:
    try:
        return decode_event(line[frame.start("event") : -_TAIL_LENGTH])
    except EventDecodeError:
        return UnknownEvent(frame["kind"].decode("utf-8", "replace"), {})


def _encode_type_first(event: Event) -> bytes:
    """The event with its type first, where the frame's reader looks for it."""
    data = encode_event(event)
    if not isinstance(event, UnknownEvent):
        return data
    plain = msgspec.json.decode(data)
    return msgspec.json.encode({"type": plain.pop("type"), **plain})
