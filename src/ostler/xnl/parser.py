"""Parses XNL text into a tree in one pass."""

import re
from typing import NoReturn

from ostler.xnl.errors import XnlError, XnlErrorCode
from ostler.xnl.numerals import read_decimal
from ostler.xnl.tree import (
    MAX_DEPTH,
    DataElement,
    DuplicateChild,
    Element,
    Extend,
    Item,
    Node,
    TextElement,
    Value,
    XnlDocument,
)

_BLANKS = re.compile(r"[ \t\n\r]*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_NAME_REST = re.compile(r"[A-Za-z0-9_-]*")
_NUMBER_START = re.compile(r"[+-]?[0-9]+")
_DIGITS = re.compile(r"[0-9]+")
_EXPONENT_START = re.compile(r"[eE][+-]?")
_STRING_BODY = {
    '"': re.compile(r'(?:[^"\\]++|\\.)*', re.DOTALL),
    "'": re.compile(r"(?:[^'\\]++|\\.)*", re.DOTALL),
}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}
_KEYWORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
_SECTION_STARTS = frozenset("{[(#>")
_CLOSER_START = "</#"  # of the text of an element


def parse(text: str) -> XnlDocument:
    """Parse a document of any number of elements. Raises `XnlError` at the first error."""
    reader = _XnlParser(text)
    nodes: list[Node] = []
    while not reader.at_end():
        nodes.append(reader.read_element(1))
    return XnlDocument(nodes, reader.warnings)


