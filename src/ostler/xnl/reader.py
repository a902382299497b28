"""Text of the notation to its tree, in one pass, or to the first fault in it."""

import re
from typing import Literal, NoReturn

from ostler.xnl.errors import Code, XnlError
from ostler.xnl.numerals import read_decimal
from ostler.xnl.tree import (
    MAX_DEPTH,
    DataElement,
    Document,
    DuplicateChild,
    Element,
    Extend,
    Item,
    Node,
    SingleNode,
    TextElement,
    Value,
)

# The older dialect closes text with `<#marker>` and reads bare words as strings.
Dialect = Literal["2025-12", "2025-11"]

_BLANKS = re.compile(r"[ \t\n\r]*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_NAME_REST = re.compile(r"[A-Za-z0-9_-]*")
_NUMBER_START = re.compile(r"[+-]?[0-9]+")
_DIGITS = re.compile(r"[0-9]+")
_EXPONENT_START = re.compile(r"[eE][+-]?")
_STRING_BODY = {
    '"': re.compile(r'(?:[^"\\]++|\\.)*+', re.DOTALL),
    "'": re.compile(r"(?:[^'\\]++|\\.)*+", re.DOTALL),
}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}
_KEYWORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
_SECTION_STARTS = frozenset("{[(#>")


def parse(text: str, *, dialect: Dialect = "2025-12") -> Document:
    """Read a document of any number of elements; raises XnlError at the first fault."""
    reader = _Reader(text, dialect)
    nodes: list[Node] = []
    while not reader.at_end():
        nodes.append(reader.element(1))
    return Document(nodes, reader.warnings)


def parse_single(text: str, *, dialect: Dialect = "2025-12") -> SingleNode:
    """Read a text that must hold exactly one element."""
    reader = _Reader(text, dialect)
    reader.skip()
    node = reader.element(1)
    if not reader.at_end():
        reader.fail("UNEXPECTED_TOKEN", "Only one element may stand here")
    return SingleNode(node, reader.warnings)


