"""Trees, faults and found calls as plain dicts and lists, and plain nodes back to trees."""

from typing import Any

import msgspec

from ostler.xnl.blocks import BadCall, FoundCall
from ostler.xnl.errors import XnlError
from ostler.xnl.tree import (
    MAX_DEPTH,
    Comment,
    DataElement,
    Document,
    Element,
    Extend,
    Item,
    Node,
    SingleNode,
    TextElement,
)


def to_json(thing: Document | SingleNode | Node | XnlError | FoundCall | BadCall) -> dict[str, Any]:
    """What JSON says of a thing of this room."""
    if isinstance(thing, XnlError):
        return {name: getattr(thing, name) for name in ("code", "message", "position", "line", "column")}
    plain: dict[str, Any] = msgspec.to_builtins(thing)
    return plain


def from_json(plain: Any) -> Node:
    """The node of a shape that `to_json` gives; raises XnlError for any other."""
    try:
        return Comment(_text(plain["value"])) if plain["kind"] == "Comment" else _element(plain, 1)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise XnlError("INVALID_CONTENT", "The JSON must describe a node of the notation") from error


def _element(plain: Any, depth: int) -> Element:
    if depth > MAX_DEPTH:
        raise XnlError("INVALID_CONTENT", f"Nesting may be at most {MAX_DEPTH} levels deep")
    tag, metadata, attributes = _text(plain["tag"]), dict(plain["metadata"]), plain.get("attributes")
    attributes = None if attributes is None else dict(attributes)
    if plain["kind"] == "TextElement":
        marker = plain.get("textMarker")
        text_marker = None if marker is None else _text(marker)
        return TextElement(tag, metadata, _text(plain["text"]), attributes, text_marker)
    if plain["kind"] != "DataElement":
        raise KeyError(plain["kind"])
    body, extend = plain.get("body"), plain.get("extend")
    return DataElement(
        tag,
        metadata,
        attributes,
        None if body is None else [_item(item, depth + 1) for item in body],
        None if extend is None else _extend(extend, depth + 1),
    )


def _item(plain: Any, depth: int) -> Item:
    if isinstance(plain, dict) and plain.get("kind") in ("DataElement", "TextElement"):
        return _element(plain, depth)
    value: Item = plain
    return value


def _extend(plain: Any, depth: int) -> Extend:
    children = {tag: _element(child, depth) for tag, child in plain["children"].items()}
    return Extend(children, [tag for tag in plain["order"] if tag in children])


def _text(plain: Any) -> str:
    if not isinstance(plain, str):
        raise TypeError("a string is needed")
    return plain