class _XnlParser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.warnings: list[DuplicateChild] = []

    def fail(
        self, code: XnlErrorCode, message: str, offset: int | None = None, *, after_char: bool = False
    ) -> NoReturn:
        raise XnlError(code, message, self.text, self.position if offset is None else offset, after_char=after_char)

    def peek(self) -> str:
        return self.text[self.position : self.position + 1]

    def skip_blanks(self) -> str:
        """Skip whitespace and comments. Return the next character, or an empty string at the end."""
        while True:
            blanks = _BLANKS.match(self.text, self.position)
            if blanks is not None:
                self.position = blanks.end()
            if not self.text.startswith("<!--", self.position):
                return self.peek()
            end = self.text.find("-->", self.position + 4)
            if end < 0:
                self.fail("UNEXPECTED_EOF", "Close the comment with `-->`")
            self.position = end + 3

    def at_end(self) -> bool:
        return self.skip_blanks() == ""

    def read_element(self, depth: int) -> Element:
        self._check_depth(depth)
        self._expect("<", "An element must start with `<`")
        tag = self._read_tag()
        metadata = self._read_metadata(depth)
        attributes: dict[str, Value] | None = None
        body: list[Item] | None = None
        extend: Extend | None = None
        while (start := self.skip_blanks()) != ">":
            if start == "{":
                self._check_unique(attributes, "attribute block")
                attributes = self._read_entries(depth)
            elif start == "[":
                self._check_unique(body, "array block")
                body = self._read_array_block(depth)
            elif start == "(":
                self._check_unique(extend, "extend block")
                extend = self._read_extend_block(tag, depth)
            elif start == "#":
                if body is not None or extend is not None:
                    self.fail("INVALID_CONTENT", f"Text cannot follow a block in <{_shorten(tag)}>", after_char=True)
                return self._read_text_element(tag, metadata, attributes)
            else:
                name = _shorten(tag)
                self._fail_unexpected(f"`{start}` is not allowed in <{name}>", f"<{name}> must be closed with `>`")
        self.position += 1
        return DataElement(tag, metadata, attributes, body, extend)

    def _check_depth(self, depth: int) -> None:
        if depth > MAX_DEPTH:
            self.fail("INVALID_CONTENT", f"Nesting may be at most {MAX_DEPTH} levels deep")

    def _check_unique(self, block: object, name: str) -> None:
        if block is not None:
            self.fail("INVALID_CONTENT", f"An element may have only one {name}")

    def _fail_unexpected(self, token_message: str, eof_message: str) -> NoReturn:
        if self.position >= len(self.text):
            self.fail("UNEXPECTED_EOF", eof_message)
        self.fail("UNEXPECTED_TOKEN", token_message)

    def _expect(self, character: str, message: str) -> None:
        char = self.peek()
        if not char:
            self.fail("UNEXPECTED_EOF", message)
        if char != character:
            self.fail("UNEXPECTED_TOKEN", message, after_char=True)
        self.position += 1

    def _read_tag(self) -> str:
        name = _NAME.match(self.text, self.position)
        if name is None:
            self.fail("UNEXPECTED_TOKEN", "An element's name must follow `<`")
        self.position = name.end()
        return name.group()

    def _read_name(self, message: str) -> str:
        name = _NAME.match(self.text, self.position)
        if name is None:
            self._fail_unexpected(message, message)
        self.position = name.end()
        return name.group()

    def _read_metadata(self, depth: int) -> dict[str, Value]:
        metadata: dict[str, Value] = {}
        while self.skip_blanks() not in _SECTION_STARTS:
            key = self._read_key()
            metadata[key] = self._read_value(depth)
        return metadata

    def _read_entries(self, depth: int) -> dict[str, Value]:
        """Read `{ key = value ... }`, an attribute block or an object value."""
        self.position += 1
        entries: dict[str, Value] = {}
        while self.skip_blanks() != "}":
            key = self._read_key()
            entries[key] = self._read_value(depth + 1)
        self.position += 1
        return entries

    def _read_key(self) -> str:
        """Read a key, the `=` after it and the blanks around that."""
        quote = self.peek()
        key = self._read_string(quote) if quote in _STRING_BODY else self._read_name("A key is missing here")
        self.skip_blanks()
        self._expect("=", "A key must be followed by `=`")
        self.skip_blanks()
        return key

    def _read_array_block(self, depth: int) -> list[Item]:
        self.position += 1
        items: list[Item] = []
        while (start := self.skip_blanks()) != "]":
            items.append(self.read_element(depth + 1) if start == "<" else self._read_value(depth + 1))
        self.position += 1
        return items

    def _read_extend_block(self, parent: str, depth: int) -> Extend:
        self.position += 1
        children: dict[str, Element] = {}
        order: dict[str, None] = {}
        while (start := self.skip_blanks()) != ")":
            if start not in ("<", ""):
                self.fail("INVALID_CONTENT", f"The extend block of <{_shorten(parent)}> may contain elements only")
            child = self.read_element(depth + 1)
            if child.tag in children:
                self.warnings.append(DuplicateChild(parent, child.tag))
                del order[child.tag]
            children[child.tag] = child
            order[child.tag] = None
        self.position += 1
        return Extend(children, list(order))

    def _read_text_element(
        self, tag: str, metadata: dict[str, Value], attributes: dict[str, Value] | None
    ) -> TextElement:
        self.position += 1
        match = _NAME.match(self.text, self.position)
        marker = match.group() if match else None
        self.position += len(marker or "")
        self._expect(">", "The text marker must be followed directly by `>`")
        closer = f"{_CLOSER_START}{marker or ''}>"
        start, end = self.position, self.text.find(closer, self.position)
        if end < 0:
            self._fail_unclosed(tag, closer)
        self.position = end + len(closer)
        return TextElement(tag, metadata, _dedent(self.text[start:end]), attributes, marker)

    def _fail_unclosed(self, tag: str, closer: str) -> NoReturn:
        """Fail at the first text that looks like a closer: it is probably the intended one."""
        start = self.text.find(_CLOSER_START, self.position)
        message = f"The text of <{_shorten(tag)}> must be closed with `{_shorten(closer)}`"
        if start < 0:
            self.fail("MISMATCHED_TAG", message)
        name_end = _NAME_REST.match(self.text, start + len(_CLOSER_START))
        is_complete = name_end is not None and self.text.startswith(">", name_end.end())
        self.fail("MISMATCHED_TAG" if is_complete else "UNEXPECTED_TOKEN", message, start)

    def _read_value(self, depth: int) -> Value:
        start = self.peek()
        if start == "{":
            self._check_depth(depth)
            return self._read_entries(depth)
        if start == "[":
            self._check_depth(depth)
            return self._read_array(depth)
        if start in _STRING_BODY:
            return self._read_string(start)
        if number := _NUMBER_START.match(self.text, self.position):
            return self._read_number(number)
        return self._read_word(start)

    def _read_array(self, depth: int) -> list[Value]:
        self.position += 1
        items: list[Value] = []
        while self.skip_blanks() != "]":
            items.append(self._read_value(depth + 1))
        self.position += 1
        return items

    def _read_string(self, quote: str) -> str:
        body = _STRING_BODY[quote].match(self.text, self.position + 1)
        if body is None or not self.text.startswith(quote, body.end()):
            self.fail("UNEXPECTED_EOF", f"Close the string with {quote}", len(self.text))
        self.position = body.end() + 1
        if "\\" not in body.group():
            return body.group()
        return _ESCAPE.sub(lambda escape: _ESCAPED.get(escape[1], escape[1]), body.group())

    def _read_number(self, integer: re.Match[str]) -> int | float:
        start, self.position = self.position, integer.end()
        if self.peek() == ".":
            self.position += 1
            self._read_digits("Digits must follow the decimal point")
        if exponent := _EXPONENT_START.match(self.text, self.position):
            self.position = exponent.end()
            self._read_digits("Digits must follow the exponent sign")
        number = read_decimal(self.text[start : self.position])
        if number is None:
            self.fail("INVALID_LITERAL", "The number is too large")
        return number

    def _read_digits(self, message: str) -> None:
        digits = _DIGITS.match(self.text, self.position)
        if digits is None:
            self.fail("INVALID_LITERAL", message)
        self.position = digits.end()

    def _read_word(self, start: str) -> Value:
        word = _NAME.match(self.text, self.position)
        if word is None:
            if not start:
                self.fail("UNEXPECTED_EOF", "A value is missing here")
            self.fail("INVALID_LITERAL", f"A value cannot start with `{start}`")
        self.position = word.end()
        if word.group() not in _KEYWORDS:
            self.fail("INVALID_LITERAL", f"Write the bare word `{_shorten(word.group())}` as a quoted string")
        return _KEYWORDS[word.group()]


def _shorten(name: str) -> str:
    return name if len(name) <= 60 else f"{name[:60]}…"


def _dedent(body: str) -> str:
    """Remove the indent of a closer on its own line from every line of the text."""
    _, newline, indent = body.rpartition("\n")
    if not newline or not indent or indent.strip(" \t"):
        return body
    lines = body.split("\n")
    if not lines[0]:
        del lines[0]
    return "\n".join(line[_common_length(line, indent) :] for line in lines)


def _common_length(line: str, indent: str) -> int:
    if line.startswith(indent):
        return len(indent)
    return next(
        (index for index, (char, expected) in enumerate(zip(line, indent, strict=False)) if char != expected), len(line)
    )
