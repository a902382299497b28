"""Formats an XNL tree as text, compact or indented."""

import re
from collections.abc import Iterable, Mapping

from ostler.xnl.errors import XnlError
from ostler.xnl.numerals import in_range, write_number
from ostler.xnl.tree import (
    MAX_DEPTH,
    Comment,
    DataElement,
    Element,
    Item,
    Node,
    TextElement,
    Value,
    XnlDocument,
)

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9_-]")
_CLOSER_START = re.compile(r"</#([A-Za-z0-9_-]*)")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}  # the backslash must be first


def format(tree: XnlDocument | Node, *, pretty: bool = False, indent: str = "  ") -> str:
    """Return the text of a tree. Raises `XnlError` for an invalid tag, a number out of range or too deep nesting."""
    nodes = tree.nodes if isinstance(tree, XnlDocument) else [tree]
    writer = _XnlWriter(indent if pretty else None)
    return ("\n" if pretty else "").join(writer.node(node, 0) for node in nodes)


class _XnlWriter:
    def __init__(self, indent: str | None) -> None:
        self._indent = indent

    def node(self, node: Node, depth: int) -> str:
        if isinstance(node, Comment):
            return f"{self._pad(depth)}<!-- {node.value.replace('-->', '-- >')} -->"
        return self._element(node, depth)

    def _element(self, element: Element, depth: int) -> str:
        _check_depth(depth)
        if not _NAME.fullmatch(element.tag):
            raise XnlError("INVALID_CONTENT", "An element's tag must be a name of letters, digits, `_` and `-`")
        parts = [f"{self._pad(depth)}<{element.tag}"]
        parts += [f"{_key(key)}={self._value(value, depth)}" for key, value in element.metadata.items()]
        if element.attributes is not None:
            parts.append(self._object(element.attributes, depth))
        if isinstance(element, DataElement):
            return " ".join(parts + self._blocks(element, depth)) + ">"
        text = _strip_trailing_indent(element.text)
        marker = _choose_marker(text, element.text_marker)
        return f"{' '.join(parts)} #{marker}>{text}</#{marker}>"

    def _blocks(self, element: DataElement, depth: int) -> list[str]:
        blocks = []
        if element.body is not None:
            body = (self._item(item, depth + 1) for item in element.body)
            blocks.append(self._enclose("[", body, "]", depth))
        if element.extend is not None:
            children = (element.extend.children[tag] for tag in element.extend.order)
            blocks.append(self._enclose("(", (self._element(child, depth + 1) for child in children), ")", depth))
        return blocks

    def _item(self, item: Item, depth: int) -> str:
        if isinstance(item, DataElement | TextElement):
            return self._element(item, depth)
        return self._value(item, depth)

    def _value(self, value: Value, depth: int) -> str:
        if isinstance(value, str):
            return _quote(value)
        if isinstance(value, Mapping):
            _check_depth(depth)
            return self._object(value, depth)
        if isinstance(value, list | tuple):
            _check_depth(depth)
            return self._array(value, depth)
        return _scalar(value)

    def _array(self, items: Iterable[Value], depth: int) -> str:
        values = (self._value(item, depth + 1) for item in items)
        if self._indent is None:
            return f"[{' '.join(values)}]"
        return self._enclose("[", values, "]", depth)

    def _object(self, entries: Mapping[str, Value], depth: int) -> str:
        pairs = (f"{_key(key)} = {self._value(value, depth + 1)}" for key, value in entries.items())
        return self._enclose("{", pairs, "}", depth)

    def _enclose(self, opener: str, entries: Iterable[str], closer: str, depth: int) -> str:
        if self._indent is None:
            return f"{opener} {' '.join(entries)} {closer}"
        # Elements are already indented and get this indent too, as in the reference implementation.
        lines = "\n".join(self._pad(depth + 1) + entry for entry in entries)
        return f"{opener}\n{lines}\n{self._pad(depth)}{closer}"

    def _pad(self, depth: int) -> str:
        return (self._indent or "") * depth


def _check_depth(depth: int) -> None:
    if depth >= MAX_DEPTH:
        raise XnlError("INVALID_CONTENT", f"Nesting may be at most {MAX_DEPTH} levels deep")


def _key(key: str) -> str:
    return key if _NAME.fullmatch(key) else _quote(key)


def _quote(text: str) -> str:
    for char, escaped in _ESCAPES.items():  # several times faster than str.translate
        text = text.replace(char, escaped)
    return f'"{text}"'


def _scalar(value: int | float | bool | None) -> str:
    if value is None or value is True or value is False:
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float) and not float("-inf") < value < float("inf"):
        return "null"  # as JSON.stringify does: there is no numeral for it
    if isinstance(value, int) and not in_range(value):
        raise XnlError("INVALID_LITERAL", "The number is too large to write")
    return write_number(value)


def _choose_marker(text: str, preferred: str | None) -> str:
    """Return the preferred marker, or another one if the text contains its closer."""
    marker = _NOT_IN_NAME.sub("_", preferred or "")
    if marker and not _NAME.match(marker):
        marker = f"_{marker}"
    if f"</#{marker}>" not in text:
        return marker
    used = set(_CLOSER_START.findall(text))
    return next(name for number in range(1, len(used) + 2) if (name := f"{marker or 'text'}-{number}") not in used)


def _strip_trailing_indent(text: str) -> str:
    """Remove blanks after the last newline: the parser would remove that indent from every line."""
    head, newline, tail = text.rpartition("\n")
    return head + newline if newline and not tail.strip(" \t") else text
