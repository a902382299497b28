"""Fits arguments to the parameters of a tool where that is certain, and says what to send where it is not."""

import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from ostler.tools.aliases import COMMENTARY
from ostler.tools.declared import example, usage, usual
from ostler.tools.repair_json import as_list, parsed
from ostler.vocabulary.errors import ToolFailure
from ostler.vocabulary.tool_names import fold
from ostler.vocabulary.tools import ToolSpec

Schema = Mapping[str, Any]


class Mended(msgspec.Struct):
    """Arguments as an object, and what had to be forgiven."""

    arguments: dict[str, Any]
    notes: list[str] = []


def fit(arguments: Mapping[str, Any], spec: ToolSpec, accepts: Schema) -> Mended:
    """The arguments with every value of the type its parameter has, and no others than the parameters."""
    properties: Schema | None = accepts.get("properties")
    if properties is None:
        return Mended(dict(arguments))
    needed = accepts.get("required", ())
    given, notes = _known(arguments, spec, properties)
    fitted: dict[str, Any] = {}
    for name, value in given.items():
        if value is None or (name not in needed and _says_nothing(value, properties[name])):
            continue
        made = _converted(value, properties[name], name, spec)
        if made is not value and made != value:
            notes.append(f"{name} was {value!r:.40}" if _are_numbers(made, value) else f"{name} was {kind_of(value)}")
        fitted[name] = made
    missing = [name for name in needed if name not in fitted]
    if missing:
        raise ToolFailure(f"{spec.name} needs {missing[0]}: send {example(spec)}", code="bad_arguments")
    return Mended(fitted, notes)


def _are_numbers(*values: Any) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _known(arguments: Mapping[str, Any], spec: ToolSpec, properties: Schema) -> tuple[dict[str, Any], list[str]]:
    """The arguments the tool has parameters for; others are left out when nothing depends on them."""
    given = {name: value for name, value in arguments.items() if name in properties}
    strange = {name: value for name, value in arguments.items() if name not in properties}
    notes: list[str] = []
    for name, value in strange.items():
        meant = _misspelt(name, value, strange, given, spec)
        if meant:
            given[meant] = value
            notes.append(f"{name} for {meant}")
        elif value is None or value is False or value in ("", [], {}) or fold(name) in COMMENTARY:
            notes.append(f"{name} left out")
        else:
            raise _unknown(name, spec, properties)
    return given, notes


def _misspelt(name: str, value: Any, strange: Schema, given: Schema, spec: ToolSpec) -> str | None:
    """The one parameter that is missing, when the one strange name is near it, or is all there is."""
    missing = [parameter for parameter in usual(spec) if parameter not in given]
    meant = [other for other in strange if fold(other) not in COMMENTARY and strange[other] not in (None, "", False)]
    if len(missing) != 1 or meant != [name]:
        return None
    from ostler.text.names import nearest

    if nearest(name, missing):
        return missing[0]
    alone = not spec.effects and len(usual(spec)) == 1 and isinstance(value, str) and not given
    return missing[0] if alone else None


def _unknown(name: str, spec: ToolSpec, properties: Schema) -> ToolFailure:
    from ostler.text.names import nearest

    near = nearest(name, properties)
    meant = f"; did you mean {near}?" if near else ";"
    return ToolFailure(f"{spec.name} takes no {name!r}{meant} it takes {usage(spec)}", code="bad_arguments")


def _says_nothing(value: Any, schema: Schema) -> bool:
    """Whether an optional value stands for its absence."""
    return schema.get("type") != "string" and isinstance(value, str) and fold(value) in _ABSENT


_ABSENT = frozenset({"", "null", "none", "undefined", "default", "nil"})
_YES = frozenset({"true", "yes", "on", "1", "y"})
_NO = frozenset({"false", "no", "off", "0", "n"})


