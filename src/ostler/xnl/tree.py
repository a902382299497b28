"""Node types of an XNL document."""

from typing import Literal, TypeAlias

import msgspec

# Parser and writer reject deeper trees, so that recursion over a tree cannot exhaust the stack.
MAX_DEPTH = 128

Value: TypeAlias = str | int | float | bool | list["Value"] | dict[str, "Value"] | None


class _NodeStruct(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, tag_field="kind"):
    """Base of all nodes. As JSON: the kind, then the fields without absent ones."""


class Extend(msgspec.Struct, frozen=True):
    """Children by tag, and their order."""

    children: "dict[str, Element]"
    order: list[str]


class DataElement(_NodeStruct, frozen=True, tag="DataElement"):
    tag: str
    metadata: dict[str, Value]
    attributes: dict[str, Value] | None = None
    body: "list[Item] | None" = None
    extend: Extend | None = None


class TextElement(_NodeStruct, frozen=True, tag="TextElement"):
    tag: str
    metadata: dict[str, Value]
    text: str
    attributes: dict[str, Value] | None = None
    text_marker: str | None = None


class Comment(_NodeStruct, frozen=True, tag="Comment"):
    """A comment. The parser drops comments, so it is only written."""

    value: str


Element: TypeAlias = DataElement | TextElement
Item: TypeAlias = Element | Value
Node: TypeAlias = Element | Comment


class DuplicateChild(msgspec.Struct, frozen=True, rename="camel"):
    """A child replaced an earlier one of the same tag."""

    parent_name: str
    child_name: str
    code: Literal["DUPLICATE_CHILD"] = "DUPLICATE_CHILD"


class XnlDocument(msgspec.Struct, frozen=True):
    nodes: list[Node]
    warnings: list[DuplicateChild] = []
