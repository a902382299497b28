"""Reads JSON of unknown quality: never raises, and removes halves of surrogate pairs."""

import json
from collections.abc import Callable
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


class MemberReader:
    """Reads members of an object and remembers which ones, so that the others are not lost."""

    def __init__(self, members: dict[str, Any]) -> None:
        self._members = members
        self._read: set[str] = set()

    def text(self, *names: str) -> str:
        """Return the first of these members that is a non-empty text, or an empty string."""
        return str(self._first(names, lambda value: isinstance(value, str) and value != "") or "")

    def id(self, *names: str) -> str:
        """Return the first of these members that is a non-empty text or a number without fraction, as text."""
        found = self._first(names, lambda value: type(value) is int or (isinstance(value, str) and value != ""))
        return "" if found is None else str(found)

    def value(self, *names: str) -> Any:
        """Return the first of these members that is neither null nor an empty text, or None."""
        return self._first(names, lambda value: value not in (None, ""))

    def content(self, *names: str) -> Any:
        """Return the first of these members that is not empty, or None."""
        return self._first(names, lambda value: value not in (None, "", [], {}))

    def flag(self, name: str) -> bool | None:
        """Return a member that is true or false, or None."""
        found: bool | None = self._first((name,), lambda value: isinstance(value, bool))
        return found

    def rest(self) -> dict[str, Any]:
        """Return the members that were not read and have a value."""
        return {
            key: value
            for key, value in self._members.items()
            if key not in self._read and value not in (None, "", [], {})
        }

    def _first(self, names: tuple[str, ...], fits: Callable[[Any], bool]) -> Any:
        name = next((name for name in names if fits(self._members.get(name))), None)
        if name is None:
            return None
        self._read.add(name)
        return self._members[name]


def _clean(value: Any) -> Any:
    """Join the surrogate pairs of all texts and replace unpaired surrogates."""
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, dict):
        return {_clean(key): _clean(item) for key, item in value.items()}
    return [_clean(item) for item in value] if isinstance(value, list) else value
