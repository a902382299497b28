"""Converts XNL trees, errors and calls to JSON and nodes back."""

from typing import Any

import msgspec

from ostler.xnl.call_blocks import BadCall, FoundCall
from ostler.xnl.errors import XnlError
from ostler.xnl.tree import (
    MAX_DEPTH,
    Comment,
    DataElement,
    Element,
    Extend,
    Item,
    Node,
    TextElement,
    XnlDocument,
)


def to_json(value: XnlDocument | Node | XnlError | FoundCall | BadCall) -> dict[str, Any]:
    """Return the JSON form of a tree, an error or a call."""
    if isinstance(value, XnlError):
        return {name: getattr(value, name) for name in ("code", "message", "position", "line", "column")}
    plain: dict[str, Any] = msgspec.to_builtins(value)
    return plain


def from_json(data: Any) -> Node:
    """Return the node for the result of `to_json`. Raises `XnlError` for any other value."""
    try:
        return Comment(_require_text(data["value"])) if data["kind"] == "Comment" else _to_element(data, 1)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise XnlError("INVALID_CONTENT", "The JSON must describe an XNL node") from error


def _to_element(data: Any, depth: int) -> Element:
    if depth > MAX_DEPTH:
        raise XnlError("INVALID_CONTENT", f"Nesting may be at most {MAX_DEPTH} levels deep")
    tag, metadata, attributes = _require_text(data["tag"]), dict(data["metadata"]), data.get("attributes")
    attributes = None if attributes is None else dict(attributes)
    if data["kind"] == "TextElement":
        marker = data.get("textMarker")
        text_marker = None if marker is None else _require_text(marker)
        return TextElement(tag, metadata, _require_text(data["text"]), attributes, text_marker)
    if data["kind"] != "DataElement":
        raise KeyError(data["kind"])
    body, extend = data.get("body"), data.get("extend")
    return DataElement(
        tag,
        metadata,
        attributes,
        None if body is None else [_to_item(item, depth + 1) for item in body],
        None if extend is None else _to_extend(extend, depth + 1),
    )


def _to_item(data: Any, depth: int) -> Item:
    if isinstance(data, dict) and data.get("kind") in ("DataElement", "TextElement"):
        return _to_element(data, depth)
    value: Item = data
    return value


def _to_extend(data: Any, depth: int) -> Extend:
    children = {tag: _to_element(child, depth) for tag, child in data["children"].items()}
    return Extend(children, [tag for tag in data["order"] if tag in children])


def _require_text(data: Any) -> str:
    if not isinstance(data, str):
        raise TypeError("a string is required")
    return data
