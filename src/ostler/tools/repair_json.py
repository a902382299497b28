"""Lenient JSON parser in linear time that records every deviation it accepted.

Accepts other quotes, bare words, and extra or missing commas; ambiguous text is rejected.
"""

import json
import re
from typing import Any

MAX_DEPTH = 64
_SPACE = re.compile(r"(?:\s|//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/|(?<![^\s,{\[])#[^\n]*)+")
_KEY = re.compile(r"[A-Za-z_$][\w$-]*")
_NUMBER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]{1,15}|\d[\d_]{0,39}(?:\.\d{0,39})?(?:[eE][+-]?\d{1,3})?|\.\d{1,39})")
_BARE_TEXT = re.compile(r"[\w./*@~+-]+")
_CONSTANTS: dict[str, Any] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("null", "None", "NULL", "undefined"), None),
}
# Not numbers: digits may be missing.
_COMPLETE_ENDINGS = ('"', "'", "}", "]", "true", "false", "null", "True", "False", "None")
_JSON_CONSTANTS = ("true", "false", "null")
_QUOTES = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’", "”": "”"}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\\": "\\", '"': '"', "'": "'", "`": "`"}
_HEX_ESCAPES = {"u": re.compile(r"[0-9a-fA-F]{4}"), "x": re.compile(r"[0-9a-fA-F]{2}")}
_SURROGATE_PAIR = re.compile(r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")


class LenientJsonError(ValueError):
    """The text is not a JSON value; `truncated` is true if it ends too early."""

    def __init__(self, position: int, reason: str, *, truncated: bool = False) -> None:
        super().__init__(reason)
        self.position = position
        self.reason = reason
        self.truncated = truncated


class LenientJsonReader:
    """Reads one text. `notes` lists the accepted deviations, `position` is the end of the last value."""

    def __init__(self, text: str, position: int = 0, *, allow_unclosed: bool = False) -> None:
        self.text = text
        self.position = position
        self.notes: dict[str, None] = {}
        self._allow_unclosed = allow_unclosed
        self._depth = 0

    def read_value(self) -> Any:
        """Read the value at the current position. Raises `LenientJsonError`."""
        self._skip_blanks()
        char = self.text[self.position : self.position + 1]
        if char == "{":
            return self._read_nested(self._read_object)
        if char == "[":
            return self._read_nested(self._read_array)
        if char in _QUOTES and char:
            return self._read_string(char)
        return self._read_word()

    def read_members(self) -> dict[str, Any]:
        """Read the members of an object without braces. Raises `LenientJsonError`."""
        members: dict[str, Any] = {}
        while not self.is_at_end():
            self._read_member(members)
            self._skip_blanks()
            if self.text[self.position : self.position + 1] in (",", ";"):
                self.position += 1
        return members

    def is_at_end(self) -> bool:
        """Skip whitespace and comments, and return whether nothing else is left."""
        self._skip_blanks()
        return self.position >= len(self.text)

    def _read_nested(self, read: Any) -> Any:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._error("it is nested too deeply")
        self.position += 1
        value = read()
        self._depth -= 1
        return value

    def _read_object(self) -> dict[str, Any]:
        members: dict[str, Any] = {}
        while not self._try_close("}", members):
            self._read_member(members)
            self._read_separator("}")
        return members

    def _read_array(self) -> list[Any]:
        items: list[Any] = []
        while not self._try_close("]", items):
            items.append(self.read_value())
            self._read_separator("]")
        return items

    def _try_close(self, bracket: str, content: Any) -> bool:
        if self.is_at_end():
            if self._allow_unclosed and content and self.text.rstrip().endswith(_COMPLETE_ENDINGS):
                self._note("a missing closing bracket")
                return True
            raise self._error("the text ends too early", truncated=True)
        if self.text[self.position] == bracket:
            self.position += 1
            return True
        if self.text[self.position] in "}]":
            raise self._error(f"there is a {self.text[self.position]} where {bracket} belongs")
        return False

    def _read_member(self, members: dict[str, Any]) -> None:
        key = self._read_name()
        self._skip_blanks()
        sign = self.text[self.position : self.position + 1]
        if not sign:
            raise self._error("the text ends too early", truncated=True)
        if sign not in (":", "="):
            raise self._error(f"after {key!r:.40} there must be a colon")
        if sign == "=":
            self._note("= instead of a colon")
        self.position += 2 if self.text.startswith("=>", self.position) else 1
        value = self.read_value()
        if key in members and members[key] != value:
            raise self._error(f"{key!r:.40} occurs twice")
        members[key] = value

    def _read_name(self) -> str:
        self._skip_blanks()
        quote = self.text[self.position : self.position + 1]
        if quote and quote in _QUOTES:
            return self._read_string(quote)
        word = _KEY.match(self.text, self.position)
        if not word:
            raise self._error("a name was expected", truncated=self.is_at_end())
        self._note("names without quotes")
        self.position = word.end()
        return word.group()

    def _read_separator(self, bracket: str) -> None:
        """Read the separator between two members: a comma, or only a line break."""
        before = self.position
        if self.is_at_end():
            return
        char = self.text[self.position]
        if char in ",;":
            self.position += 1
            self._skip_blanks()
            if self.text[self.position : self.position + 1] == bracket:
                self._note("an extra comma")
            elif self.text[self.position : self.position + 1] == ",":
                raise self._error("there are two commas")
        elif char not in "}]":
            if "\n" not in self.text[before : self.position]:
                raise self._error('a comma was expected (escape a quote inside a string as \\")')
            self._note("a missing comma")

    def _read_string(self, quote: str) -> str:
        start = self.position
        if quote in "\"'" and self.text.startswith(quote * 3, start):
            return self._read_triple_quoted(quote * 3)
        if quote != '"':
            self._note("quotes other than double quotes")
        end, parts = _QUOTES[quote], []
        stop = re.compile(f"[\\\\{re.escape(end)}]")
        offset = start + 1
        while match := stop.search(self.text, offset):
            parts.append(self.text[offset : match.start()])
            if match.group() != "\\":
                self.position = match.end()
                if "\n" in self.text[start : self.position]:
                    self._note("bare line breaks in a string")
                return "".join(parts)
            part, offset = self._read_escape(match.end())
            parts.append(part)
        self.position = len(self.text)
        raise self._error("the text ends inside a string", truncated=True)

    def _read_triple_quoted(self, quotes: str) -> str:
        end = self.text.find(quotes, self.position + 3)
        if end < 0:
            self.position = len(self.text)
            raise self._error("the text ends inside a string", truncated=True)
        text, self.position = self.text[self.position + 3 : end], end + 3
        self._note("quotes other than double quotes")
        return re.sub(r"\\([\"'\\])", r"\1", text)

    def _read_escape(self, position: int) -> tuple[str, int]:
        """Return the character of an escape and the position after it; an unknown escape is kept with its backslash."""
        char = self.text[position : position + 1]
        if char in _ESCAPES and char:
            return _ESCAPES[char], position + 1
        if char in _HEX_ESCAPES:
            pair = _SURROGATE_PAIR.match(self.text, position - 1)
            if pair:
                return (bytes.fromhex(pair[1]) + bytes.fromhex(pair[2])).decode("utf-16-be"), pair.end()
            digits = _HEX_ESCAPES[char].match(self.text, position + 1)
            if digits:
                return chr(int(digits.group(), 16)), digits.end()
        self._note("a lone backslash")
        return "\\", position

    def _read_word(self) -> Any:
        number = _NUMBER.match(self.text, self.position)
        word = _BARE_TEXT.match(self.text, self.position)
        if number and (not word or number.end() >= word.end()):
            self.position = number.end()
            return self._parse_number(number.group())
        if not word:
            raise self._error("a value was expected", truncated=self.is_at_end())
        self.position = word.end()
        if word.group() in _CONSTANTS:
            if word.group() not in _JSON_CONSTANTS:
                self._note(f"{word.group()} instead of {json.dumps(_CONSTANTS[word.group()])}")
            return _CONSTANTS[word.group()]
        self._skip_blanks()
        if not self._depth or self.text[self.position : self.position + 1] not in (",", "}", "]"):
            raise self._error(f"{word.group()!r:.40} is not a value; strings need quotes", truncated=self.is_at_end())
        self._note("a string without quotes")
        return word.group()

    def _parse_number(self, text: str) -> int | float:
        plain = text.replace("_", "")
        if re.fullmatch(r"-?(0|[1-9]\d*)", plain):
            return int(plain)
        if "x" in plain.lower():
            return int(plain, 16)
        if re.fullmatch(r"[+-]?\d+", plain):
            return int(plain)
        return float(plain)

    def _skip_blanks(self) -> None:
        match = _SPACE.match(self.text, self.position)
        if match:
            if not match.group().isspace():
                self._note("a comment")
            self.position = match.end()

    def _note(self, deviation: str) -> None:
        self.notes[deviation] = None

    def _error(self, reason: str, *, truncated: bool = False) -> LenientJsonError:
        return LenientJsonError(self.position, reason, truncated=truncated)


def parse_lenient(text: str) -> Any:
    """Parse a complete text; return None if it is not a value."""
    reader = LenientJsonReader(text)
    try:
        value = reader.read_value()
    except (LenientJsonError, RecursionError):
        return None
    return value if reader.is_at_end() else None


def as_list(value: Any) -> Any:
    """Return the list in a JSON text, or a list of one object; any other value is returned unchanged."""
    parsed = parse_lenient(value) if isinstance(value, str) and value.lstrip().startswith(("[", "{")) else value
    return [parsed] if isinstance(parsed, dict) else value if parsed is None else parsed
