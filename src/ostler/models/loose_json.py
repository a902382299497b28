"""JSON as foreign servers write it: read forgivingly within bounds, written so that every server can read it."""

from typing import Any

import msgspec

_DECODER = msgspec.json.Decoder()
_ENCODER = msgspec.json.Encoder()


class LooseJsonError(ValueError):
    """The bytes are no JSON, or JSON that nobody writes honestly."""


def read_json(data: bytes) -> Any:
    """Decode; half surrogates, odd numbers and broken UTF-8 are forgiven, depth and digits without end are not."""
    try:
        return _DECODER.decode(data)
    except RecursionError:
        raise LooseJsonError("it is nested too deeply") from None
    except ValueError:
        pass
    import json

    try:
        return json.loads(data.decode("utf-8", "replace"), parse_constant=lambda _: None)
    except RecursionError:
        raise LooseJsonError("it is nested too deeply") from None
    except ValueError as error:
        raise LooseJsonError(str(error)[:100]) from None


def write_json(value: Any) -> bytes:
    """Compact UTF-8, the same bytes for the same value, and always JSON, whatever a model put into its arguments."""
    try:
        return _ENCODER.encode(value)
    except (UnicodeEncodeError, OverflowError):
        import json

        return json.dumps(_sanitize(value), ensure_ascii=False, separators=(",", ":")).encode()


def to_text(value: Any) -> str:
    """A foreign value as text, where text was expected."""
    try:
        return value if isinstance(value, str) else write_json(value).decode()
    except (TypeError, RecursionError):
        return ""


def _sanitize(value: Any) -> Any:
    """Without half surrogates and infinities, which have no place in JSON."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_sanitize(key): _sanitize(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_sanitize(item) for item in value]
    if isinstance(value, float) and not -1e308 <= value <= 1e308:
        return None
    return value
