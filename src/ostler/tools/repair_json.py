"""Reads what was meant to be JSON: other quotes, bare words, commas too many or too few; each slip is noted.

Linear in the length of the text. What could mean two things is not read at all.
"""

import re
from typing import Any

DEEPEST = 64
_SPACE = re.compile(r"(?:\s|//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/|(?<![^\s,{\[])#[^\n]*)+")
_KEY = re.compile(r"[A-Za-z_$][\w$-]*")
_NUMBER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]{1,15}|\d[\d_]{0,39}(?:\.\d{0,39})?(?:[eE][+-]?\d{1,3})?|\.\d{1,39})")
_BARE = re.compile(r"[\w./*@~+-]+")
_WORDS: dict[str, Any] = {
    "true": True,
    "false": False,
    "null": None,
    "True": True,
    "False": False,
    "None": None,
    "TRUE": True,
    "FALSE": False,
    "NULL": None,
    "undefined": None,
}
_WHOLE = ('"', "'", "}", "]", "true", "false", "null", "True", "False", "None")  # a number may have had more digits
_JSON_WORDS = ("true", "false", "null")
_QUOTES = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’", "”": "”"}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\\": "\\", '"': '"', "'": "'", "`": "`"}
_HEX = {"u": re.compile(r"[0-9a-fA-F]{4}"), "x": re.compile(r"[0-9a-fA-F]{2}")}
_HIGH = re.compile(r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")


class NotReadable(ValueError):
    """The text is no value; `cut` says that it ends too early."""

    def __init__(self, at: int, why: str, *, cut: bool = False) -> None:
        super().__init__(why)
        self.at = at
        self.why = why
        self.cut = cut


class Loose:
    """One reading of a text. `notes` are the slips that were forgiven, `at` is where the value ended."""

    def __init__(self, text: str, at: int = 0, *, close: bool = False) -> None:
        self.text = text
        self.at = at
        self.notes: dict[str, None] = {}
        self._close = close
        self._depth = 0

    def value(self) -> Any:
        """The value that begins here."""
        self._skip()
        char = self.text[self.at : self.at + 1]
        if char == "{":
            return self._nested(self._object)
        if char == "[":
            return self._nested(self._array)
        if char in _QUOTES and char:
            return self._string(char)
        return self._word()

    def members(self) -> dict[str, Any]:
        """The members of an object whose braces are missing."""
        found: dict[str, Any] = {}
        while not self.ended():
            self._member(found)
            self._skip()
            if self.text[self.at : self.at + 1] in (",", ";"):
                self.at += 1
        return found

    def ended(self) -> bool:
        """Whether nothing but blanks and comments is left; they are skipped."""
        self._skip()
        return self.at >= len(self.text)

    def _nested(self, read: Any) -> Any:
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._fault("it is nested too deeply")
        self.at += 1
        made = read()
        self._depth -= 1
        return made

    def _object(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not self._closed("}", found):
            self._member(found)
            self._between("}")
        return found

    def _array(self) -> list[Any]:
        found: list[Any] = []
        while not self._closed("]", found):
            found.append(self.value())
            self._between("]")
        return found

    def _closed(self, bracket: str, found: Any) -> bool:
        if self.ended():
            if self._close and found and self.text.rstrip().endswith(_WHOLE):
                self._note("a missing closing bracket")
                return True
            raise self._fault("it ends too early", cut=True)
        if self.text[self.at] == bracket:
            self.at += 1
            return True
        if self.text[self.at] in "}]":
            raise self._fault(f"there is a {self.text[self.at]} where {bracket} belongs")
        return False

    def _member(self, found: dict[str, Any]) -> None:
        key = self._name()
        self._skip()
        sign = self.text[self.at : self.at + 1]
        if not sign:
            raise self._fault("it ends too early", cut=True)
        if sign not in (":", "="):
            raise self._fault(f"after {key!r:.40} there must be a colon")
        if sign == "=":
            self._note("= for a colon")
        self.at += 2 if self.text.startswith("=>", self.at) else 1
        value = self.value()
        if key in found and found[key] != value:
            raise self._fault(f"{key!r:.40} is there twice")
        found[key] = value

    def _name(self) -> str:
        self._skip()
        quote = self.text[self.at : self.at + 1]
        if quote and quote in _QUOTES:
            return self._string(quote)
        word = _KEY.match(self.text, self.at)
        if not word:
            raise self._fault("a name was expected", cut=self.ended())
        self._note("names without quotes")
        self.at = word.end()
        return word.group()

    def _between(self, bracket: str) -> None:
        """What parts two members: a comma, or nothing where only a new line can be meant."""
        before = self.at
        if self.ended():
            return
        char = self.text[self.at]
        if char in ",;":
            self.at += 1
            self._skip()
            if self.text[self.at : self.at + 1] == bracket:
                self._note("a comma too many")
            elif self.text[self.at : self.at + 1] == ",":
                raise self._fault("there are two commas")
        elif char not in "}]":
            if "\n" not in self.text[before : self.at]:
                raise self._fault('a comma was expected (a quote inside a text is written \\")')
            self._note("a missing comma")

    def _string(self, quote: str) -> str:
        start = self.at
        if quote in "\"'" and self.text.startswith(quote * 3, start):
            return self._block(quote * 3)
        if quote != '"':
            self._note("other quotes than double ones")
        end, pieces = _QUOTES[quote], []
        stop = re.compile(f"[\\\\{re.escape(end)}]")
        at = start + 1
        while found := stop.search(self.text, at):
            pieces.append(self.text[at : found.start()])
            if found.group() != "\\":
                self.at = found.end()
                if "\n" in self.text[start : self.at]:
                    self._note("bare line ends in a text")
                return "".join(pieces)
            piece, at = self._escape(found.end())
            pieces.append(piece)
        self.at = len(self.text)
        raise self._fault("it ends inside a text", cut=True)

    def _block(self, quotes: str) -> str:
        end = self.text.find(quotes, self.at + 3)
        if end < 0:
            self.at = len(self.text)
            raise self._fault("it ends inside a text", cut=True)
        text, self.at = self.text[self.at + 3 : end], end + 3
        self._note("other quotes than double ones")
        return re.sub(r"\\([\"'\\])", r"\1", text)

    def _escape(self, at: int) -> tuple[str, int]:
        """The character an escape stands for; one that JSON does not know stands for itself, backslash and all."""
        char = self.text[at : at + 1]
        if char in _ESCAPES and char:
            return _ESCAPES[char], at + 1
        if char in _HEX:
            pair = _HIGH.match(self.text, at - 1)
            if pair:
                return (bytes.fromhex(pair[1]) + bytes.fromhex(pair[2])).decode("utf-16-be"), pair.end()
            digits = _HEX[char].match(self.text, at + 1)
            if digits:
                made = chr(int(digits.group(), 16))
                return made, digits.end()
        self._note("a lone backslash")
        return "\\", at

    def _word(self) -> Any:
        number = _NUMBER.match(self.text, self.at)
        word = _BARE.match(self.text, self.at)
        if number and (not word or number.end() >= word.end()):
            self.at = number.end()
            return self._number(number.group())
        if not word:
            raise self._fault("a value was expected", cut=self.ended())
        self.at = word.end()
        if word.group() in _WORDS:
            if word.group() not in _JSON_WORDS:
                self._note(f"{word.group()} for {_json(_WORDS[word.group()])}")
            return _WORDS[word.group()]
        self._skip()
        if not self._depth or self.text[self.at : self.at + 1] not in (",", "}", "]"):
            raise self._fault(f"{word.group()!r:.40} is no value; a text needs quotes", cut=self.ended())
        self._note("a text without quotes")
        return word.group()

    def _number(self, text: str) -> int | float:
        plain = text.replace("_", "")
        if re.fullmatch(r"-?(0|[1-9]\d*)", plain):
            return int(plain)
        if "x" in plain.lower():
            return int(plain, 16)
        if re.fullmatch(r"[+-]?\d+", plain):
            return int(plain)
        return float(plain)

    def _skip(self) -> None:
        found = _SPACE.match(self.text, self.at)
        if found:
            if not found.group().isspace():
                self._note("a comment")
            self.at = found.end()

    def _note(self, slip: str) -> None:
        self.notes[slip] = None

    def _fault(self, why: str, *, cut: bool = False) -> NotReadable:
        return NotReadable(self.at, why, cut=cut)


def _json(value: Any) -> str:
    return {True: "true", False: "false", None: "null"}[value]


def parsed(text: str) -> Any:
    """The value that a whole text is; None when it is none, or is null."""
    reader = Loose(text)
    try:
        value = reader.value()
    except (NotReadable, RecursionError):
        return None
    return value if reader.ended() else None


def as_list(value: Any) -> Any:
    """A list that came as its text, or one item of it alone; anything else as it is."""
    made = parsed(value) if isinstance(value, str) and value.lstrip().startswith(("[", "{")) else value
    return [made] if isinstance(made, dict) else value if made is None else made