def _converted(value: Any, schema: Schema, name: str, spec: ToolSpec) -> Any:
    kind = schema.get("type")
    made = _CONVERSIONS[kind](value, schema) if kind in _CONVERSIONS else value
    if made is None:
        article = {"integer": "a whole number", "number": "a number", "boolean": "true or false"}
        wanted = {**article, "string": "a text", "array": "a list", "object": "an object"}[str(kind)]
        is_now = f"{value!r:.40}" if _are_numbers(value) else kind_of(value)
        send = f": send {example(spec)}" if spec.schema.get("required") else ""
        raise ToolFailure(f"{name} must be {wanted}, and it is {is_now}{send}", code="bad_arguments")
    if "enum" in schema and made not in schema["enum"]:
        return _one_of(made, schema["enum"], name)
    if kind == "array" and isinstance(made, list):
        return _items(made, schema.get("items", {}), name, spec)
    return _in_range(made, schema, name) if kind in ("integer", "number") else made


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
        value = _number_in(value)
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < float("inf"):
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) or schema.get("type") == "number" else None


def _number_in(text: str) -> int | float | None:
    found = re.fullmatch(r"\s*([+-]?\d{1,40})(\.\d{1,40})?\s*", text)
    if not found:
        return None
    return float(text) if found[2] else int(text)


def _to_truth(value: Any, schema: Schema) -> bool | None:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower() if isinstance(value, str | int | float) else ""
    return True if word in _YES else False if word in _NO else None


def _to_list(value: Any, schema: Schema) -> list[Any] | None:
    value = as_list(value)
    return value if isinstance(value, list) else None


def _to_object(value: Any, schema: Schema) -> dict[str, Any] | None:
    value = parsed(value) if isinstance(value, str) else value
    return value if isinstance(value, dict) else None


_CONVERSIONS = {
    "string": _to_text,
    "integer": _to_number,
    "number": _to_number,
    "boolean": _to_truth,
    "array": _to_list,
    "object": _to_object,
}


def _one_of(value: Any, allowed: list[Any], name: str) -> Any:
    same = [word for word in allowed if fold(str(word)) == fold(str(value))]
    if same:
        return same[0]
    words = ", ".join(map(str, allowed))
    raise ToolFailure(f"{name} is {value!r:.60}; it can be {words}", code="bad_arguments")


def _items(values: list[Any], schema: Schema, name: str, spec: ToolSpec) -> list[Any]:
    if schema.get("type") != "object":
        return values
    items = []
    for place, value in enumerate(values, 1):
        part = msgspec.structs.replace(spec, name=f"{name}[{place}] of {spec.name}")
        if not isinstance(value, dict):
            raise ToolFailure(f"{part.name} must be an object, as in {example(spec)}", code="bad_arguments")
        known = schema.get("properties", {})
        fitted = {
            key: _converted(item, known[key], f"{name}[{place}].{key}", spec) if key in known else item
            for key, item in value.items()
            if item is not None
        }
        missing = [key for key in schema.get("required", ()) if key not in fitted]
        if missing:
            raise ToolFailure(f"{part.name} needs {missing[0]}: send {example(spec)}", code="bad_arguments")
        items.append(fitted)
    return items


def _in_range(value: Any, schema: Schema, name: str) -> Any:
    """A number beyond what is possible is as much as is possible; for one below it nobody can tell what is meant."""
    most, least = schema.get("maximum"), schema.get("minimum")
    if least is not None and value < least:
        raise ToolFailure(f"{name} must be at least {least}, and it is {value!r:.40}", code="bad_arguments")
    above = schema.get("exclusiveMinimum")
    if above is not None and value <= above:
        raise ToolFailure(f"{name} must be more than {above:g}, and it is {value!r:.40}", code="bad_arguments")
    return most if most is not None and value > most else value


def kind_of(value: Any) -> str:
    """What a value is, in a sentence."""
    kinds = {bool: "a truth value", int: "a number", float: "a number", str: "a text", list: "a list"}
    return "nothing" if value is None else kinds.get(type(value), "an object")