class _Reader:
    def __init__(self, text: str, dialect: Dialect) -> None:
        self.text = text
        self.position = 0
        self.warnings: list[DuplicateChild] = []
        self._opens_closer = "<#" if dialect == "2025-11" else "</#"
        self._bare_words = dialect == "2025-11"

    def fail(self, code: Code, message: str, at: int | None = None, *, past: bool = False) -> NoReturn:
        raise XnlError(code, message, self.text, self.position if at is None else at, past=past)

    def peek(self) -> str:
        return self.text[self.position : self.position + 1]

    def skip(self) -> str:
        """Step over whitespace and comments; the next character, or nothing at the end."""
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
        return self.skip() == ""

    def element(self, depth: int) -> Element:
        self._guard(depth)
        self._expect("<", "An element must start with `<`")
        tag = self._tag()
        metadata = self._metadata(depth)
        attributes: dict[str, Value] | None = None
        body: list[Item] | None = None
        extend: Extend | None = None
        while (start := self.skip()) != ">":
            if start == "{":
                self._once(attributes, "attribute block")
                attributes = self._entries(depth)
            elif start == "[":
                self._once(body, "array block")
                body = self._array_block(depth)
            elif start == "(":
                self._once(extend, "extend block")
                extend = self._extend_block(tag, depth)
            elif start == "#":
                if body is not None or extend is not None:
                    self.fail("INVALID_CONTENT", f"Text cannot follow a block in <{_short(tag)}>", past=True)
                return self._text_element(tag, metadata, attributes)
            else:
                name = _short(tag)
                self._stray(f"`{start}` cannot stand in <{name}>", f"<{name}> must be closed with `>`")
        self.position += 1
        return DataElement(tag, metadata, attributes, body, extend)

    def _guard(self, depth: int) -> None:
        if depth > MAX_DEPTH:
            self.fail("INVALID_CONTENT", f"Nesting may be at most {MAX_DEPTH} levels deep")

    def _once(self, block: object, name: str) -> None:
        if block is not None:
            self.fail("INVALID_CONTENT", f"An element may have only one {name}")

    def _stray(self, found: str, ended: str) -> NoReturn:
        if self.position >= len(self.text):
            self.fail("UNEXPECTED_EOF", ended)
        self.fail("UNEXPECTED_TOKEN", found)

    def _expect(self, character: str, message: str) -> None:
        found = self.peek()
        if not found:
            self.fail("UNEXPECTED_EOF", message)
        if found != character:
            self.fail("UNEXPECTED_TOKEN", message, past=True)
        self.position += 1

    def _tag(self) -> str:
        name = _NAME.match(self.text, self.position)
        if name is None:
            self.fail("UNEXPECTED_TOKEN", "An element's name must follow `<`")
        self.position = name.end()
        return name.group()

    def _name(self, message: str) -> str:
        name = _NAME.match(self.text, self.position)
        if name is None:
            self._stray(message, message)
        self.position = name.end()
        return name.group()

    def _metadata(self, depth: int) -> dict[str, Value]:
        metadata: dict[str, Value] = {}
        while self.skip() not in _SECTION_STARTS:
            key = self._key()
            metadata[key] = self._value(depth)
        return metadata

    def _entries(self, depth: int) -> dict[str, Value]:
        """`{ key = value ... }`, an attribute block and an object value alike."""
        self.position += 1
        entries: dict[str, Value] = {}
        while self.skip() != "}":
            key = self._key()
            entries[key] = self._value(depth + 1)
        self.position += 1
        return entries

    def _key(self) -> str:
        """A key, the `=` behind it and the space around that."""
        quote = self.peek()
        key = self._string(quote) if quote in _STRING_BODY else self._name("A key must stand here")
        self.skip()
        self._expect("=", "A key must be followed by `=`")
        self.skip()
        return key

    def _array_block(self, depth: int) -> list[Item]:
        self.position += 1
        items: list[Item] = []
        while (start := self.skip()) != "]":
            items.append(self.element(depth + 1) if start == "<" else self._value(depth + 1))
        self.position += 1
        return items

    def _extend_block(self, parent: str, depth: int) -> Extend:
        self.position += 1
        children: dict[str, Element] = {}
        order: dict[str, None] = {}
        while (start := self.skip()) != ")":
            if start not in ("<", ""):
                self.fail("INVALID_CONTENT", f"The extend block of <{_short(parent)}> may hold elements only")
            child = self.element(depth + 1)
            if child.tag in children:
                self.warnings.append(DuplicateChild(parent, child.tag))
                del order[child.tag]
            children[child.tag] = child
            order[child.tag] = None
        self.position += 1
        return Extend(children, list(order))

    def _text_element(self, tag: str, metadata: dict[str, Value], attributes: dict[str, Value] | None) -> TextElement:
        self.position += 1
        found = _NAME.match(self.text, self.position)
        marker = found.group() if found else None
        self.position += len(marker or "")
        self._expect(">", "The text marker must be followed by `>` at once")
        closer = f"{self._opens_closer}{marker or ''}>"
        start, end = self.position, self.text.find(closer, self.position)
        if end < 0:
            self._no_closer(tag, closer)
        self.position = end + len(closer)
        return TextElement(tag, metadata, _dedent(self.text[start:end]), attributes, marker)

    def _no_closer(self, tag: str, closer: str) -> NoReturn:
        """Point at the first thing that looks like a closer: it is most likely the one meant."""
        start = self.text.find(self._opens_closer, self.position)
        message = f"The text of <{_short(tag)}> must be closed with `{_short(closer)}`"
        if start < 0:
            self.fail("MISMATCHED_TAG", message)
        name_end = _NAME_REST.match(self.text, start + len(self._opens_closer))
        whole = name_end is not None and self.text.startswith(">", name_end.end())
        self.fail("MISMATCHED_TAG" if whole else "UNEXPECTED_TOKEN", message, start)

    def _value(self, depth: int) -> Value:
        start = self.peek()
        if start == "{":
            self._guard(depth)
            return self._entries(depth)
        if start == "[":
            self._guard(depth)
            return self._array(depth)
        if start in _STRING_BODY:
            return self._string(start)
        if number := _NUMBER_START.match(self.text, self.position):
            return self._number(number)
        return self._word(start)

    def _array(self, depth: int) -> list[Value]:
        self.position += 1
        items: list[Value] = []
        while self.skip() != "]":
            items.append(self._value(depth + 1))
        self.position += 1
        return items

    def _string(self, quote: str) -> str:
        body = _STRING_BODY[quote].match(self.text, self.position + 1)
        if body is None or not self.text.startswith(quote, body.end()):
            self.fail("UNEXPECTED_EOF", f"Close the string with {quote}", len(self.text))
        self.position = body.end() + 1
        if "\\" not in body.group():
            return body.group()
        return _ESCAPE.sub(lambda escape: _ESCAPED.get(escape[1], escape[1]), body.group())

    def _number(self, whole: re.Match[str]) -> int | float:
        start, self.position = self.position, whole.end()
        if self.peek() == ".":
            self.position += 1
            self._digits("Digits must follow the decimal point")
        if exponent := _EXPONENT_START.match(self.text, self.position):
            self.position = exponent.end()
            self._digits("Digits must follow the exponent's mark")
        number = read_decimal(self.text[start : self.position])
        if number is None:
            self.fail("INVALID_LITERAL", "The number is too large")
        return number

    def _digits(self, message: str) -> None:
        digits = _DIGITS.match(self.text, self.position)
        if digits is None:
            self.fail("INVALID_LITERAL", message)
        self.position = digits.end()

    def _word(self, start: str) -> Value:
        word = _NAME.match(self.text, self.position)
        if word is None:
            if not start:
                self.fail("UNEXPECTED_EOF", "A value must stand here")
            self.fail("INVALID_LITERAL", f"A value cannot start with `{start}`")
        self.position = word.end()
        if word.group() in _KEYWORDS:
            return _KEYWORDS[word.group()]
        if not self._bare_words:
            self.fail("INVALID_LITERAL", f"Write the bare word `{_short(word.group())}` as a quoted string")
        return word.group()


def _short(name: str) -> str:
    return name if len(name) <= 60 else f"{name[:60]}…"


def _dedent(body: str) -> str:
    """Take the indent of a closer that stands alone on its line from every line of the text before it."""
    _, newline, indent = body.rpartition("\n")
    if not newline or not indent or indent.strip(" \t"):
        return body
    lines = body.split("\n")
    if not lines[0]:
        del lines[0]
    return "\n".join(line[_common(line, indent) :] for line in lines)


def _common(line: str, indent: str) -> int:
    if line.startswith(indent):
        return len(indent)
    return next((at for at, (one, other) in enumerate(zip(line, indent, strict=False)) if one != other), len(line))
