"""Parses JavaScript literals as data; evaluates nothing."""

import re
from typing import Literal, NoReturn, TypeAlias

import msgspec

from ostler.xnl.errors import CallError
from ostler.xnl.js_strings import StringLiteralError, read_string, replace_lone_surrogates
from ostler.xnl.numerals import in_range, read_decimal, write_number
from ostler.xnl.tree import Value

MAX_DEPTH = 64

_BLANKS = re.compile("[\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]*")
_LINE_ENDS = re.compile("[\n\r\u2028\u2029]")
_WORD = re.compile("[\\w$\u200c\u200d]+")
_RADIX = re.compile(
    "0[xX][0-9a-fA-F](?:_?[0-9a-fA-F])*|0[oO][0-7](?:_?[0-7])*|0[bB][01](?:_?[01])*",
)
_DECIMAL = re.compile(
    r"(?:(?:0|[1-9](?:_?[0-9])*)(?:\.(?:[0-9](?:_?[0-9])*)?)?|\.[0-9](?:_?[0-9])*)(?:[eE][+-]?[0-9](?:_?[0-9])*)?"
)
_KEYWORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
_QUOTES = frozenset("\"'`")
_PLAIN_HINT = "write plain strings, numbers, true, false, null, arrays and objects only"


class Undefined(msgspec.Struct, frozen=True):
    """The value of `undefined`: dropped in an object, null in an array."""


_LiteralValue: TypeAlias = Value | Undefined


class LiteralReader:
    """A cursor over source text. Its methods raise `CallError`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0

    def fail(self, message: str, offset: int | None = None) -> NoReturn:
        raise CallError(message, self.text, self.position if offset is None else offset)

    def peek(self) -> str:
        return self.text[self.position : self.position + 1]

    def skip_blanks(self) -> bool:
        """Skip whitespace and comments. Return whether they contain a line end."""
        start = self.position
        while True:
            blanks = _BLANKS.match(self.text, self.position)
            if blanks is not None:
                self.position = blanks.end()
            if self.text.startswith("//", self.position):
                end = _LINE_ENDS.search(self.text, self.position)
                self.position = end.start() if end else len(self.text)
            elif self.text.startswith("/*", self.position):
                close = self.text.find("*/", self.position + 2)
                if close < 0:
                    self.fail("Close the comment with `*/`")
                self.position = close + 2
            else:
                return _LINE_ENDS.search(self.text, start, self.position) is not None

    def accept(self, character: str) -> bool:
        """Skip `character` if it is next. Return whether it was."""
        if self.peek() != character:
            return False
        self.position += 1
        return True

    def read_identifier(self) -> str | None:
        """Read the identifier or reserved word at the cursor, if there is one."""
        word = _WORD.match(self.text, self.position)
        if word is None or not _is_identifier(word.group()):
            return None
        self.position = word.end()
        return word.group()

    def read_object(self, depth: int = 1) -> dict[str, Value]:
        """Read `{ key: value, ... }`, where a line end may replace a comma."""
        self._enter(depth)
        members: dict[str, Value] = {}
        self.skip_blanks()
        while not self.accept("}"):
            key = self._read_key()
            value = self._read_value(depth + 1)
            if isinstance(value, Undefined):
                members.pop(key, None)
            else:
                members[key] = value
            new_line = self.skip_blanks()
            if self.accept(","):
                self.skip_blanks()
            elif not new_line and self.peek() != "}":
                self._fail_separator("}")
        return members

    def _enter(self, depth: int) -> None:
        if depth > MAX_DEPTH:
            self.fail(f"Nest arguments at most {MAX_DEPTH} levels deep")
        self.position += 1

    def _fail_separator(self, closer: Literal["}", "]"]) -> NoReturn:
        if not self.peek():
            self.fail(f"Close the value with `{closer}`")
        self.fail(f"Put `,` or `{closer}` here: operators and expressions are not allowed, {_PLAIN_HINT}")

    def _read_key(self) -> str:
        start = self.peek()
        if start and start in "\"'":
            key = replace_lone_surrogates(self._read_string())
        elif (word := self.read_identifier()) is not None:
            key = word
        elif start and start in "0123456789.":
            key = write_number(self._read_number())
        else:
            self.fail("Put a plain key here: computed keys, spread and other syntax are not allowed")
        self.skip_blanks()
        if not self.accept(":"):
            self.fail("Put `:` and a value after the key: shorthand members and methods are not allowed")
        self.skip_blanks()
        return key

    def _read_value(self, depth: int) -> _LiteralValue:
        start = self.peek()
        if start == "{":
            return self.read_object(depth)
        if start == "[":
            return self._read_array(depth)
        if start in _QUOTES:
            return self._read_joined_strings()
        if start and start in "+-.0123456789":
            return self._read_number()
        return self._read_keyword()

    def _read_array(self, depth: int) -> list[Value]:
        self._enter(depth)
        items: list[Value] = []
        self.skip_blanks()
        while not self.accept("]"):
            item = self._read_value(depth + 1)
            items.append(None if isinstance(item, Undefined) else item)
            self.skip_blanks()
            if self.accept(","):
                self.skip_blanks()
            elif self.peek() != "]":
                self._fail_separator("]")
        return items

    def _read_joined_strings(self) -> str:
        """Read string literals joined by `+`."""
        parts = [self._read_string()]
        while True:
            end = self.position
            self.skip_blanks()
            if not self.accept("+"):
                self.position = end
                return replace_lone_surrogates("".join(parts))
            self.skip_blanks()
            if self.peek() not in _QUOTES:
                self.fail("Only string literals may be joined with `+`")
            parts.append(self._read_string())

    def _read_string(self) -> str:
        try:
            value, self.position = read_string(self.text, self.position)
        except StringLiteralError as error:
            self.fail(error.message, error.position)
        return value

    def _read_number(self) -> int | float:
        start = self.position
        sign = -1 if self.peek() == "-" else 1
        if self.peek() in ("+", "-"):
            self.position += 1
            self.skip_blanks()
        numeral = _RADIX.match(self.text, self.position) or _DECIMAL.match(self.text, self.position)
        if numeral is None:
            self.fail(f"This is not a number: {_PLAIN_HINT}", start)
        self.position = numeral.end()
        if _WORD.match(self.text, self.position):
            self.fail("This is not a plain number", start)
        number = _to_number(numeral.group().replace("_", ""))
        if number is None:
            self.fail("The number is too large", start)
        return sign * number

    def _read_keyword(self) -> _LiteralValue:
        start = self.position
        word = self.read_identifier()
        if word is None:
            self.fail(f"A value is missing here: {_PLAIN_HINT}")
        if word == "undefined":
            return Undefined()
        if word not in _KEYWORDS:
            self.fail(f"`{word[:60]}` is not a literal value: {_PLAIN_HINT}", start)
        return _KEYWORDS[word]


def _is_identifier(word: str) -> bool:
    return word.replace("$", "_").replace("\u200c", "").replace("\u200d", "").isidentifier()


def _to_number(numeral: str) -> int | float | None:
    if numeral[1:2] in ("x", "X", "o", "O", "b", "B"):
        number = int(numeral, 0)
        return number if in_range(number) else None
    return read_decimal(numeral)
