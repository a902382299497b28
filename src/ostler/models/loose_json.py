"""Lenient JSON reading and strict JSON writing for foreign servers."""

from typing import Any

import msgspec

_DECODER = msgspec.json.Decoder()
_ENCODER = msgspec.json.Encoder()


class LooseJsonError(ValueError):
    """The bytes are not JSON, or nested too deeply."""


def read_json(data: bytes) -> Any:
    """Decode JSON, accepting lone surrogates, NaN and infinity (as None) and broken UTF-8. Raises `LooseJsonError`."""
    try:
        return _DECODER.decode(data)
    except RecursionError:
        raise LooseJsonError("nested too deeply") from None
    except ValueError:
        pass
    import json

    try:
        return json.loads(data.decode("utf-8", "replace"), parse_constant=lambda _: None)
    except RecursionError:
        raise LooseJsonError("nested too deeply") from None
    except ValueError as error:
        raise LooseJsonError(str(error)[:100]) from None


def write_json(value: Any) -> bytes:
    """Encode as compact UTF-8. Equal values give equal bytes, and the result is always valid JSON."""
    try:
        return _ENCODER.encode(value)
    except (UnicodeEncodeError, OverflowError):
        import json

        return json.dumps(_sanitize(value), ensure_ascii=False, separators=(",", ":")).encode()


def to_text(value: Any) -> str:
    """Return a string unchanged and any other value as JSON, or an empty string if it cannot be encoded."""
    try:
        return value if isinstance(value, str) else write_json(value).decode()
    except (TypeError, RecursionError):
        return ""


def _sanitize(value: Any) -> Any:
    """Replace lone surrogates, and infinite floats by None: JSON has neither."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_sanitize(key): _sanitize(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_sanitize(item) for item in value]
    if isinstance(value, float) and not -1e308 <= value <= 1e308:
        return None
    return value
