"""Converts arguments to the types of a tool's parameters where that is certain."""

import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from ostler.core.errors import ToolError
from ostler.core.tool_aliases import normalize_name
from ostler.core.tools import ToolSpec
from ostler.tools.aliases import IGNORED_ARGUMENTS
from ostler.tools.base_tool import describe_parameters, example_call, usual_parameters
from ostler.tools.repair_json import as_list, parse_lenient

Schema = Mapping[str, Any]


class RepairedArguments(msgspec.Struct):
    """Arguments, and notes about the repairs."""

    arguments: dict[str, Any]
    notes: list[str] = []


def convert_arguments(arguments: Mapping[str, Any], spec: ToolSpec, schema: Schema) -> RepairedArguments:
    """Convert the arguments to the parameter types of a tool; unknown arguments are dropped or raise `ToolError`."""
    properties: Schema | None = schema.get("properties")
    if properties is None:
        return RepairedArguments(dict(arguments))
    required = schema.get("required", ())
    matched, notes = _match_parameters(arguments, spec, properties)
    converted: dict[str, Any] = {}
    for name, value in matched.items():
        if value is None or (name not in required and _is_absent(value, properties[name])):
            continue
        new_value = _convert(value, properties[name], name, spec)
        if new_value is not value and new_value != value:
            old = f"{value!r:.40}" if _are_numbers(new_value, value) else describe_value(value)
            notes.append(f"{name} was {old}")
        converted[name] = new_value
    missing = [name for name in required if name not in converted]
    if missing:
        raise ToolError(f"{spec.name} needs {missing[0]}: send {example_call(spec)}", code="bad_arguments")
    return RepairedArguments(converted, notes)


def _are_numbers(*values: Any) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _match_parameters(
    arguments: Mapping[str, Any], spec: ToolSpec, properties: Schema
) -> tuple[dict[str, Any], list[str]]:
    """Return the arguments by parameter, and notes. Empty or ignored unknown arguments are dropped."""
    known = {name: value for name, value in arguments.items() if name in properties}
    unknown = {name: value for name, value in arguments.items() if name not in properties}
    notes: list[str] = []
    for name, value in unknown.items():
        parameter = _find_misspelt(name, value, unknown, known, spec)
        if parameter:
            known[parameter] = value
            notes.append(f"{name} for {parameter}")
        elif value is None or value is False or value in ("", [], {}) or normalize_name(name) in IGNORED_ARGUMENTS:
            notes.append(f"{name} ignored")
        else:
            raise _unknown_parameter_error(name, spec, properties)
    return known, notes


def _find_misspelt(name: str, value: Any, unknown: Schema, known: Schema, spec: ToolSpec) -> str | None:
    """Return the only missing parameter if the only unknown argument has a similar name, or is the only argument."""
    missing = [parameter for parameter in usual_parameters(spec) if parameter not in known]
    relevant = [
        other
        for other in unknown
        if normalize_name(other) not in IGNORED_ARGUMENTS and unknown[other] not in (None, "", False)
    ]
    if len(missing) != 1 or relevant != [name]:
        return None
    from ostler.text.closest_name import closest_name

    if closest_name(name, missing):
        return missing[0]
    is_only_argument = not spec.effects and len(usual_parameters(spec)) == 1 and isinstance(value, str) and not known
    return missing[0] if is_only_argument else None


def _unknown_parameter_error(name: str, spec: ToolSpec, properties: Schema) -> ToolError:
    from ostler.text.closest_name import closest_name

    suggestion = closest_name(name, properties)
    hint = f"; did you mean {suggestion}?" if suggestion else ";"
    return ToolError(f"{spec.name} takes no {name!r}{hint} it takes {describe_parameters(spec)}", code="bad_arguments")


def _is_absent(value: Any, schema: Schema) -> bool:
    """Return whether the value of an optional parameter means that it is absent."""
    return schema.get("type") != "string" and isinstance(value, str) and normalize_name(value) in _ABSENT_WORDS


_ABSENT_WORDS = frozenset({"", "null", "none", "undefined", "default", "nil"})
_TRUE_WORDS = frozenset({"true", "yes", "on", "1", "y"})
_FALSE_WORDS = frozenset({"false", "no", "off", "0", "n"})


