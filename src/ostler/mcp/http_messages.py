"""Reads the messages in the answers of remote servers: a JSON body, or the events of a stream."""

from collections.abc import AsyncIterator
from typing import Any

from ostler.core.errors import BackendError
from ostler.http.client import HttpResponse
from ostler.http.sse import EventTooLongError, SseSplitter
from ostler.text.secret_masker import MASK_MARKER
from ostler.wire.jsonrpc_lines import InvalidJsonLine, decode

MAX_BODY_BYTES = 16 * 1024 * 1024
MIN_SECRET = 8  # shorter texts are masked nowhere


async def iter_frames(
    response: HttpResponse, splitter: SseSplitter, secret: bytes = b""
) -> AsyncIterator[dict[str, Any]]:
    """Yield the frames of an event stream. Raises `BackendError`."""
    try:
        async for data in response.iter_data():
            for event in splitter.feed(data):
                if event.strip():
                    for frame in decode_frames(_masked(event, secret)):
                        yield frame
    except EventTooLongError:
        raise BackendError("the server sent an oversized event", code="protocol") from None


async def read_frames(response: HttpResponse, secret: bytes) -> list[dict[str, Any]]:
    """Return the messages of a JSON body. Raises `BackendError`."""
    parts: list[bytes] = []
    size = 0
    async for data in response.iter_data():
        parts.append(data)
        size += len(data)
        if size > MAX_BODY_BYTES:
            raise BackendError("the server's answer is too large", code="protocol")
    return decode_frames(_masked(b"".join(parts), secret))


def _masked(data: bytes, secret: bytes) -> bytes:
    """Return an answer without the token that was sent: a server may repeat it, and models must not see it."""
    return data.replace(secret, MASK_MARKER.encode()) if len(secret) >= MIN_SECRET else data


def decode_frames(data: bytes) -> list[dict[str, Any]]:
    """Return the messages in a body or an event; version 2025-03-26 allows several. Raises `BackendError`."""
    try:
        value = decode(data)
    except InvalidJsonLine:
        raise BackendError("the server's answer is not JSON", code="protocol") from None
    frames = value if isinstance(value, list) else [value]
    if not all(isinstance(frame, dict) for frame in frames):
        raise BackendError("the server's answer is not an object", code="protocol")
    return frames
