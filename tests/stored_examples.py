"""Compare what the program writes with the examples kept in `tests/data/stored`."""

import json
import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

STORED = Path(__file__).parent / "data" / "stored"
WRITE = "OSTLER_TESTS_WRITE_STORED"  # set it to rewrite the examples after an intended change
NOT_PINNED = frozenset(("$defs", "$ref", "title", "description", "discriminator"))
WALKED = frozenset(("anyOf", "properties", "required", "items", "prefixItems", "additionalProperties"))


def rewrite(path: Path, text: str) -> None:
    """Write an expected file, but only if the variable asks for it."""
    if os.environ.get(WRITE):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def check(name: str, value: Any) -> None:
    """Assert that a JSON value is the stored example of that name."""
    path = STORED / f"{name}.json"
    rewrite(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")
    assert value == json.loads(path.read_text("utf-8")), f"{path.name} differs: a stored or published name changed"


def field_names(value: Any, free: Collection[str] = ()) -> list[str]:
    """List the fields of a JSON value by their paths, such as `.items[].id`, without fields below a `free` name."""
    return sorted(set(_field_names(value, "", frozenset(free))))


def _field_names(value: Any, path: str, free: frozenset[str]) -> Iterator[str]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield f"{path}.{name}"
            if name not in free:
                yield from _field_names(item, f"{path}.{name}", free)
    elif isinstance(value, list):
        for item in value:
            yield from _field_names(item, f"{path}[]", free)


def schema_lines(schema: dict[str, Any]) -> list[str]:
    """List every property of a JSON Schema with its type, values and default, without the names of definitions.

    A path ends with `?` if the property is optional; `<tag>` names one member of a tagged union.
    """
    return sorted(set(_schema_lines(schema, "", schema.get("$defs", {}))))


def _schema_lines(schema: Any, path: str, definitions: dict[str, Any]) -> Iterator[str]:
    if isinstance(schema, bool):
        yield f"{path}: {json.dumps(schema)}"
        return
    while "$ref" in schema:
        schema = {**definitions[schema["$ref"].rpartition("/")[2]], **{k: v for k, v in schema.items() if k != "$ref"}}
    pinned = {key: value for key, value in schema.items() if key not in NOT_PINNED | WALKED}
    if "enum" in pinned:
        pinned["enum"] = sorted(pinned["enum"])
    if pinned:
        yield f"{path}: {json.dumps(pinned, sort_keys=True, ensure_ascii=False)}"
    for branch in schema.get("anyOf", ()):
        yield from _schema_lines(branch, path + _tag(branch, definitions), definitions)
    required = schema.get("required", ())
    for name, item in schema.get("properties", {}).items():
        yield from _schema_lines(item, f"{path}.{name}{'' if name in required else '?'}", definitions)
    for number, item in enumerate(schema.get("prefixItems", ())):
        yield from _schema_lines(item, f"{path}[{number}]", definitions)
    for key, suffix in (("items", "[]"), ("additionalProperties", ".*")):
        if key in schema:
            yield from _schema_lines(schema[key], path + suffix, definitions)


def _tag(schema: dict[str, Any], definitions: dict[str, Any]) -> str:
    named = definitions[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    values = named.get("properties", {}).get("type", {}).get("enum", ())
    return f"<{values[0]}>" if len(values) == 1 else ""
