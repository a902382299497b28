"""Validates values against the protocol's JSON Schema (the keywords it uses)."""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import msgspec

from ostler.core.package_data import read_data

Schema = dict[str, Any]

_TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "null": lambda value: value is None,
}


@cache
def definitions() -> dict[str, Schema]:
    """Return the definitions of protocol version 1 by name, without descriptions and `_meta`."""
    data: dict[str, Schema] = msgspec.json.decode(read_data("wire/acp_schema.json"))
    return data


def find_problems(schema: Schema | bool, value: Any, path: str = "") -> list[str]:
    """Return what is wrong with a value, each as a path and a short description."""
    if isinstance(schema, bool):
        return [] if schema else [f"{path or 'it'} is not allowed"]
    if "$ref" in schema:
        found = find_problems(definitions()[schema["$ref"].rpartition("/")[2]], value, path)
        if found:
            return found
    return list(_iter_problems(schema, value, path))


def _iter_problems(schema: Schema, value: Any, path: str) -> Iterator[str]:
    label = path or "it"
    if problem := _type_problem(schema, value):
        yield f"{label} {problem}"
        return
    if "const" in schema and value != schema["const"]:
        yield f"{label} is not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{label} is {value!r}; expected one of {', '.join(map(repr, schema['enum']))}"
    if isinstance(value, (int, float)) and value < schema.get("minimum", value):
        yield f"{label} is less than {schema['minimum']}"
    for part in schema.get("allOf", ()):
        yield from find_problems(part, value, path)
    for union in ("anyOf", "oneOf"):
        if union in schema:
            yield from _union_problems(schema[union], value, path)
    if "not" in schema and not find_problems(schema["not"], value, path):
        yield f"{label} has a value that is not allowed"
    if isinstance(value, dict):
        yield from _object_problems(schema, value, path)
    if isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            yield from find_problems(schema["items"], item, f"{path}[{index}]")


def _type_problem(schema: Schema, value: Any) -> str:
    expected = schema.get("type", ())
    expected = [expected] if isinstance(expected, str) else expected
    if not expected or any(_TYPES[name](value) for name in expected):
        return ""
    return f"is not {' or '.join(expected)}"


def _object_problems(schema: Schema, value: dict[str, Any], path: str) -> Iterator[str]:
    known = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{path or 'it'} has no {name}"
    for name, item in value.items():
        item_schema = known.get(name, schema.get("additionalProperties", True))
        yield from find_problems(item_schema, item, f"{path}.{name}" if path else name)


def _union_problems(branches: list[Schema], value: Any, path: str) -> list[str]:
    """Return nothing if a branch matches, else the problems of the branch that the value's constants select."""
    results = [(branch, find_problems(branch, value, path)) for branch in branches]
    if any(not problems for _, problems in results):
        return []
    selected = [problems for branch, problems in results if _matches_constants(branch, value)]
    if selected:
        return selected[0]
    values = [str(branch["const"]) for branch in branches if "const" in branch]
    if values and not isinstance(value, dict):
        return [f"{path or 'it'} is {value!r}; expected one of {', '.join(values)}"]
    discriminator = _discriminator(branches)
    if discriminator and isinstance(value, dict):
        name, constants = discriminator
        return [f"{path or 'it'} has {name} {value.get(name)!r}; expected one of {', '.join(constants)}"]
    return min((problems for _, problems in results), key=len)


def _matches_constants(branch: Schema, value: Any) -> bool:
    constants = {n: p["const"] for n, p in branch.get("properties", {}).items() if "const" in p}
    return isinstance(value, dict) and bool(constants) and all(value.get(n) == c for n, c in constants.items())


def _discriminator(branches: list[Schema]) -> tuple[str, list[str]] | None:
    """Return the property that distinguishes the branches and its possible values, if there is one."""
    found = [(n, p["const"]) for branch in branches for n, p in branch.get("properties", {}).items() if "const" in p]
    names = {name for name, _ in found}
    return (names.pop(), [str(constant) for _, constant in found]) if len(names) == 1 else None
