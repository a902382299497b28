"""Repairs the arguments of a tool call where the intent is certain; otherwise says what to send."""

import json
import re
from collections.abc import Mapping
from typing import Any

from ostler.core.errors import ToolError
from ostler.core.tool_aliases import normalize_name, resolve_tool_name
from ostler.core.tools import ToolSpec
from ostler.tools.aliases import rename_arguments
from ostler.tools.base_tool import example_call
from ostler.tools.repair_json import LenientJsonError, LenientJsonReader
from ostler.tools.repair_types import RepairedArguments, Schema, describe_value

EMPTY_ARGUMENTS = frozenset({"", "{}", "null", "None", "[]", '""', "()", "undefined", "{ }"})
_MAX_LENGTH = 16 * 1024 * 1024
_MAX_LAYERS = 3
_LEADING_TEXT = re.compile(r"[^{\[\"'`]*")
_FENCE = re.compile(r"\s*```[\w-]*[ \t]*\n?(.*?)(?:```\s*|\Z)", re.DOTALL)
_CALL_SYNTAX = re.compile(r"(?:await )?[\w.]+\((.*)\)", re.DOTALL)
_BARE_WORD = re.compile(r"\s*(?:(\w+)\s*[=:]\s*)?([^\s{}\[\]()<>\"'`=:,;]+)\s*")
_OBJECT_START = re.compile(r"\s*(?:```\w*\s*)?[{\[]")
_CLOSERS = re.compile(r"[\s}\])`;.]*")
_WRAPPERS = frozenset(
    {"arguments", "args", "input", "parameters", "params", "kwargs", "toolinput", "toolargs", "function", "properties"}
)
_WRAPPER_METADATA = frozenset(
    {"name", "tool", "toolname", "type", "id", "callid", "toolcallid", "function", "recipientname"}
)


def read_arguments(raw: str, spec: ToolSpec) -> RepairedArguments:
    """Parse the arguments in a text. Raises `ToolError` that says what to send if the intent is not certain."""
    if raw.strip() in EMPTY_ARGUMENTS:
        return RepairedArguments({})
    if len(raw) > _MAX_LENGTH:
        raise _bad_arguments_error(spec, f"they have {len(raw):,} characters, which is too long")
    notes: dict[str, None] = {}
    value: Any = raw
    for _ in range(_MAX_LAYERS):
        value = _parse(value, spec, notes)
        if not isinstance(value, str):
            break
        if value.strip() in EMPTY_ARGUMENTS:
            return RepairedArguments({})
        if not value.lstrip().startswith(("{", "[", '"', "```")):
            return RepairedArguments(_as_only_argument(value, spec), [*notes, "a bare string as arguments"])
        notes["JSON in a string"] = None
    if isinstance(value, list) and len(value) == 1:
        notes["a list around the arguments"] = None
        value = value[0]
    if not isinstance(value, dict):
        raise _bad_arguments_error(spec, f"they are {describe_value(value)}")
    return RepairedArguments(value, list(notes))


def unwrap_arguments(arguments: dict[str, Any], spec: ToolSpec, tools: Mapping[str, Any]) -> RepairedArguments:
    """Remove wrappers such as `{"name": …, "arguments": {…}}` from the arguments."""
    known = spec.schema.get("properties", {})
    notes: list[str] = []
    for _ in range(_MAX_LAYERS):
        inner = _wrapped_value(arguments, known, spec.name, tools)
        if inner is None:
            break
        notes.append("a wrapper around the arguments")
        if isinstance(inner, str):
            repaired = read_arguments(inner, spec)
            inner, notes = repaired.arguments, [*notes, *repaired.notes]
        arguments = inner
    return RepairedArguments(arguments, notes[:4])


def _wrapped_value(arguments: dict[str, Any], known: Schema, tool: str, tools: Mapping[str, Any]) -> Any:
    keys = [key for key in arguments if key not in known and normalize_name(key) in _WRAPPERS]
    others = [key for key in arguments if normalize_name(key) not in _WRAPPER_METADATA | _WRAPPERS]
    if len(keys) != 1 or others or any(key in known for key in arguments):
        return None
    inner = arguments[keys[0]]
    if (
        isinstance(inner, str)
        and not _OBJECT_START.match(inner)
        and set(rename_arguments(tool, {keys[0]: inner})) <= set(known)
    ):
        return None  # the key is also the name of a parameter, and its value is not an object
    names = [
        arguments[key] for key in arguments if key != keys[0] and normalize_name(key) in ("name", "tool", "toolname")
    ]
    if any(isinstance(name, str) and resolve_tool_name(name, tools) not in (tool, None) for name in names):
        return None
    return inner if isinstance(inner, dict | str) else None