def _convert(value: Any, schema: Schema, name: str, spec: ToolSpec) -> Any:
    kind = schema.get("type")
    convert = _CONVERTERS.get(kind) if isinstance(kind, str) else None  # a list of types accepts several
    converted = convert(value, schema) if convert else value
    if converted is None:
        scalars = {"integer": "a whole number", "number": "a number", "boolean": "true or false"}
        expected = {**scalars, "string": "a string", "array": "a list", "object": "an object"}[str(kind)]
        actual = f"{value!r:.40}" if _are_numbers(value) else describe_value(value)
        send = f": send {example_call(spec)}" if spec.schema.get("required") else ""
        raise ToolError(f"{name} must be {expected}, not {actual}{send}", code="bad_arguments")
    if "enum" in schema and converted not in schema["enum"]:
        return _match_enum(converted, schema["enum"], name)
    if kind == "array" and isinstance(converted, list):
        return _convert_items(converted, schema.get("items", {}), name, spec)
    return _clamp(converted, schema, name) if kind in ("integer", "number") else converted


def _to_text(value: Any, schema: Schema) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        return value[0]
    return None


def _to_number(value: Any, schema: Schema) -> int | float | None:
    if isinstance(value, str):
        value = _parse_number(value)
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < float("inf"):
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) or schema.get("type") == "number" else None


def _parse_number(text: str) -> int | float | None:
    match = re.fullmatch(r"\s*([+-]?\d{1,40})(\.\d{1,40})?\s*", text)
    if not match:
        return None
    return float(text) if match[2] else int(text)


def _to_bool(value: Any, schema: Schema) -> bool | None:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower() if isinstance(value, str | int | float) else ""
    return True if word in _TRUE_WORDS else False if word in _FALSE_WORDS else None


def _to_list(value: Any, schema: Schema) -> list[Any] | None:
    value = as_list(value)
    return value if isinstance(value, list) else None


def _to_object(value: Any, schema: Schema) -> dict[str, Any] | None:
    value = parse_lenient(value) if isinstance(value, str) else value
    return value if isinstance(value, dict) else None


_CONVERTERS = {
    "string": _to_text,
    "integer": _to_number,
    "number": _to_number,
    "boolean": _to_bool,
    "array": _to_list,
    "object": _to_object,
}


def _match_enum(value: Any, allowed: list[Any], name: str) -> Any:
    matching = [choice for choice in allowed if normalize_name(str(choice)) == normalize_name(str(value))]
    if matching:
        return matching[0]
    choices = ", ".join(map(str, allowed))
    raise ToolError(f"{name} is {value!r:.60}; it can be {choices}", code="bad_arguments")


def _convert_items(values: list[Any], schema: Schema, name: str, spec: ToolSpec) -> list[Any]:
    if schema.get("type") != "object":
        return values
    items = []
    for number, value in enumerate(values, 1):
        label = f"{name}[{number}] of {spec.name}"
        if not isinstance(value, dict):
            raise ToolError(f"{label} must be an object, as in {example_call(spec)}", code="bad_arguments")
        known = schema.get("properties", {})
        converted = {
            key: _convert(item, known[key], f"{name}[{number}].{key}", spec) if key in known else item
            for key, item in value.items()
            if item is not None
        }
        missing = [key for key in schema.get("required", ()) if key not in converted]
        if missing:
            raise ToolError(f"{label} needs {missing[0]}: send {example_call(spec)}", code="bad_arguments")
        items.append(converted)
    return items


def _clamp(value: Any, schema: Schema, name: str) -> Any:
    """Limit a number to the maximum. Raises `ToolError` if it is below the minimum."""
    maximum, minimum = schema.get("maximum"), schema.get("minimum")
    if minimum is not None and value < minimum:
        raise ToolError(f"{name} must be at least {minimum!r:.40}, not {value!r:.40}", code="bad_arguments")
    exclusive_minimum = schema.get("exclusiveMinimum")
    if exclusive_minimum is not None and value <= exclusive_minimum:
        raise ToolError(f"{name} must be more than {exclusive_minimum!r:.40}, not {value!r:.40}", code="bad_arguments")
    return maximum if maximum is not None and value > maximum else value


def describe_value(value: Any) -> str:
    """Return the type of a JSON value with its article, for messages."""
    kinds = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list"}
    return "null" if value is None else kinds.get(type(value), "an object")
