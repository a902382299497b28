"""Encodes and decodes the messages of the server protocol."""

from functools import cache
from typing import Any

import msgspec

from ostler.wire.client_frames import ClientFrame
from ostler.wire.event_codec import replace_surrogates
from ostler.wire.frames_shared import ErrorCode
from ostler.wire.server_frames import ServerFrame

MAX_FRAME_BYTES = 4 * 1024 * 1024


class FrameError(ValueError):
    """Data that is not a message of the protocol, with the code of the error.

    With `is_known_type` it is a message of a known type with wrong fields; the next one may be valid.
    """

    def __init__(self, message: str, code: ErrorCode = "bad_message", *, is_known_type: bool = False) -> None:
        super().__init__(message)
        self.code: ErrorCode = code
        self.is_known_type = is_known_type


def encode_frame(frame: ClientFrame | ServerFrame) -> bytes:
    """Encode a message as JSON; unpaired surrogates are replaced."""
    try:
        return msgspec.json.encode(frame)
    except UnicodeEncodeError:
        return msgspec.json.encode(replace_surrogates(msgspec.to_builtins(frame)))


def decode_client_frame(data: bytes | str, limit: int = MAX_FRAME_BYTES) -> ClientFrame | None:
    """Decode a message of a client, or return None if its type is unknown. Raises `FrameError` if it is invalid."""
    frame: ClientFrame | None = _decode(_client_decoder(), data, limit, _client_types())
    return frame


def decode_server_frame(data: bytes | str, limit: int = MAX_FRAME_BYTES) -> ServerFrame | None:
    """Decode a message of a server, or return None if its type is unknown. Raises `FrameError` if it is invalid."""
    frame: ServerFrame | None = _decode(_server_decoder(), data, limit, _server_types())
    return frame


@cache
def _client_decoder() -> "msgspec.json.Decoder[ClientFrame]":
    return msgspec.json.Decoder(ClientFrame)


@cache
def _server_decoder() -> "msgspec.json.Decoder[ServerFrame]":
    return msgspec.json.Decoder(ServerFrame)


@cache
def _client_types() -> frozenset[object]:
    return frozenset(kind.__struct_config__.tag for kind in ClientFrame.__args__)


@cache
def _server_types() -> frozenset[object]:
    return frozenset(kind.__struct_config__.tag for kind in ServerFrame.__args__)


class _TypeOnly(msgspec.Struct):
    type: str


def _decode(decoder: "msgspec.json.Decoder[Any]", data: bytes | str, limit: int, known: frozenset[object]) -> Any:
    if len(data) > limit:
        raise FrameError(f"the message has more than {limit} bytes", "too_large")
    try:
        return decoder.decode(data)
    except RecursionError:
        raise FrameError("the message is nested too deeply") from None
    except UnicodeDecodeError:
        raise FrameError("the message is not UTF-8") from None
    except msgspec.DecodeError as error:
        if _type_of(data) in known:
            raise FrameError(str(error), is_known_type=True) from None
    return None


def _type_of(data: bytes | str) -> str:
    """Return the type of a message that could not be decoded. Raises `FrameError` if it has none."""
    try:
        return msgspec.json.decode(data, type=_TypeOnly).type
    except RecursionError:
        raise FrameError("the message is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FrameError(str(error)) from None
