"""Iterates over the raw input of an agent's tool call, whose structure each agent chooses itself."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

MAX_VALUES = 10_000
MAX_DEPTH = 20
_ENVIRONMENT = frozenset(["env", "environment", "environmentvariables"])


class RawInputTooLarge(Exception):
    """Raised if the input has so many values, or so many levels, that it cannot be checked."""


def iterate_fields(raw_input: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the normalized name, the value and the parent of each field, at any level and in order.

    Items of a list have the name of the list. Keys of an object are also yielded as values without a name, because
    some agents use paths as keys. JSON text is decoded. Environment variables are skipped. Raises `RawInputTooLarge`.
    """
    pending: list[tuple[str, Any, Any, int]] = [("", raw_input, None, 0)]
    count = 0
    while pending:
        name, value, parent, depth = pending.pop()
        count += 1
        if count > MAX_VALUES or depth > MAX_DEPTH:
            raise RawInputTooLarge
        yield name, value, parent
        value = _decode_json(value) if isinstance(value, str) else value
        pending += reversed([(*child, value, depth + 1) for child in _children(name, value)])


def _children(name: str, value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, list):
        return [(name, item) for item in value]
    if not isinstance(value, dict):
        return []
    named = [(normalize_name(str(key)), str(key), item) for key, item in value.items()]
    return [
        child
        for field, key, item in named
        if field not in _ENVIRONMENT
        for child in ([("", key)] if _is_unusual(key) else []) + [(field, item)]
    ]


def _is_unusual(key: str) -> bool:
    """Return whether a key may be a path: an ordinary field name has neither slashes, dots nor a tilde."""
    return any(character in key for character in "/.~$")


def _decode_json(text: str) -> Any:
    """Return the object or list that a text encodes, or None."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def is_word_list(value: Any) -> bool:
    """Return whether a value is a list of texts."""
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def normalize_name(name: str) -> str:
    """Return a field name without case and separators: `filePath` and `file_path` become `filepath`."""
    return re.sub(r"[\W_]", "", name).lower()
