"""Checks JSON values against a client's JSON Schema, without compiling code from it.

A schema comes from outside. It is interpreted in a limited number of steps, which every comparison uses up; patterns
run in linear time, and a reference leads only to another place of the same schema. Keywords that are not known here,
and patterns that cannot be checked in linear time, allow everything.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ostler.text.lazy_regex import encodable
from ostler.wire.tool_schemas import MAX_DEPTH, is_number, resolve_reference

MAX_STEPS = 300_000
PATTERN_MEMORY = 1 << 20  # bytes for a compiled pattern
STEPS_TO_COMPILE = 5000
CHECKS_IN_A_STEP = 120  # of one instruction of a pattern with one character
MAX_PATTERN = 1000
COMPARISONS_IN_A_STEP = 20  # of a choice with a text or number
_TYPES: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: is_number(value) and (isinstance(value, int) or value.is_integer()),
    "number": is_number,
    "boolean": lambda value: isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "null": lambda value: value is None,
}


class _TooComplexError(Exception):
    """The check needs more steps than are allowed."""


def find_mismatch(schema: Mapping[str, Any], value: Any) -> str:
    """Return why a value does not match a schema that `check_schema` accepted, or an empty string."""
    try:
        return _Check(schema).mismatch(schema, value, "", 0)
    except _TooComplexError:
        return "too complex to check"


class _Check:
    def __init__(self, root: Any) -> None:
        self._root = root
        self._steps = 0

    def mismatch(self, schema: Any, value: Any, path: str, depth: int) -> str:
        self._use(1)
        if depth > MAX_DEPTH * 2:
            raise _TooComplexError
        if isinstance(schema, bool):
            return "" if schema else f"{path or 'the arguments'}: not allowed"
        where = path or "the arguments"
        if "$ref" in schema:
            self._use(schema["$ref"].count("/"))
            problem = self.mismatch(resolve_reference(self._root, schema["$ref"]), value, path, depth + 1)
            if problem:
                return problem
        return (
            _check_type(schema, value, where)
            or self._check_choice(schema, value, where)
            or self._check_size(schema, value, where)
            or self._check_combinations(schema, value, path, depth)
            or self._check_members(schema, value, path, depth)
        )

    def _use(self, steps: int) -> None:
        self._steps += steps
        if self._steps > MAX_STEPS:
            raise _TooComplexError

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
        if "if" in schema:
            part = "else" if self.mismatch(schema["if"], value, path, depth + 1) else "then"
            return self.mismatch(schema.get(part, True), value, path, depth + 1)
        return ""

    def _check_members(self, schema: Mapping[str, Any], value: Any, path: str, depth: int) -> str:
        if isinstance(value, dict):
            return self._check_object(schema, value, path, depth)
        if isinstance(value, list):
            return self._check_array(schema, value, path, depth)
        return ""

    def _check_object(self, schema: Mapping[str, Any], value: dict[str, Any], path: str, depth: int) -> str:
        where = path or "the arguments"
        self._use(len(schema.get("required", ())))
        for name in schema.get("required", ()):
            if name not in value:
                return f"{where}: {name!r:.80} is missing"
        if problem := self._check_dependencies(schema, value, path, depth):
            return problem
        properties, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        for name, item in value.items():
            if self.mismatch(schema.get("propertyNames", True), name, path, depth + 1):
                return f"{where}: {name!r:.80} is not an allowed name"
            place = f"{path}.{name[:80]}" if path else name[:80]
            parts = [properties[name]] if name in properties else []
            parts += [part for pattern, part in patterns.items() if self._matches(pattern, name)]
            if not parts:
                parts = [schema.get("additionalProperties", True)]
                if parts == [False]:
                    return f"{where}: {name!r:.80} is not a known name"
            for part in parts:
                if problem := self.mismatch(part, item, place, depth + 1):
                    return problem
        return ""

    def _check_dependencies(self, schema: Mapping[str, Any], value: dict[str, Any], path: str, depth: int) -> str:
        """Check what the schema requires if a member is there: names, or that the object matches another schema."""
        for key in ("dependentRequired", "dependentSchemas", "dependencies"):
            for name, needed in schema.get(key, {}).items():
                self._use(1 + (len(needed) if isinstance(needed, list) else 0))
                if name not in value:
                    continue
                part = {"required": needed} if isinstance(needed, list) else needed
                if problem := self.mismatch(part, value, path, depth + 1):
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
        if "contains" in schema:
            count = sum(not self.mismatch(schema["contains"], item, path, depth + 1) for item in value)
            low, high = schema.get("minContains", 1), schema.get("maxContains", math.inf)
            if not low <= count <= high:
                return f"{path or 'the arguments'}: has {count} of the items that it must contain"
        if schema.get("uniqueItems") is True:
            self._use(len(value))
            if len({msgspec.json.encode(item, order="sorted") for item in value}) < len(value):
                return f"{path or 'the arguments'}: has an item twice"
        return ""

    def _check_choice(self, schema: Mapping[str, Any], value: Any, where: str) -> str:
        if "const" in schema and not self._equal(schema["const"], value):
            return f"{where}: must be {str(schema['const'])[:80]!r}"
        if "enum" in schema and not self._is_among(schema["enum"], value):
            return f"{where}: must be one of {', '.join(str(choice)[:40] for choice in schema['enum'][:20])}"
        return ""

    def _is_among(self, choices: list[Any], value: Any) -> bool:
        if isinstance(value, dict | list):
            return any(self._equal(choice, value) for choice in choices)
        self._use(len(choices) // COMPARISONS_IN_A_STEP)
        return any(self._equal(choice, value) for choice in [choice for choice in choices if choice == value])

    def _check_size(self, schema: Mapping[str, Any], value: Any, where: str) -> str:
        if isinstance(value, str):
            if "pattern" in schema and not self._matches(schema["pattern"], value):
                return f"{where}: must match {schema['pattern'][:80]!r}"
            return _check_count(schema, len(value), "Length", "characters", where)
        if isinstance(value, list):
            return _check_count(schema, len(value), "Items", "items", where)
        if isinstance(value, dict):
            return _check_count(schema, len(value), "Properties", "members", where)
        return _check_number(schema, value, where) if is_number(value) else ""

    def _matches(self, pattern: str, text: str) -> bool:
        """Return whether a text matches a pattern, or the pattern cannot be checked."""
        if pattern not in _PATTERNS:
            self._use(STEPS_TO_COMPILE)
        compiled = _compile(pattern)
        if compiled is None:
            return True
        self._use(1 + compiled.programsize * len(text) // CHECKS_IN_A_STEP)
        return compiled.search(encodable(text)) is not None

    def _equal(self, left: Any, right: Any) -> bool:
        """Compare JSON values, for which true is not 1."""
        self._use(1)
        if isinstance(left, bool) or isinstance(right, bool):
            return left is right
        if isinstance(left, dict) and isinstance(right, dict):
            return left.keys() == right.keys() and all(self._equal(left[key], right[key]) for key in left)
        if isinstance(left, list) and isinstance(right, list):
            return len(left) == len(right) and all(map(self._equal, left, right))
        return bool(left == right) and (type(left) is type(right) or (is_number(left) and is_number(right)))


def _check_type(schema: Mapping[str, Any], value: Any, where: str) -> str:
    if "type" not in schema:
        return ""
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return "" if any(_TYPES[name](value) for name in types) else f"{where}: must be {' or '.join(types)}"


def _check_count(schema: Mapping[str, Any], count: int, key: str, unit: str, where: str) -> str:
    if count < schema.get(f"min{key}", 0):
        return f"{where}: must have at least {schema[f'min{key}']} {unit}"
    if count > schema.get(f"max{key}", math.inf):
        return f"{where}: must have at most {schema[f'max{key}']} {unit}"
    return ""


def _check_number(schema: Mapping[str, Any], value: float, where: str) -> str:
    low, high = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if value < schema.get("minimum", -math.inf) or (is_number(low) and low is not None and value <= low):
        return f"{where}: too small"
    if value > schema.get("maximum", math.inf) or (is_number(high) and high is not None and value >= high):
        return f"{where}: too large"
    step = schema.get("multipleOf")
    if is_number(step) and step and not _is_multiple(value, step):
        return f"{where}: must be a multiple of {step}"
    return ""


def _is_multiple(value: float, step: float) -> bool:
    from fractions import Fraction

    try:
        return Fraction(str(value)) % Fraction(str(step)) == 0  # exact, as the decimal numbers that JSON has
    except ValueError:  # infinite, such as 1e999, or an integer of thousands of digits
        return False


_PATTERNS: dict[str, Any] = {}


def _compile(pattern: str) -> Any:
    """Compile a pattern for an engine that runs in linear time. Return None if it cannot."""
    if len(pattern) > MAX_PATTERN:
        return None
    if pattern not in _PATTERNS:
        import re2

        options = re2.Options()
        options.log_errors = False
        options.max_mem = PATTERN_MEMORY
        if len(_PATTERNS) > 1000:
            _PATTERNS.clear()
        try:
            _PATTERNS[pattern] = re2.compile(pattern, options)
        except (re2.error, UnicodeEncodeError):
            _PATTERNS[pattern] = None
    return _PATTERNS[pattern]
