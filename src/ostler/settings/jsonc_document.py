"""A JSONC file: its value, and the positions of keys and values on demand."""

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

_STRING = r'"(?:[^"\\\n]++|\\.)*"?'
_COMMENTS = rf"{_STRING}|//[^\r\n]*+|/\*.*?(?:\*/|\Z)"
# An array or object that starts with a comma stays invalid.
_COMMAS = rf"{_STRING}|[\[{{][ \t\r\n]*+,|,(?=[ \t\r\n]*+[}}\]])"


class _NeedsFullParse(ValueError):
    """Raised by the fast parser for something that only the full parser can decide."""


class JsoncDocument:
    """The text of a JSONC file and its value. Raises `JsoncSyntaxError` if the text is invalid."""

    __slots__ = ("_tree", "file", "text", "value")

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text
        self._tree: JsonNode | None = None
        self.value = self._parse_fast()

    def _parse_fast(self) -> Any:
        """Parse with the standard library if its result is certainly right, else with the full parser."""
        for prepare in (str, blank_comments):
            try:
                value = _parse_standard(prepare(self.text))
            except (ValueError, RecursionError):
                continue
            if "\\u" not in self.text and _is_shallow(value):
                return value
        return self.tree().value

    def tree(self) -> JsonNode:
        """Return all values with their positions; parsed on first use."""
        if self._tree is None:
            self._tree = parse_jsonc(self.text)
        return self._tree

    def position(self, path: Sequence[str | int], *, of_key: bool = False) -> TextPosition:
        """Return the position of a value or its key; if the path does not exist, of its nearest existing parent."""
        node = self.tree().find(path)
        return node.key_position if of_key else node.position


def decode_text(data: bytes) -> str:
    """Decode UTF-8, with or without a byte order mark. Raises `JsoncSyntaxError` at the first invalid byte."""
    try:
        return data.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as error:
        before = bytes(error.object[: error.start]).decode()
        raise JsoncSyntaxError("the file is not UTF-8 from here on", LineIndex(before).position(len(before))) from None


def blank_comments(text: str) -> str:
    """Replace comments and trailing commas with spaces; invalid text stays invalid."""

    def blank(match: re.Match[str]) -> str:
        token = match[0]
        removable = token == "," or token.startswith("//") or (token.startswith("/*") and token[2:].endswith("*/"))
        return " " * len(token) if removable else token

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
