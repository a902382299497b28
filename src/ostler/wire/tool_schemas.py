"""The JSON Schemas of tools in a manifest: what is accepted, and where their references lead."""

from typing import Any

MAX_DEPTH = 32
MAX_NODES = 5000
TYPES = ("string", "integer", "number", "boolean", "object", "array", "null")
_SCHEMA_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_SCHEMA_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_COUNTS = tuple(f"{end}{what}" for end in ("min", "max") for what in ("Length", "Items", "Properties", "Contains"))
_SCHEMAS = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")


class SchemaError(ValueError):
    """A schema that cannot be used; the message says why."""


def check_schema(schema: Any) -> None:
    """Raise `SchemaError` if this is not a JSON Schema of a limited size and depth."""
    walk = _SchemaWalk(schema)
    walk.walk(schema, 0)
    walk.walk_references()


def resolve_reference(root: Any, reference: Any) -> Any:
    """Return the part of a schema that a reference names. Raises `SchemaError` if it is not in this schema."""
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        raise SchemaError(f"the reference {str(reference)[:80]!r} leads out of the schema")
    node = root
    for part in reference.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(node, dict) or name not in node:
            raise SchemaError(f"the reference {reference[:80]!r} leads nowhere")
        node = node[name]
    if not isinstance(node, dict | bool):
        raise SchemaError(f"the reference {reference[:80]!r} is not a schema")
    return node


class _SchemaWalk:
    def __init__(self, root: Any) -> None:
        self._root = root
        self._nodes = 0
        self._references: dict[str, Any] = {}

    def walk_references(self) -> None:
        """Walk what references name, which need not be at a place for schemas."""
        walked = 0
        while walked < len(self._references):
            self.walk(tuple(self._references.values())[walked], 0)
            walked += 1

    def walk(self, node: Any, depth: int) -> None:
        self._nodes += 1
        if depth > MAX_DEPTH or self._nodes > MAX_NODES:
            raise SchemaError("the schema is nested too deeply or too large")
        if isinstance(node, bool):
            return
        if not isinstance(node, dict):
            raise SchemaError(f"{str(node)[:40]!r} is not a schema")
        self._check_values(node)
        for key in _SCHEMA_MAPS:
            for child in _mapping(node.get(key, {}), key).values():
                self.walk(child, depth + 1)
        for key in _SCHEMA_LISTS:
            for child in _list(node.get(key, []), key):
                self.walk(child, depth + 1)
        for key in _SCHEMAS:
            if key in node and not (key == "items" and isinstance(node[key], list)):
                self.walk(node[key], depth + 1)

        for child in _mapping(node.get("dependencies", {}), "dependencies").values():
            if isinstance(child, list):
                _names(child, "dependencies")
            else:
                self.walk(child, depth + 1)

    def _check_values(self, node: dict[str, Any]) -> None:
        types = node.get("type", [])
        for name in types if isinstance(types, list) else [types]:
            if name not in TYPES:
                raise SchemaError(f"{str(name)[:40]!r} is not a type")
        _names(node.get("required", []), "required")
        for names in _mapping(node.get("dependentRequired", {}), "dependentRequired").values():
            _names(names, "dependentRequired")
        _list(node.get("enum", []), "enum")
        if "$ref" in node:
            self._references.setdefault(node["$ref"], resolve_reference(self._root, node["$ref"]))
        if not isinstance(node.get("pattern", ""), str):
            raise SchemaError("`pattern` must be a text")
        for key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"):
            if key in node and not isinstance(node[key], int | float):
                raise SchemaError(f"`{key}` must be a number")
        for key in _COUNTS:
            if key in node and (not is_number(node[key]) or node[key] < 0):
                raise SchemaError(f"`{key}` must be a number of at least 0")


def is_number(value: Any) -> bool:
    """Return whether a JSON value is a number; true and false are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _mapping(value: Any, key: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise SchemaError(f"`{key}` must be an object")
    return value


def _list(value: Any, key: str) -> list[Any]:
    if not isinstance(value, list):
        raise SchemaError(f"`{key}` must be a list")
    return value


def _names(value: Any, key: str) -> None:
    if not all(isinstance(name, str) for name in _list(value, key)):
        raise SchemaError(f"`{key}` must be a list of names")
