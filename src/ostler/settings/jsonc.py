"""A config file as a document: its value at once, the places of its keys and values when someone asks."""

import re
from collections.abc import Sequence
from typing import Any

from ostler.settings.located import MAX_DEPTH, BrokenJson, Lines, Located, Place, finite, locate, whole

_STRING = r'"(?:[^"\\\n]++|\\.)*+"?'
_COMMENTS = rf"{_STRING}|//[^\r\n]*+|/\*.*?(?:\*/|\Z)"
# An array or object that begins with a comma stays broken.
_COMMAS = rf"{_STRING}|[\[{{][ \t\r\n]*+,|,(?=[ \t\r\n]*+[}}\]])"


class _NeedsReading(ValueError):
    """The quick way found something that only the careful one can judge."""


class Document:
    """The text of one file and the value it holds."""

    __slots__ = ("_tree", "file", "text", "value")

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text
        self._tree: Located | None = None
        self.value = self._quickly()

    def _quickly(self) -> Any:
        """The value by the standard library's reader, where that is sure to be right; else by the careful one."""
        for prepare in (str, blanked):
            try:
                value = _standard(prepare(self.text))
            except (ValueError, RecursionError):
                continue
            if "\\u" not in self.text and _shallow(value):
                return value
        return self.tree().value

    def tree(self) -> Located:
        """Every value with its place; read once, on first demand."""
        if self._tree is None:
            self._tree = locate(self.text)
        return self._tree

    def place(self, path: Sequence[str | int], *, of_key: bool = False) -> Place:
        """Where a value (or its key) stands; for a path that is not there, the nearest one above."""
        node = self.tree().find(path)
        return node.key_place if of_key else node.place


def decode(data: bytes) -> str:
    """The text of a file: UTF-8, with or without a byte order mark."""
    try:
        return data.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as error:
        before = bytes(error.object[: error.start]).decode()
        raise BrokenJson("the file is not UTF-8 from here on", Lines(before).place(len(before))) from None


def blanked(text: str) -> str:
    """The text with blanks for comments and trailing commas; what is broken stays broken."""

    def blank(found: re.Match[str]) -> str:
        whole = found[0]
        ends = whole == "," or whole.startswith("//") or (whole.startswith("/*") and whole[2:].endswith("*/"))
        return " " * len(whole) if ends else whole

    without_comments = re.sub(_COMMENTS, blank, text, flags=re.DOTALL)
    return re.sub(_COMMAS, blank, without_comments, flags=re.DOTALL)


def _standard(text: str) -> Any:
    import json

    return json.loads(text, object_pairs_hook=_unique, parse_int=whole, parse_float=finite, parse_constant=_refuse)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _NeedsReading
    return value


def _refuse(constant: str) -> Any:
    raise _NeedsReading


def _shallow(value: object) -> bool:
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer if isinstance(outer, list) else ())
            if isinstance(inner, dict | list)
        ]
        if not level:
            return True
    return False
