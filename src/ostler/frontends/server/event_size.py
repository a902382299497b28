"""Keeps the events that are sent to clients within the largest message."""

from typing import Any

import msgspec

from ostler.core.events import Notice
from ostler.text.truncate import truncate_middle
from ostler.wire.event_codec import encode_event

TEXT_LIMITS = (200_000, 5_000)  # characters of one text
_BINARY_FIELD = "data"  # of an image, which cannot be cut


def fit_event(data: bytes, limit: int) -> bytes:
    """Return an encoded event with at most `limit` bytes: long texts are cut, and a notice stands for what is left."""
    if len(data) <= limit:
        return data
    event = msgspec.json.decode(data)
    for longest in TEXT_LIMITS:
        shortened = msgspec.json.encode(_shorten(event, longest))
        if len(shortened) <= limit:
            return shortened
    return encode_event(Notice("warning", f"an event of {len(data)} bytes is too large to be sent"))


def _shorten(value: Any, longest: int, name: str = "") -> Any:
    match value:
        case str() if len(value) > longest:
            return "" if name == _BINARY_FIELD else truncate_middle(value, longest).text
        case list():
            return [_shorten(item, longest) for item in value]
        case dict():
            return {key: _shorten(item, longest, key) for key, item in value.items()}
        case _:
            return value