def _parse(text: str, spec: ToolSpec, notes: dict[str, None]) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    fenced = _FENCE.fullmatch(text)
    if fenced:
        notes["a code fence"] = None
        text = fenced[1]
    try:
        return _parse_leniently(text, spec, notes)
    except LenientJsonError as error:
        bare = _parse_without_braces(text, spec) or _parse_bare_word(text, spec)
        if bare is None:
            raise _unreadable_error(spec, text, error) from None
        notes.update(dict.fromkeys(bare.notes))
        return bare.arguments
    except RecursionError:
        raise _bad_arguments_error(spec, "they are nested too deeply") from None


def _parse_leniently(text: str, spec: ToolSpec, notes: dict[str, None]) -> Any:
    before = _LEADING_TEXT.match(text)
    start = before.end() if before else 0
    if start == len(text):
        raise LenientJsonError(0, "they are plain text")
    reader = LenientJsonReader(text, start, allow_unclosed=not spec.effects)
    value = reader.read_value()
    if text[:start].strip():
        notes["text before the arguments"] = None
    _check_trailing_text(text, reader.position, value, notes)
    notes.update(reader.notes)
    return value


def _check_trailing_text(text: str, end: int, value: Any, notes: dict[str, None]) -> None:
    """Accept extra brackets, text or the same object after the arguments. Raises for anything else."""
    rest = text[end:].strip()
    if not rest:
        return
    if _CLOSERS.fullmatch(rest):
        notes["extra brackets"] = None
    elif not re.search(r"[{\[]", rest) and isinstance(value, dict):
        notes["text after the arguments"] = None
    elif _is_repetition(rest, value):
        notes["repeated arguments"] = None
    else:
        raise LenientJsonError(end, "there is more than one object; make one call for each")


def _is_repetition(rest: str, value: Any) -> bool:
    """Return whether a text only repeats the value."""
    reader = LenientJsonReader(rest)
    while not reader.is_at_end():
        if rest[reader.position] != "{" or reader.read_value() != value:
            return False
    return True


def _parse_without_braces(text: str, spec: ToolSpec) -> RepairedArguments | None:
    """Parse `path="a", line=3`, also in `name(…)`, if every name is a parameter of the tool."""
    call = _CALL_SYNTAX.fullmatch(text.strip().removesuffix(";").rstrip())
    reader = LenientJsonReader(call[1] if call else text)
    try:
        members = reader.read_members()
    except (LenientJsonError, RecursionError):
        return None
    known = spec.schema.get("properties", {})
    if not members or not all(name in known for name in rename_arguments(spec.name, members)):
        return None
    return RepairedArguments(members, ["arguments without braces"])


def _parse_bare_word(text: str, spec: ToolSpec) -> RepairedArguments | None:
    """Parse `src/main.py` or `path: src/main.py` as the only required argument of a tool without side effects."""
    match = _BARE_WORD.fullmatch(text)
    required = _only_required(spec)
    if not match or not match[2].isprintable() or not required or spec.effects:
        return None
    name, value = match.groups()
    if name and list(rename_arguments(spec.name, {name: value})) != [required]:
        return None
    return RepairedArguments({required: value}, ["a bare string as arguments"])


def _only_required(spec: ToolSpec) -> str:
    """Return the only required parameter of a tool if it is a string, else an empty string."""
    required = spec.schema.get("required", ())
    if len(required) != 1 or spec.schema["properties"][required[0]].get("type") != "string":
        return ""
    return str(required[0])


def _as_only_argument(text: str, spec: ToolSpec) -> dict[str, Any]:
    """Return a quoted string as the only required argument. Raises `ToolError` if the tool has none."""
    required = _only_required(spec)
    if required and not spec.effects:
        return {required: text}
    raise _bad_arguments_error(spec, "they are a string")


def _unreadable_error(spec: ToolSpec, text: str, error: LenientJsonError) -> ToolError:
    if error.truncated:
        advice = " split long text into smaller calls;" if len(text) > 2000 else ""
        return _bad_arguments_error(spec, f"they are incomplete ({error.reason});{advice} send the complete call again")
    near = text[max(error.position - 20, 0) : error.position + 20].replace("\n", "\\n")
    return _bad_arguments_error(spec, f"{error.reason}, near {near!r}")


def _bad_arguments_error(spec: ToolSpec, reason: str) -> ToolError:
    message = f"the arguments of {spec.name} are not a JSON object: {reason}"
    return ToolError(message, code="bad_arguments", hint=f"send them as {example_call(spec)}")
