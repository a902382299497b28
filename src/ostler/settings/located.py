"""JSON with comments and trailing commas, read so that every key and value knows where it stands."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, NamedTuple

MAX_DEPTH = 64
MAX_DIGITS = 100

Path = tuple[str | int, ...]

_GAP = r"(?:[ \t\r\n]++|//[^\r\n]*+|/\*.*?\*/)*+"
_NUMBER = r"-?(?:0|[1-9][0-9]*+)(\.[0-9]++)?+([eE][+-]?[0-9]++)?+"
_WORD = r"[^\s,:{}\[\]\"/]++"
_CONSTANTS = {"true": True, "false": False, "null": None}
_CLOSERS = {"{": "}", "[": "]"}


class Place(NamedTuple):
    """A line and a column, both counted from 1; the column counts characters."""

    line: int
    column: int


class BrokenJson(ValueError):
    """The text is not JSON; `message` is a clause that says what to mend at `place`."""

    def __init__(self, message: str, place: Place) -> None:
        super().__init__(f"{place.line}:{place.column}: {message}")
        self.message = message
        self.place = place


class Lines:
    """Where the lines of a text begin, to turn an offset into a place."""

    def __init__(self, text: str) -> None:
        self._starts = [0]
        self._starts.extend(found.end() for found in re.finditer("\n", text))

    def place(self, offset: int) -> Place:
        """The line and column of an offset."""
        line = bisect_right(self._starts, offset)
        return Place(line, offset - self._starts[line - 1] + 1)


class Located:
    """A value with its place and, inside an object, the place of its key; `children` for objects and arrays."""

    __slots__ = ("_key_offset", "_lines", "_offset", "children", "value")

    def __init__(self, value: Any, lines: Lines, offset: int, key_offset: int | None = None) -> None:
        self.value = value
        self.children: dict[str | int, Located] | None = {} if isinstance(value, dict | list) else None
        self._lines = lines
        self._offset = offset
        self._key_offset = offset if key_offset is None else key_offset

    @property
    def place(self) -> Place:
        """Where the value begins."""
        return self._lines.place(self._offset)

    @property
    def key_place(self) -> Place:
        """Where its key begins, or the value itself when it has none."""
        return self._lines.place(self._key_offset)

    def find(self, path: Sequence[str | int]) -> "Located":
        """The node at a path, or the deepest one on the way there."""
        node = self
        for step in path:
            if node.children is None or step not in node.children:
                return node
            node = node.children[step]
        return node


def locate(text: str) -> Located:
    """Read a whole text; an empty one is an empty object."""
    return _Reader(text).read()


class _Reader:
    """One pass with a stack of its own, so that depth is a limit and not a crash."""

    def __init__(self, text: str) -> None:
        from json.decoder import JSONDecoder  # only who has a config to read pays for it

        self.text = text
        self.at = 0
        self.lines = Lines(text)
        self.decoder = JSONDecoder()
        self.gap = re.compile(_GAP, re.DOTALL)
        self.number = re.compile(_NUMBER)
        self.word = re.compile(_WORD)

    def read(self) -> Located:
        self._skip_gap()
        if self.at == len(self.text):
            return Located({}, self.lines, 0)
        root = self._value(None)
        stack = [root] if root.children is not None else []
        while stack:
            child = self._next_child(stack[-1])
            if child is None:
                stack.pop()
            elif child.children is not None:
                if len(stack) == MAX_DEPTH:
                    raise BrokenJson(f"values are nested more than {MAX_DEPTH} deep here", child.place)
                stack.append(child)
        self._skip_gap()
        if self.at < len(self.text):
            raise self._broken("the config ends before this; remove what follows")
        return root

    def _next_child(self, parent: Located) -> Located | None:
        """The next key and value of an object, or the next value of an array; nothing once it is closed."""
        assert parent.children is not None
        self._skip_gap()
        if parent.children and not self._closes(parent):
            self._expect(",", f"expected a comma or {_closer(parent)}")
            self._skip_gap()
        if self._closes(parent):
            self.at += 1
            return None
        if self.at == len(self.text):
            raise self._broken(f"the text ends, but the {_opener(parent)} of line {parent.place.line} is still open")
        if isinstance(parent.value, dict):
            return self._member(parent)
        child = self._value(None)
        parent.children[len(parent.value)] = child
        parent.value.append(child.value)
        return child

    def _member(self, parent: Located) -> Located:
        assert parent.children is not None
        start = self.at
        if self.text[start] != '"':
            raise self._broken("expected a key in double quotes")
        key = self._string()
        if key in parent.children:
            first = parent.children[key].key_place.line
            raise BrokenJson(
                f"the key {_brief(key)} is already on line {first}; remove one of them", self.lines.place(start)
            )
        self._skip_gap()
        self._expect(":", f"expected a colon after the key {_brief(key)}")
        self._skip_gap()
        child = self._value(start)
        parent.children[key] = child
        parent.value[key] = child.value
        return child

    def _value(self, key_offset: int | None) -> Located:
        if self.at == len(self.text):
            raise self._broken("expected a value, but the text ends")
        start = self.at
        return Located(self._plain(self.text[start]), self.lines, start, key_offset)

    def _plain(self, mark: str) -> Any:
        """A scalar, or an object or array that is still empty."""
        if mark in "{[":
            self.at += 1
            return {} if mark == "{" else []
        if mark == '"':
            return self._string()
        if mark == "-" or mark.isdecimal():
            return self._number()
        return self._constant()

    def _string(self) -> str:
        from json.decoder import JSONDecodeError

        start = self.at
        value: str
        try:
            value, self.at = self.decoder.raw_decode(self.text, self.at)
        except JSONDecodeError as error:
            raise BrokenJson(_about_string(error.msg), self.lines.place(error.pos)) from None
        if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
            raise BrokenJson("this text has half of a surrogate pair; write it whole", self.lines.place(start))
        return value

    def _number(self) -> int | float:
        found = self.number.match(self.text, self.at)
        if found is None or self.word.match(self.text, found.end()):
            raise self._broken("this is not a number as JSON writes it")
        start, self.at = self.at, found.end()
        try:
            return whole(found[0]) if found[1] is None and found[2] is None else finite(found[0])
        except ValueError as error:
            raise BrokenJson(str(error), self.lines.place(start)) from None

    def _constant(self) -> object:
        found = self.word.match(self.text, self.at)
        word = found[0] if found else self.text[self.at]
        if word in _CONSTANTS:
            self.at += len(word)
            return _CONSTANTS[word]
        if word.lower() in _CONSTANTS:
            raise self._broken(f"write {word.lower()} in small letters")
        if word[0] == "'":
            raise self._broken("text takes double quotes")
        raise self._broken(f"expected a value, not {_brief(word)}")

    def _expect(self, mark: str, message: str) -> None:
        if not self.text.startswith(mark, self.at):
            raise self._broken(message if self.at < len(self.text) else f"{message}, but the text ends")
        self.at += 1

    def _closes(self, parent: Located) -> bool:
        return self.text.startswith(_closer(parent), self.at)

    def _skip_gap(self) -> None:
        found = self.gap.match(self.text, self.at)
        self.at = found.end() if found else self.at
        if self.text.startswith("/*", self.at):
            raise self._broken("this comment is never closed")

    def _broken(self, message: str) -> BrokenJson:
        return BrokenJson(message, self.lines.place(self.at))


def whole(digits: str) -> int:
    """An integer of a sane length."""
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"this number has more than {MAX_DIGITS} digits")
    return int(digits)


def finite(digits: str) -> float:
    """A float that is a number."""
    value = float(digits)
    if value - value != 0:
        raise ValueError("this number is too large")
    return value


def _opener(parent: Located) -> str:
    return "{" if isinstance(parent.value, dict) else "["


def _closer(parent: Located) -> str:
    return _CLOSERS[_opener(parent)]


def _about_string(said: str) -> str:
    if said.startswith("Unterminated"):
        return "this text has no closing quote"
    if said.startswith("Invalid control"):
        return "a line break or control character inside a text must be written as an escape"
    return "JSON knows no such escape; write a backslash as \\\\"


def _brief(text: str) -> str:
    """A word from a file, fit for a message: short, and with nothing that a terminal would obey."""
    return ascii(text if len(text) <= 40 else text[:39] + "…").replace("\\u2026", "…")
