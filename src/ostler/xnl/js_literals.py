"""Parses JavaScript literals, also strings and templates, as data; evaluates nothing."""

import re
from typing import Literal, NoReturn, TypeAlias

import msgspec

from ostler.xnl.errors import CallError
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
_PLAIN_RUN = {
    '"': re.compile(r'[^"\\\n\r]*'),
    "'": re.compile(r"[^'\\\n\r]*"),
    "`": re.compile(r"[^`\\\r$]*"),
}
_SIMPLE_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v"}
_LINE_CONTINUATION = re.compile("\r\n|[\n\r\u2028\u2029]")
_HEX_ESCAPE = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|u\{0*([0-9a-fA-F]{1,6})\}")
_OCTAL = re.compile(r"[0-3][0-7]{0,2}|[4-7][0-7]?")
_SURROGATE = re.compile("[\ud800-\udfff]")
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
        """Read the string or template literal at the cursor."""
        start, quote = self.position, self.peek()
        parts: list[str] = []
        self.position += 1
        while True:
            run = _PLAIN_RUN[quote].match(self.text, self.position)
            if run is not None:
                parts.append(run.group())
                self.position = run.end()
            if self.accept(quote):
                return "".join(parts)
            if self.peek() == "\\":
                parts.append(self._read_escape(in_template=quote == "`"))
            elif quote == "`" and self.peek():
                parts.append(self._read_template_char())
            else:
                self.fail(f"Close the string with {quote} on its own line, or write a new line as \\n", start)

    def _read_template_char(self) -> str:
        if self.text.startswith("${", self.position):
            self.fail("Write the text itself: `${}` is not evaluated")
        if self.accept("$"):
            return "$"
        self.position += 2 if self.text.startswith("\r\n", self.position) else 1
        return "\n"

    def _read_escape(self, *, in_template: bool) -> str:
        start = self.position
        mark = self.text[start + 1 : start + 2]
        if continuation := _LINE_CONTINUATION.match(self.text, start + 1):
            self.position = continuation.end()
            return ""
        if mark in ("x", "u"):
            return self._read_hex_escape()
        if mark.isdecimal() and mark.isascii():
            return self._read_digit_escape(in_template=in_template)
        if not mark:
            self.fail("The string ends within an escape")
        self.position += 2
        return _SIMPLE_ESCAPES.get(mark, mark)

    def _read_hex_escape(self) -> str:
        digits = _HEX_ESCAPE.match(self.text, self.position + 1)
        code = int(digits[1] or digits[2] or digits[3], 16) if digits else None
        if digits is None or code is None or code > 0x10FFFF:
            self.fail("The escape must be \\xHH, \\uHHHH or \\u{H...} of a character")
        self.position = digits.end()
        return chr(code)

    def _read_digit_escape(self, *, in_template: bool) -> str:
        """Read `\\0` and the legacy octal escapes that JavaScript accepts outside templates."""
        start = self.position + 1
        octal = _OCTAL.match(self.text, start)
        end = octal.end() if octal else start + 1
        if in_template and (self.text[start:end] != "0" or self.text[end : end + 1].isdigit()):
            self.fail("Octal escapes are not allowed in a template literal")
        self.position = end
        return chr(int(octal[0], 8)) if octal else self.text[start]

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


def replace_lone_surrogates(text: str) -> str:
    """Join surrogate pairs. A lone surrogate, which cannot be encoded, becomes the replacement character."""
    if not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _is_identifier(word: str) -> bool:
    return word.replace("$", "_").replace("\u200c", "").replace("\u200d", "").isidentifier()


def _to_number(numeral: str) -> int | float | None:
    if numeral[1:2] in ("x", "X", "o", "O", "b", "B"):
        number = int(numeral, 0)
        return number if in_range(number) else None
    return read_decimal(numeral)
