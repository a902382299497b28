"""Parses JSONC files and records the position of every key and value."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, NamedTuple

MAX_DEPTH = 64
MAX_DIGITS = 100

KeyPath = tuple[str | int, ...]

_GAP = r"(?:[ \t\r\n]++|//[^\r\n]*+|/\*.*?\*/)*"
_NUMBER = r"-?(?:0|[1-9][0-9]*+)(\.[0-9]++)?([eE][+-]?[0-9]++)?"
_WORD = r"[^\s,:{}\[\]\"/]++"
_CONSTANTS = {"true": True, "false": False, "null": None}
_CLOSERS = {"{": "}", "[": "]"}


class TextPosition(NamedTuple):
    """A line and a column in characters, both starting at 1."""

    line: int
    column: int


class JsoncSyntaxError(ValueError):
    """Raised for invalid JSONC; `message` says what to fix at `position`."""

    def __init__(self, message: str, position: TextPosition) -> None:
        super().__init__(f"{position.line}:{position.column}: {message}")
        self.message = message
        self.position = position


class LineIndex:
    """Start offsets of the lines of a text; converts an offset to a position."""

    def __init__(self, text: str) -> None:
        self._starts = [0]
        self._starts.extend(found.end() for found in re.finditer("\n", text))

    def position(self, offset: int) -> TextPosition:
        line = bisect_right(self._starts, offset)
        return TextPosition(line, offset - self._starts[line - 1] + 1)


class JsonNode:
    """A value with its position and, in an object, the position of its key. Objects and arrays have `children`."""

    __slots__ = ("_key_offset", "_lines", "_offset", "children", "value")

    def __init__(self, value: Any, lines: LineIndex, offset: int, key_offset: int | None = None) -> None:
        self.value = value
        self.children: dict[str | int, JsonNode] | None = {} if isinstance(value, dict | list) else None
        self._lines = lines
        self._offset = offset
        self._key_offset = offset if key_offset is None else key_offset

    @property
    def position(self) -> TextPosition:
        """Start of the value."""
        return self._lines.position(self._offset)

    @property
    def key_position(self) -> TextPosition:
        """Start of the key, or of the value if there is no key."""
        return self._lines.position(self._key_offset)

    def find(self, path: Sequence[str | int]) -> "JsonNode":
        """Return the node at a path, or the deepest existing node on that path."""
        node = self
        for step in path:
            if node.children is None or step not in node.children:
                return node
            node = node.children[step]
        return node


class JsoncDocument:
    """The content of a JSONC file; an empty text is an empty object. Raises `JsoncSyntaxError`."""

    __slots__ = ("_root", "file", "value")

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self._root = _JsoncParser(text).parse()
        self.value = self._root.value

    def position(self, path: Sequence[str | int], *, of_key: bool = False) -> TextPosition:
        """Return the position of a value or its key; if the path does not exist, of its nearest existing parent."""
        node = self._root.find(path)
        return node.key_position if of_key else node.position


def decode_text(data: bytes) -> str:
    """Decode UTF-8, with or without a byte order mark. Raises `JsoncSyntaxError` at the first invalid byte."""
    try:
        return data.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as error:
        before = bytes(error.object[: error.start]).decode()
        raise JsoncSyntaxError("the file is not UTF-8 from here on", LineIndex(before).position(len(before))) from None


class _JsoncParser:
    """Parses in one pass with an explicit stack, so that deep nesting is an error and not a crash."""

    def __init__(self, text: str) -> None:
        from json.decoder import JSONDecoder  # imported late, for a fast start without a config

        self.text = text
        self.offset = 0
        self.lines = LineIndex(text)
        self.decoder = JSONDecoder()
        self.gap = re.compile(_GAP, re.DOTALL)
        self.number = re.compile(_NUMBER)
        self.word = re.compile(_WORD)

    def parse(self) -> JsonNode:
        self._skip_gap()
        if self.offset == len(self.text):
            return JsonNode({}, self.lines, 0)
        root = self._value(None)
        stack = [root] if root.children is not None else []
        while stack:
            child = self._next_child(stack[-1])
            if child is None:
                stack.pop()
            elif child.children is not None:
                if len(stack) == MAX_DEPTH:
                    raise JsoncSyntaxError(f"values are nested more than {MAX_DEPTH} deep here", child.position)
                stack.append(child)
        self._skip_gap()
        if self.offset < len(self.text):
            raise self._error("unexpected text after the end of the config; remove it")
        return root

    def _next_child(self, parent: JsonNode) -> JsonNode | None:
        """Parse the next member of an object or item of an array. Return None at its end."""
        assert parent.children is not None
        self._skip_gap()
        if parent.children and not self._is_closed(parent):
            self._expect(",", f"expected a comma or {_closer(parent)}")
            self._skip_gap()
        if self._is_closed(parent):
            self.offset += 1
            return None
        if self.offset == len(self.text):
            raise self._error(f"the file ends, but the {_opener(parent)} of line {parent.position.line} is not closed")
        if isinstance(parent.value, dict):
            return self._member(parent)
        child = self._value(None)
        parent.children[len(parent.value)] = child
        parent.value.append(child.value)
        return child

    def _member(self, parent: JsonNode) -> JsonNode:
        assert parent.children is not None
        start = self.offset
        if self.text[start] != '"':
            raise self._error("expected a key in double quotes")
        key = self._string()
        if key in parent.children:
            first = parent.children[key].key_position.line
            raise JsoncSyntaxError(
                f"the key {_shorten(key)} is already on line {first}; remove one of them", self.lines.position(start)
            )
        self._skip_gap()
        self._expect(":", f"expected a colon after the key {_shorten(key)}")
        self._skip_gap()
        child = self._value(start)
        parent.children[key] = child
        parent.value[key] = child.value
        return child

    def _value(self, key_offset: int | None) -> JsonNode:
        if self.offset == len(self.text):
            raise self._error("expected a value, but the file ends")
        start = self.offset
        return JsonNode(self._parse_token(self.text[start]), self.lines, start, key_offset)

    def _parse_token(self, char: str) -> Any:
        """Parse a scalar, or return a new empty object or array."""
        if char in "{[":
            self.offset += 1
            return {} if char == "{" else []
        if char == '"':
            return self._string()
        if char == "-" or char.isdecimal():
            return self._number()
        return self._constant()

    def _string(self) -> str:
        from json.decoder import JSONDecodeError

        start = self.offset
        value: str
        try:
            value, self.offset = self.decoder.raw_decode(self.text, self.offset)
        except JSONDecodeError as error:
            raise JsoncSyntaxError(_describe_string_error(error.msg), self.lines.position(error.pos)) from None
        if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
            raise JsoncSyntaxError(
                "this string has half of a surrogate pair; write both halves", self.lines.position(start)
            )
        return value

    def _number(self) -> int | float:
        found = self.number.match(self.text, self.offset)
        if found is None or self.word.match(self.text, found.end()):
            raise self._error("this is not a valid JSON number")
        start, self.offset = self.offset, found.end()
        try:
            return _parse_int(found[0]) if found[1] is None and found[2] is None else _parse_float(found[0])
        except ValueError as error:
            raise JsoncSyntaxError(str(error), self.lines.position(start)) from None

    def _constant(self) -> object:
        found = self.word.match(self.text, self.offset)
        word = found[0] if found else self.text[self.offset]
        if word in _CONSTANTS:
            self.offset += len(word)
            return _CONSTANTS[word]
        if word.lower() in _CONSTANTS:
            raise self._error(f"write {word.lower()} in lower case")
        if word[0] == "'":
            raise self._error("write strings in double quotes")
        raise self._error(f"expected a value, not {_shorten(word)}")

    def _expect(self, mark: str, message: str) -> None:
        if not self.text.startswith(mark, self.offset):
            raise self._error(message if self.offset < len(self.text) else f"{message}, but the file ends")
        self.offset += 1

    def _is_closed(self, parent: JsonNode) -> bool:
        return self.text.startswith(_closer(parent), self.offset)

    def _skip_gap(self) -> None:
        found = self.gap.match(self.text, self.offset)
        self.offset = found.end() if found else self.offset
        if self.text.startswith("/*", self.offset):
            raise self._error("this comment is not closed")

    def _error(self, message: str) -> JsoncSyntaxError:
        return JsoncSyntaxError(message, self.lines.position(self.offset))


def _parse_int(digits: str) -> int:
    """Parse an integer. Raises `ValueError` if it has too many digits."""
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"this number has more than {MAX_DIGITS} digits")
    return int(digits)


def _parse_float(digits: str) -> float:
    """Parse a float. Raises `ValueError` if it is not finite."""
    value = float(digits)
    if value - value != 0:
        raise ValueError("this number is too large")
    return value


def _opener(parent: JsonNode) -> str:
    return "{" if isinstance(parent.value, dict) else "["


def _closer(parent: JsonNode) -> str:
    return _CLOSERS[_opener(parent)]


def _describe_string_error(message: str) -> str:
    if message.startswith("Unterminated"):
        return "this string has no closing quote"
    if message.startswith("Invalid control"):
        return "write line breaks and control characters in a string as escapes"
    return "this escape is invalid in JSON; write a backslash as \\\\"


def _shorten(text: str) -> str:
    """Return text from a file for use in a message: shortened, with control characters escaped."""
    return ascii(text if len(text) <= 40 else text[:39] + "…").replace("\\u2026", "…")
