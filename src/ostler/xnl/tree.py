"""The tree that a text of the notation stands for."""

from typing import Literal, TypeAlias

import msgspec

# Deeper trees are refused on reading and on writing, so no walk over a tree can exhaust the stack.
MAX_DEPTH = 128

Value: TypeAlias = str | int | float | bool | list["Value"] | dict[str, "Value"] | None


class _NodeStruct(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, tag_field="kind"):
    """How every kind of node looks as JSON: its kind, then its fields; what is absent is left out."""


class Extend(msgspec.Struct, frozen=True):
    """Children by tag; `order` tells the order in which to write them."""

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
    """Never read, as the reader drops comments; it can be written."""

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


class SingleNode(msgspec.Struct, frozen=True):
    node: Element
    warnings: list[DuplicateChild] = []
