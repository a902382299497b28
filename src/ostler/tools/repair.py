"""Reads the arguments of a call from any text that leaves no doubt what was meant, and says how to send the others."""

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
    """The object that a text stands for; a failure that says what to send when that is not certain."""
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
            return RepairedArguments(_as_only_argument(value, spec), [*notes, "a bare text for the arguments"])
        notes["JSON inside a text"] = None
    if isinstance(value, list) and len(value) == 1:
        notes["a list around the arguments"] = None
        value = value[0]
    if not isinstance(value, dict):
        raise _bad_arguments_error(spec, f"they are {describe_value(value)}")
    return RepairedArguments(value, list(notes))


def unwrap_arguments(arguments: dict[str, Any], spec: ToolSpec, tools: Mapping[str, Any]) -> RepairedArguments:
    """The arguments without a wrapper such as `{"name": …, "arguments": {…}}`."""
    known = spec.schema.get("properties", {})
    notes: list[str] = []
    for _ in range(_MAX_LAYERS):
        inner = _wrapped_value(arguments, known, spec.name, tools)
        if inner is None:
            break
        notes.append("a wrapper around the arguments")
        if isinstance(inner, str):
            mended = read_arguments(inner, spec)
            inner, notes = mended.arguments, [*notes, *mended.notes]
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
        return None  # the word is also one for a parameter, and no object is in it
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
        raise LenientJsonError(0, "they are bare words")
    reader = LenientJsonReader(text, start, allow_unclosed=not spec.effects)
    value = reader.read_value()
    if text[:start].strip():
        notes["words before the arguments"] = None
    _check_trailing_text(text, reader.position, value, notes)
    notes.update(reader.notes)
    return value


def _check_trailing_text(text: str, end: int, value: Any, notes: dict[str, None]) -> None:
    """What stands behind the object: nothing, brackets too many, the same again, or words; else it is not certain."""
    rest = text[end:].strip()
    if not rest:
        return
    if _CLOSERS.fullmatch(rest):
        notes["brackets too many"] = None
    elif not re.search(r"[{\[]", rest) and isinstance(value, dict):
        notes["words after the arguments"] = None
    elif _is_repetition(rest, value):
        notes["the arguments twice"] = None
    else:
        raise LenientJsonError(end, "there is more than one object; make one call for each")


def _is_repetition(rest: str, value: Any) -> bool:
    """Whether a text is nothing but the same value again."""
    reader = LenientJsonReader(rest)
    while not reader.is_at_end():
        if rest[reader.position] != "{" or reader.read_value() != value:
            return False
    return True


def _parse_without_braces(text: str, spec: ToolSpec) -> RepairedArguments | None:
    """`path="a", line=3`, perhaps in `name(…)`: taken when every name is one of the tool's."""
    called = _CALL_SYNTAX.fullmatch(text.strip().removesuffix(";").rstrip())
    reader = LenientJsonReader(called[1] if called else text)
    try:
        members = reader.read_members()
    except (LenientJsonError, RecursionError):
        return None
    known = spec.schema.get("properties", {})
    if not members or not all(name in known for name in rename_arguments(spec.name, members)):
        return None
    return RepairedArguments(members, ["arguments without braces"])


def _parse_bare_word(text: str, spec: ToolSpec) -> RepairedArguments | None:
    """`src/main.py` or `path: src/main.py`: a word by itself is the one argument of a tool that changes nothing."""
    found = _BARE_WORD.fullmatch(text)
    needed = _only_required(spec)
    if not found or not found[2].isprintable() or not needed or spec.effects:
        return None
    name, value = found.groups()
    if name and list(rename_arguments(spec.name, {name: value})) != [needed]:
        return None
    return RepairedArguments({needed: value}, ["a bare text for the arguments"])


def _only_required(spec: ToolSpec) -> str:
    """The one argument that a tool cannot do without, if there is just one and it is a text."""
    needed = spec.schema.get("required", ())
    return needed[0] if len(needed) == 1 and spec.schema["properties"][needed[0]].get("type") == "string" else ""


def _as_only_argument(text: str, spec: ToolSpec) -> dict[str, Any]:
    """A bare text in quotes is the one argument that a tool cannot do without."""
    needed = _only_required(spec)
    if needed and not spec.effects:
        return {needed: text}
    raise _bad_arguments_error(spec, "they are a text")


def _unreadable_error(spec: ToolSpec, text: str, error: LenientJsonError) -> ToolError:
    if error.truncated:
        size = " a long text goes in smaller pieces;" if len(text) > 2000 else ""
        return _bad_arguments_error(spec, f"they break off ({error.reason});{size} send the whole call again")
    near = text[max(error.position - 20, 0) : error.position + 20].replace("\n", "\\n")
    return _bad_arguments_error(spec, f"{error.reason}, near {near!r}")


def _bad_arguments_error(spec: ToolSpec, reason: str) -> ToolError:
    said = f"the arguments of {spec.name} are not a JSON object: {reason}"
    return ToolError(said, code="bad_arguments", hint=f"send them as {example_call(spec)}")
