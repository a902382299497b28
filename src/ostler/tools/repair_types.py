"""Fits arguments to the parameters of a tool where that is certain, and says what to send where it is not."""

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
    """Arguments as an object, and what had to be forgiven."""

    arguments: dict[str, Any]
    notes: list[str] = []


def convert_arguments(arguments: Mapping[str, Any], spec: ToolSpec, schema: Schema) -> RepairedArguments:
    """The arguments with every value of the type its parameter has, and no others than the parameters."""
    properties: Schema | None = schema.get("properties")
    if properties is None:
        return RepairedArguments(dict(arguments))
    needed = schema.get("required", ())
    given, notes = _match_parameters(arguments, spec, properties)
    fitted: dict[str, Any] = {}
    for name, value in given.items():
        if value is None or (name not in needed and _is_absent(value, properties[name])):
            continue
        made = _convert(value, properties[name], name, spec)
        if made is not value and made != value:
            notes.append(
                f"{name} was {value!r:.40}" if _are_numbers(made, value) else f"{name} was {describe_value(value)}"
            )
        fitted[name] = made
    missing = [name for name in needed if name not in fitted]
    if missing:
        raise ToolError(f"{spec.name} needs {missing[0]}: send {example_call(spec)}", code="bad_arguments")
    return RepairedArguments(fitted, notes)


def _are_numbers(*values: Any) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _match_parameters(
    arguments: Mapping[str, Any], spec: ToolSpec, properties: Schema
) -> tuple[dict[str, Any], list[str]]:
    """The arguments the tool has parameters for; others are left out when nothing depends on them."""
    given = {name: value for name, value in arguments.items() if name in properties}
    strange = {name: value for name, value in arguments.items() if name not in properties}
    notes: list[str] = []
    for name, value in strange.items():
        meant = _find_misspelt(name, value, strange, given, spec)
        if meant:
            given[meant] = value
            notes.append(f"{name} for {meant}")
        elif value is None or value is False or value in ("", [], {}) or normalize_name(name) in IGNORED_ARGUMENTS:
            notes.append(f"{name} left out")
        else:
            raise _unknown_parameter_error(name, spec, properties)
    return given, notes


def _find_misspelt(name: str, value: Any, unknown: Schema, known: Schema, spec: ToolSpec) -> str | None:
    """The one parameter that is missing, when the one strange name is near it, or is all there is."""
    missing = [parameter for parameter in usual_parameters(spec) if parameter not in known]
    meant = [
        other
        for other in unknown
        if normalize_name(other) not in IGNORED_ARGUMENTS and unknown[other] not in (None, "", False)
    ]
    if len(missing) != 1 or meant != [name]:
        return None
    from ostler.text.closest_name import closest_name

    if closest_name(name, missing):
        return missing[0]
    alone = not spec.effects and len(usual_parameters(spec)) == 1 and isinstance(value, str) and not known
    return missing[0] if alone else None


def _unknown_parameter_error(name: str, spec: ToolSpec, properties: Schema) -> ToolError:
    from ostler.text.closest_name import closest_name

    near = closest_name(name, properties)
    meant = f"; did you mean {near}?" if near else ";"
    return ToolError(f"{spec.name} takes no {name!r}{meant} it takes {describe_parameters(spec)}", code="bad_arguments")


def _is_absent(value: Any, schema: Schema) -> bool:
    """Whether an optional value stands for its absence."""
    return schema.get("type") != "string" and isinstance(value, str) and normalize_name(value) in _ABSENT_WORDS


_ABSENT_WORDS = frozenset({"", "null", "none", "undefined", "default", "nil"})
_TRUE_WORDS = frozenset({"true", "yes", "on", "1", "y"})
_FALSE_WORDS = frozenset({"false", "no", "off", "0", "n"})


def _convert(value: Any, schema: Schema, name: str, spec: ToolSpec) -> Any:
    kind = schema.get("type")
    made = _CONVERTERS[kind](value, schema) if kind in _CONVERTERS else value
    if made is None:
        article = {"integer": "a whole number", "number": "a number", "boolean": "true or false"}
        wanted = {**article, "string": "a text", "array": "a list", "object": "an object"}[str(kind)]
        is_now = f"{value!r:.40}" if _are_numbers(value) else describe_value(value)
        send = f": send {example_call(spec)}" if spec.schema.get("required") else ""
        raise ToolError(f"{name} must be {wanted}, and it is {is_now}{send}", code="bad_arguments")
    if "enum" in schema and made not in schema["enum"]:
        return _match_enum(made, schema["enum"], name)
    if kind == "array" and isinstance(made, list):
        return _convert_items(made, schema.get("items", {}), name, spec)
    return _clamp(made, schema, name) if kind in ("integer", "number") else made


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
    found = re.fullmatch(r"\s*([+-]?\d{1,40})(\.\d{1,40})?\s*", text)
    if not found:
        return None
    return float(text) if found[2] else int(text)


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
    same = [word for word in allowed if normalize_name(str(word)) == normalize_name(str(value))]
    if same:
        return same[0]
    words = ", ".join(map(str, allowed))
    raise ToolError(f"{name} is {value!r:.60}; it can be {words}", code="bad_arguments")


def _convert_items(values: list[Any], schema: Schema, name: str, spec: ToolSpec) -> list[Any]:
    if schema.get("type") != "object":
        return values
    items = []
    for place, value in enumerate(values, 1):
        part = msgspec.structs.replace(spec, name=f"{name}[{place}] of {spec.name}")
        if not isinstance(value, dict):
            raise ToolError(f"{part.name} must be an object, as in {example_call(spec)}", code="bad_arguments")
        known = schema.get("properties", {})
        fitted = {
            key: _convert(item, known[key], f"{name}[{place}].{key}", spec) if key in known else item
            for key, item in value.items()
            if item is not None
        }
        missing = [key for key in schema.get("required", ()) if key not in fitted]
        if missing:
            raise ToolError(f"{part.name} needs {missing[0]}: send {example_call(spec)}", code="bad_arguments")
        items.append(fitted)
    return items


def _clamp(value: Any, schema: Schema, name: str) -> Any:
    """A number beyond what is possible is as much as is possible; for one below it nobody can tell what is meant."""
    most, least = schema.get("maximum"), schema.get("minimum")
    if least is not None and value < least:
        raise ToolError(f"{name} must be at least {least}, and it is {value!r:.40}", code="bad_arguments")
    above = schema.get("exclusiveMinimum")
    if above is not None and value <= above:
        raise ToolError(f"{name} must be more than {above:g}, and it is {value!r:.40}", code="bad_arguments")
    return most if most is not None and value > most else value


def describe_value(value: Any) -> str:
    """What a value is, in a sentence."""
    kinds = {bool: "a truth value", int: "a number", float: "a number", str: "a text", list: "a list"}
    return "nothing" if value is None else kinds.get(type(value), "an object")
