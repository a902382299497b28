"""Reads JSON of unknown quality: never raises, and removes halves of surrogate pairs."""

import json
from typing import Any

NOT_JSON = object()


def parse_json(text: str) -> Any:
    """Return the value of a JSON text, or `NOT_JSON`."""
    try:
        value = json.loads(text)
        return _clean(value) if "\\u" in text else value
    except (ValueError, RecursionError):
        return NOT_JSON


def parse_object_text(text: str) -> Any:
    """Return the value of a text that contains a JSON object or array, or `NOT_JSON`."""
    return parse_json(text) if text.lstrip()[:1] in ("{", "[") else NOT_JSON


def to_json(value: Any) -> str:
    """Return the JSON text of a parsed value; a value that is nested too deeply is only described."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        return "(a value that is nested too deeply)"


def first_text(members: dict[str, Any], *names: str) -> str:
    """Return the first of these members that is a non-empty text, or an empty string."""
    return next((value for name in names if isinstance(value := members.get(name), str) and value), "")


def _clean(value: Any) -> Any:
    """Join the surrogate pairs of all texts and replace unpaired surrogates."""
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, dict):
        return {_clean(key): _clean(item) for key, item in value.items()}
    return [_clean(item) for item in value] if isinstance(value, list) else value
