"""Cleans the schema and the description of a tool, so that every provider accepts them and their size is limited."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from ostler.text.sanitise import sanitise

MAX_DESCRIPTION = 2048
MAX_TEXT = 500
MAX_SCHEMA_BYTES = 16 * 1024
MAX_DEPTH = 8
MAX_PROPERTIES = 100
MAX_CHOICES = 200
_PROPERTY_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
_TEXT_KEYS = frozenset({"description", "pattern", "format"})
_NUMBER_KEYS = frozenset(
    {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "minItems"}
    | {"maxItems"}
)
_CHOICE_KEYS = ("anyOf", "oneOf", "allOf")


def clean_description(text: str) -> str:
    """Return a description without control characters, shortened."""
    cleaned = sanitise(text).strip()
    return cleaned if len(cleaned) <= MAX_DESCRIPTION else f"{cleaned[: MAX_DESCRIPTION - 1]}…"


def clean_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a tool's arguments as an object schema of limited size.

    References within the schema are replaced by what they refer to; other references are removed.
    """
    for depth, with_texts in ((MAX_DEPTH, True), (MAX_DEPTH, False), (2, False)):
        cleaned = _Cleaner(schema, depth, with_texts=with_texts).clean()
        if len(msgspec.json.encode(cleaned)) <= MAX_SCHEMA_BYTES:
            return cleaned
    return {"type": "object", "properties": {}}


class _Cleaner:
    """Cleans one schema. `budget` limits the number of nodes, because references can multiply them."""

    def __init__(self, schema: Mapping[str, Any], max_depth: int, *, with_texts: bool) -> None:
        self._root = schema
        self._max_depth = max_depth
        self._with_texts = with_texts
        self._budget = 2000

    def clean(self) -> dict[str, Any]:
        root = self._clean(self._root, 0)
        merged = dict(root.get("properties", {}))
        # Providers reject a choice at the top level; its properties become optional ones.
        for key in _CHOICE_KEYS:
            for choice in root.get(key, ()):
                merged = {**choice.get("properties", {}), **merged}
        required = [name for name in root.get("required", ()) if name in merged]
        cleaned: dict[str, Any] = {"type": "object", "properties": merged}
        return {**cleaned, "required": required} if required else cleaned

    def _clean(self, node: Any, depth: int) -> dict[str, Any]:
        self._budget -= 1
        if not isinstance(node, Mapping) or depth > self._max_depth or self._budget <= 0:
            return {}
        if "$ref" in node:
            target = self._resolve(node["$ref"])
            rest = {key: value for key, value in node.items() if key != "$ref"}
            return self._clean({**target, **rest}, depth + 1) if target is not None else self._clean(rest, depth)
        cleaned: dict[str, Any] = {}
        for key, value in node.items():
            cleaned |= self._clean_member(key, value, depth)
        if cleaned.get("type") == "array" and "items" not in cleaned:
            cleaned["items"] = {}  # required by some providers
        return cleaned

    def _clean_member(self, key: str, value: Any, depth: int) -> dict[str, Any]:
        match key:
            case "properties" if isinstance(value, Mapping):
                return {key: self._clean_properties(value, depth)}
            case "items" | "additionalProperties" if isinstance(value, Mapping):
                return {key: self._clean(value, depth + 1)}
            case "anyOf" | "oneOf" | "allOf" if isinstance(value, list):
                choices = [self._clean(choice, depth + 1) for choice in value[:MAX_CHOICES]]
                return {key: choices} if choices else {}
            case "description" if not self._with_texts:
                return {}
        return _clean_plain_member(key, value)

    def _clean_properties(self, properties: Mapping[str, Any], depth: int) -> dict[str, Any]:
        known = [(name, value) for name, value in properties.items() if _PROPERTY_NAME.fullmatch(name)]
        return {name: self._clean(value, depth + 1) for name, value in known[:MAX_PROPERTIES]}

    def _resolve(self, reference: Any) -> Mapping[str, Any] | None:
        """Return what a reference within the schema refers to, or None."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            return None
        node: Any = self._root
        for step in reference[1:].split("/")[1:]:
            node = node.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(node, Mapping) else None
        return node if isinstance(node, Mapping) else None


def _clean_plain_member(key: str, value: Any) -> dict[str, Any]:
    """Return a member that contains no schema, or nothing if it is unknown or invalid."""
    match key:
        case "type":
            return _clean_type(value)
        case "required" if isinstance(value, list):
            return {key: [name for name in value if isinstance(name, str) and _PROPERTY_NAME.fullmatch(name)]}
        case "enum" if isinstance(value, list):
            choices = [choice for choice in value if _is_scalar(choice)][:MAX_CHOICES]
            return {key: choices} if choices else {}  # providers reject an empty list
        case "const" | "default" if _is_scalar(value):
            return {key: value}
        case "additionalProperties" if isinstance(value, bool):
            return {key: value}
    if key in _NUMBER_KEYS and isinstance(value, int | float) and not isinstance(value, bool):
        return {key: value}
    return {key: sanitise(value)[:MAX_TEXT]} if key in _TEXT_KEYS and isinstance(value, str) else {}


def _clean_type(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        return {"type": value} if value in _TYPES else {}
    names = [name for name in value if isinstance(name, str) and name in _TYPES] if isinstance(value, list) else []
    return {"type": names} if names else {}


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float) or (isinstance(value, str) and len(value) <= MAX_TEXT)
