"""Headers that repeat arguments of a tool call (`x-mcp-header` in a schema), for remote servers of the modern era."""

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Any

ANNOTATION = "x-mcp-header"
PREFIX = "mcp-param-"
MAX_DEPTH = 20
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_TYPES = ("string", "integer", "boolean")

Path = tuple[str, ...]


def read_header_paths(schema: Any) -> dict[str, Path] | None:
    """Return the names of the headers with the path of their argument; None if an annotation is not valid."""
    paths: dict[str, Path] = {}
    for name, path, field in _annotated_properties(schema, ()):
        is_token = isinstance(name, str) and _TOKEN.fullmatch(name)
        if not is_token or field.get("type") not in _TYPES or name.lower() in paths:
            return None
        paths[name.lower()] = path
    return paths if len(paths) == _count_annotations(schema, 0) else None


def _annotated_properties(schema: Any, path: Path) -> Iterator[tuple[Any, Path, Mapping[str, Any]]]:
    """Yield the annotations that are reached through properties only."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict) or len(path) > MAX_DEPTH:
        return
    for key, field in properties.items():
        if isinstance(field, dict) and ANNOTATION in field:
            yield field[ANNOTATION], (*path, key), field
        yield from _annotated_properties(field, (*path, key))


def _count_annotations(value: Any, depth: int) -> int:
    """Return how many annotations a schema has, also in places where they are not allowed."""
    if depth > 2 * MAX_DEPTH:
        return 0
    if isinstance(value, dict):
        own = ANNOTATION in value and not isinstance(value[ANNOTATION], dict)
        return own + sum(_count_annotations(part, depth + 1) for part in value.values())
    return sum(_count_annotations(part, depth + 1) for part in value) if isinstance(value, list) else 0


def parameter_headers(paths: Mapping[str, Path], arguments: Any) -> list[tuple[str, str]]:
    """Return the headers of a call; arguments that are missing or null have none."""
    found = ((name, _value_at(arguments, path)) for name, path in paths.items())
    return [(PREFIX + name, header_value(value)) for name, value in found if value is not None]


def _value_at(arguments: Any, path: Path) -> str | None:
    for key in path:
        arguments = arguments.get(key) if isinstance(arguments, dict) else None
    match arguments:
        case bool():
            return "true" if arguments else "false"
        case int() | str():
            return str(arguments)
    return None


def header_value(text: str) -> str:
    """Return a value for a header; base64 if it is not plain text."""
    is_plain = text.isascii() and text.isprintable() and text == text.strip() and not text.startswith("=?base64?")
    return text if is_plain else f"=?base64?{base64.b64encode(text.encode('utf-8', 'replace')).decode()}?="
