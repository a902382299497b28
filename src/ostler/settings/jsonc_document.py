"""A config file as a document: its value at once, the places of its keys and values when someone asks."""

import re
from collections.abc import Sequence
from typing import Any

from ostler.settings.jsonc_parser import (
    MAX_DEPTH,
    JsoncSyntaxError,
    JsonNode,
    LineIndex,
    TextPosition,
    parse_float,
    parse_int,
    parse_jsonc,
)

_STRING = r'"(?:[^"\\\n]++|\\.)*+"?'
_COMMENTS = rf"{_STRING}|//[^\r\n]*+|/\*.*?(?:\*/|\Z)"
# An array or object that begins with a comma stays broken.
_COMMAS = rf"{_STRING}|[\[{{][ \t\r\n]*+,|,(?=[ \t\r\n]*+[}}\]])"


class _NeedsFullParse(ValueError):
    """The quick way found something that only the careful one can judge."""


class JsoncDocument:
    """The text of one file and the value it holds."""

    __slots__ = ("_tree", "file", "text", "value")

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text
        self._tree: JsonNode | None = None
        self.value = self._parse_fast()

    def _parse_fast(self) -> Any:
        """The value by the standard library's reader, where that is sure to be right; else by the careful one."""
        for prepare in (str, blank_comments):
            try:
                value = _parse_standard(prepare(self.text))
            except (ValueError, RecursionError):
                continue
            if "\\u" not in self.text and _is_shallow(value):
                return value
        return self.tree().value

    def tree(self) -> JsonNode:
        """Every value with its place; read once, on first demand."""
        if self._tree is None:
            self._tree = parse_jsonc(self.text)
        return self._tree

    def position(self, path: Sequence[str | int], *, of_key: bool = False) -> TextPosition:
        """Where a value (or its key) stands; for a path that is not there, the nearest one above."""
        node = self.tree().find(path)
        return node.key_position if of_key else node.position


def decode_text(data: bytes) -> str:
    """The text of a file: UTF-8, with or without a byte order mark."""
    try:
        return data.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as error:
        before = bytes(error.object[: error.start]).decode()
        raise JsoncSyntaxError("the file is not UTF-8 from here on", LineIndex(before).position(len(before))) from None


def blank_comments(text: str) -> str:
    """The text with blanks for comments and trailing commas; what is broken stays broken."""

    def blank(found: re.Match[str]) -> str:
        whole = found[0]
        ends = whole == "," or whole.startswith("//") or (whole.startswith("/*") and whole[2:].endswith("*/"))
        return " " * len(whole) if ends else whole

    without_comments = re.sub(_COMMENTS, blank, text, flags=re.DOTALL)
    return re.sub(_COMMAS, blank, without_comments, flags=re.DOTALL)


def _parse_standard(text: str) -> Any:
    import json

    return json.loads(
        text,
        object_pairs_hook=_unique_keys,
        parse_int=parse_int,
        parse_float=parse_float,
        parse_constant=_reject_constant,
    )


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _NeedsFullParse
    return value


def _reject_constant(constant: str) -> Any:
    raise _NeedsFullParse


def _is_shallow(value: object) -> bool:
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
