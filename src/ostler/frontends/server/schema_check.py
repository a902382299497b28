"""Checks JSON values against a client's JSON Schema, without compiling code from it.

A schema comes from outside. It is interpreted in a limited number of steps, patterns run in linear time, and a
reference leads only to another place of the same schema. Keywords that are not known here allow everything.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

MAX_DEPTH = 32
MAX_STEPS = 100_000
_TYPES: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: _is_number(value) and float(value).is_integer() if _is_finite(value) else False,
    "number": lambda value: _is_number(value),
    "boolean": lambda value: isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "null": lambda value: value is None,
}
_SCHEMA_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_SCHEMA_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SCHEMAS = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")


class SchemaError(ValueError):
    """A schema that cannot be used; the message says why."""


def check_schema(schema: Any) -> None:
    """Raise `SchemaError` if this is not a schema that `find_mismatch` can check."""
    _SchemaWalk(schema).walk(schema, 0)


def find_mismatch(schema: Mapping[str, Any], value: Any) -> str:
    """Return why a value does not match a checked schema, or an empty string."""
    return _Check(schema).mismatch(schema, value, "", 0)


class _SchemaWalk:
    def __init__(self, root: Any) -> None:
        self._root = root
        self._nodes = 0

    def walk(self, node: Any, depth: int) -> None:
        self._nodes += 1
        if depth > MAX_DEPTH or self._nodes > 5000:
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

    def _check_values(self, node: dict[str, Any]) -> None:
        types = node.get("type", [])
        for name in types if isinstance(types, list) else [types]:
            if not isinstance(name, str) or name not in _TYPES:
                raise SchemaError(f"{str(name)[:40]!r} is not a type")
        if not all(isinstance(name, str) for name in _list(node.get("required", []), "required")):
            raise SchemaError("`required` must be a list of names")
        _list(node.get("enum", []), "enum")
        if "$ref" in node:
            _resolve(self._root, node["$ref"])
        for pattern in [node.get("pattern", ""), *_mapping(node.get("patternProperties", {}), "patternProperties")]:
            _compile(pattern)
        for key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"):
            if key in node and not _is_number(node[key]) and not isinstance(node[key], bool):
                raise SchemaError(f"`{key}` must be a number")
        for key in ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"):
            if key in node and (not _is_number(node[key]) or node[key] < 0):
                raise SchemaError(f"`{key}` must be a number of at least 0")


class _Check:
    def __init__(self, root: Any) -> None:
        self._root = root
        self._steps = 0

    def mismatch(self, schema: Any, value: Any, path: str, depth: int) -> str:
        self._steps += 1
        if depth > MAX_DEPTH * 2 or self._steps > MAX_STEPS:
            return f"{path or 'the arguments'}: too complex to check"
        if isinstance(schema, bool):
            return "" if schema else f"{path or 'the arguments'}: not allowed"
        where = path or "the arguments"
        if "$ref" in schema:
            problem = self.mismatch(_resolve(self._root, schema["$ref"]), value, path, depth + 1)
            if problem:
                return problem
        return (
            _check_type(schema, value, where)
            or _check_choice(schema, value, where)
            or _check_size(schema, value, where)
            or self._check_combinations(schema, value, path, depth)
            or self._check_members(schema, value, path, depth)
        )

    def _check_combinations(self, schema: Mapping[str, Any], value: Any, path: str, depth: int) -> str:
        where = path or "the arguments"
        for part in schema.get("allOf", ()):
            if problem := self.mismatch(part, value, path, depth + 1):
                return problem
        for key in ("anyOf", "oneOf"):
            if key not in schema:
                continue
            problems = [self.mismatch(part, value, path, depth + 1) for part in schema[key]]
            matches = problems.count("")
            if not matches:
                return problems[0] if len(problems) == 1 else f"{where}: matches none of the {len(problems)} choices"
            if key == "oneOf" and matches > 1:
                return f"{where}: matches {matches} of the choices, not one"
        if "not" in schema and not self.mismatch(schema["not"], value, path, depth + 1):
            return f"{where}: not allowed"
        return ""

    def _check_members(self, schema: Mapping[str, Any], value: Any, path: str, depth: int) -> str:
        if isinstance(value, dict):
            return self._check_object(schema, value, path, depth)
        if isinstance(value, list):
            return self._check_array(schema, value, path, depth)
        return ""

    def _check_object(self, schema: Mapping[str, Any], value: dict[str, Any], path: str, depth: int) -> str:
        where = path or "the arguments"
        for name in schema.get("required", ()):
            if name not in value:
                return f"{where}: {name!r:.80} is missing"
        properties, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        for name, item in value.items():
            place = f"{path}.{name[:80]}" if path else name[:80]
            parts = [properties[name]] if name in properties else []
            parts += [part for pattern, part in patterns.items() if _compile(pattern).search(name)]
            if not parts:
                parts = [schema.get("additionalProperties", True)]
                if parts == [False]:
                    return f"{where}: {name!r:.80} is not a known name"
            for part in parts:
                if problem := self.mismatch(part, item, place, depth + 1):
                    return problem
        return ""

    def _check_array(self, schema: Mapping[str, Any], value: list[Any], path: str, depth: int) -> str:
        items, first = schema.get("items", True), list(schema.get("prefixItems", ()))
        if isinstance(items, list):
            items, first = schema.get("additionalItems", True), items
        for index, item in enumerate(value):
            part = first[index] if index < len(first) else items
            if problem := self.mismatch(part, item, f"{path}[{index}]", depth + 1):
                return problem
        if schema.get("uniqueItems") is True:
            seen: list[Any] = []
            for item in value[:1000]:
                if any(_equal(item, other) for other in seen):
                    return f"{path or 'the arguments'}: has an item twice"
                seen.append(item)
        return ""


def _check_type(schema: Mapping[str, Any], value: Any, where: str) -> str:
    if "type" not in schema:
        return ""
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return "" if any(_TYPES[name](value) for name in types) else f"{where}: must be {' or '.join(types)}"


def _check_choice(schema: Mapping[str, Any], value: Any, where: str) -> str:
    if "const" in schema and not _equal(schema["const"], value):
        return f"{where}: must be {str(schema['const'])[:80]!r}"
    if "enum" in schema and not any(_equal(choice, value) for choice in schema["enum"]):
        return f"{where}: must be one of {', '.join(str(choice)[:40] for choice in schema['enum'][:20])}"
    return ""


def _check_size(schema: Mapping[str, Any], value: Any, where: str) -> str:
    if isinstance(value, str):
        if "pattern" in schema and not _compile(schema["pattern"]).search(value):
            return f"{where}: must match {schema['pattern'][:80]!r}"
        return _check_count(schema, len(value), "Length", "characters", where)
    if isinstance(value, list):
        return _check_count(schema, len(value), "Items", "items", where)
    if isinstance(value, dict):
        return _check_count(schema, len(value), "Properties", "members", where)
    return _check_number(schema, value, where) if _is_number(value) else ""


def _check_count(schema: Mapping[str, Any], count: int, key: str, unit: str, where: str) -> str:
    if count < schema.get(f"min{key}", 0):
        return f"{where}: must have at least {schema[f'min{key}']} {unit}"
    if count > schema.get(f"max{key}", math.inf):
        return f"{where}: must have at most {schema[f'max{key}']} {unit}"
    return ""


def _check_number(schema: Mapping[str, Any], value: float, where: str) -> str:
    low, high = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if value < schema.get("minimum", -math.inf) or (_is_number(low) and low is not None and value <= low):
        return f"{where}: too small"
    if value > schema.get("maximum", math.inf) or (_is_number(high) and high is not None and value >= high):
        return f"{where}: too large"
    step = schema.get("multipleOf")
    if _is_number(step) and step and _is_finite(value) and abs(value / step - round(value / step)) > 1e-9:
        return f"{where}: must be a multiple of {step}"
    return ""


def _resolve(root: Any, reference: Any) -> Any:
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


_PATTERNS: dict[str, Any] = {}


def _compile(pattern: Any) -> Any:
    """Compile a pattern for an engine that runs in linear time."""
    if not isinstance(pattern, str) or len(pattern) > 1000:
        raise SchemaError("a pattern must be a short text")
    if pattern not in _PATTERNS:
        import re2

        options = re2.Options()
        options.log_errors = False
        if len(_PATTERNS) > 1000:
            _PATTERNS.clear()
        try:
            _PATTERNS[pattern] = re2.compile(pattern, options)
        except re2.error as error:
            raise SchemaError(f"the pattern {pattern[:80]!r} is not supported: {str(error)[:80]}") from None
    return _PATTERNS[pattern]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_finite(value: Any) -> bool:
    return _is_number(value) and (isinstance(value, int) or math.isfinite(value))


def _equal(left: Any, right: Any) -> bool:
    """Compare JSON values, for which true is not 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_equal(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_equal, left, right))
    return left == right and (type(left) is type(right) or (_is_number(left) and _is_number(right)))


def _mapping(value: Any, key: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise SchemaError(f"`{key}` must be an object")
    return value


def _list(value: Any, key: str) -> list[Any]:
    if not isinstance(value, list):
        raise SchemaError(f"`{key}` must be a list")
    return value
