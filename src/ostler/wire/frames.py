"""Encodes and decodes the messages of the server protocol."""

import json
from functools import cache
from typing import Any, Never, get_args

import msgspec

from ostler.wire.client_frames import ClientFrame
from ostler.wire.event_codec import encode_json, replace_surrogates
from ostler.wire.frames_shared import ErrorCode
from ostler.wire.server_frames import ServerFrame

MAX_FRAME_BYTES = 4 * 1024 * 1024
MARGIN = 64 * 1024  # that a message may grow when it is sent on in another one
MAX_ID = 128  # characters


class FrameError(ValueError):
    """Data that is not a message of the protocol, with the code of the error.

    With a `header` it is a message of a known type with wrong fields, or too large; the next one may be valid.
    """

    def __init__(self, message: str, code: ErrorCode = "bad_message", header: "FrameHeader | None" = None) -> None:
        super().__init__(message)
        self.code: ErrorCode = code
        self.header = header


class FrameHeader(msgspec.Struct, rename="camel"):
    """Type and ids of a message, also of one with other fields that are wrong."""

    type: str
    tool_call_id: Any = ""
    client_message_id: Any = ""
    request_id: Any = ""
    ask_id: Any = ""


def ids_of(message: object) -> dict[str, str]:
    """Return the ids in a message or header, under their names in `ErrorMessage`."""
    names = ("tool_call_id", "client_message_id", "request_id", "ask_id")
    values = ((name, getattr(message, name, "")) for name in names)
    return {name: value[:MAX_ID] for name, value in values if isinstance(value, str) and value}


def encode_frame(frame: ClientFrame | ServerFrame) -> bytes:
    """Encode a message as JSON; unpaired surrogates are replaced."""
    return encode_json(frame)


def decode_client_frame(data: bytes | str, limit: int = MAX_FRAME_BYTES) -> ClientFrame | None:
    """Decode a message of a client, or return None if its type is unknown. Raises `FrameError` if it is invalid."""
    frame: ClientFrame | None = _decode(ClientFrame, data, limit)
    return frame


def decode_server_frame(data: bytes | str, limit: int = MAX_FRAME_BYTES) -> ServerFrame | None:
    """Decode a message of a server, or return None if its type is unknown. Raises `FrameError` if it is invalid.

    An error with a code of a newer server is one with the code `internal`.
    """
    try:
        frame: ServerFrame | None = _decode(ServerFrame, data, limit)
    except FrameError as error:
        if error.header and error.header.type == "error" and "`$.code`" in str(error):
            fields = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
            return decode_server_frame(msgspec.json.encode({**fields, "code": "internal"}), limit)
        raise
    return frame


@cache
def _decoder(frames: Any) -> "tuple[msgspec.json.Decoder[Any], frozenset[object]]":
    """Return the decoder of a union of messages, and their types."""
    return msgspec.json.Decoder(frames), frozenset(kind.__struct_config__.tag for kind in get_args(frames))


def _decode(frames: Any, data: bytes | str, limit: int) -> Any:
    decoder, known = _decoder(frames)
    if len(data) > limit:
        raise FrameError(f"the message has more than {limit} bytes", "too_large", _known_header(data, known))
    try:
        return decoder.decode(data)
    except RecursionError:
        raise FrameError("the message is nested too deeply") from None
    except UnicodeDecodeError:
        raise FrameError("the message is not UTF-8") from None
    except msgspec.ValidationError as error:
        header = _read_header(data)
        if header.type in known:
            code: ErrorCode = "bad_manifest" if "`$.toolManifest" in str(error) else "bad_message"
            raise FrameError(str(error), code, header) from None
        return None
    except msgspec.DecodeError as error:
        replaced = without_surrogates(data)
        if replaced is None or replaced == data:
            raise FrameError(str(error)) from None
    return _decode(frames, replaced, max(limit, len(replaced)))


def without_surrogates(data: bytes | str) -> bytes | None:
    """Return JSON with its unpaired surrogates replaced, or None if it has none or is not JSON.

    JavaScript and Python write them as escapes, for example for a file name that is not UTF-8.
    """
    try:
        text = data if isinstance(data, str) else data.decode()
        if "\\ud" not in text.lower():
            return None
        value = replace_surrogates(json.loads(text, parse_constant=_refuse_constant))
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except (ValueError, RecursionError):
        return None


def _refuse_constant(name: str) -> Never:
    raise ValueError(name)


def _known_header(data: bytes | str, known: frozenset[object]) -> FrameHeader | None:
    try:
        header = _read_header(data)
    except FrameError:
        return None
    return header if header.type in known else None


def _read_header(data: bytes | str) -> FrameHeader:
    """Return the header of a message that could not be decoded. Raises `FrameError` if it has no type."""
    try:
        return msgspec.json.decode(data, type=FrameHeader)
    except RecursionError:
        raise FrameError("the message is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FrameError(str(error)) from None
