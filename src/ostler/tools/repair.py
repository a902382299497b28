"""Reads the arguments of a call from any text that leaves no doubt what was meant, and says how to send the others."""

import json
import re
from collections.abc import Mapping
from typing import Any

from ostler.tools.aliases import renamed
from ostler.tools.declared import example
from ostler.tools.repair_fit import Mended, Schema, kind_of
from ostler.tools.repair_json import Loose, NotReadable
from ostler.vocabulary.errors import ToolFailure
from ostler.vocabulary.tool_names import find_name, fold
from ostler.vocabulary.tools import ToolSpec

NOTHING = frozenset({"", "{}", "null", "None", "[]", '""', "()", "undefined", "{ }"})
_LONGEST = 16 * 1024 * 1024
_MOST_LAYERS = 3
_BEFORE = re.compile(r"[^{\[\"'`]*")
_FENCE = re.compile(r"\s*```[\w-]*[ \t]*\n?(.*?)(?:```\s*|\Z)", re.DOTALL)
_CALL = re.compile(r"(?:await )?[\w.]+\((.*)\)", re.DOTALL)
_WORD = re.compile(r"\s*(?:(\w+)\s*[=:]\s*)?([^\s{}\[\]()<>\"'`=:,;]+)\s*")
_ASSIGNED = re.compile(r"\s*(?:```\w*\s*)?[{\[]")
_CLOSERS = re.compile(r"[\s}\])`;.]*")
_WRAPPERS = frozenset(
    {"arguments", "args", "input", "parameters", "params", "kwargs", "toolinput", "toolargs", "function", "properties"}
)
_BESIDE = frozenset({"name", "tool", "toolname", "type", "id", "callid", "toolcallid", "function", "recipientname"})


def read_arguments(raw: str, spec: ToolSpec) -> Mended:
    """The object that a text stands for; a failure that says what to send when that is not certain."""
    if raw.strip() in NOTHING:
        return Mended({})
    if len(raw) > _LONGEST:
        raise _failure(spec, f"they have {len(raw):,} characters, which is too long")
    notes: dict[str, None] = {}
    value: Any = raw
    for _ in range(_MOST_LAYERS):
        value = _read(value, spec, notes)
        if not isinstance(value, str):
            break
        if value.strip() in NOTHING:
            return Mended({})
        if not value.lstrip().startswith(("{", "[", '"', "```")):
            return Mended(_only_argument(value, spec), [*notes, "a bare text for the arguments"])
        notes["JSON inside a text"] = None
    if isinstance(value, list) and len(value) == 1:
        notes["a list around the arguments"] = None
        value = value[0]
    if not isinstance(value, dict):
        raise _failure(spec, f"they are {kind_of(value)}")
    return Mended(value, list(notes))


def unwrapped(arguments: dict[str, Any], spec: ToolSpec, tools: Mapping[str, Any]) -> Mended:
    """The arguments without a wrapper such as `{"name": …, "arguments": {…}}`."""
    known = spec.schema.get("properties", {})
    notes: list[str] = []
    for _ in range(_MOST_LAYERS):
        inner = _inside(arguments, known, spec.name, tools)
        if inner is None:
            break
        notes.append("a wrapper around the arguments")
        if isinstance(inner, str):
            mended = read_arguments(inner, spec)
            inner, notes = mended.arguments, [*notes, *mended.notes]
        arguments = inner
    return Mended(arguments, notes[:4])


def _inside(arguments: dict[str, Any], known: Schema, tool: str, tools: Mapping[str, Any]) -> Any:
    keys = [key for key in arguments if key not in known and fold(key) in _WRAPPERS]
    others = [key for key in arguments if fold(key) not in _BESIDE | _WRAPPERS]
    if len(keys) != 1 or others or any(key in known for key in arguments):
        return None
    inner = arguments[keys[0]]
    if isinstance(inner, str) and not _ASSIGNED.match(inner) and set(renamed(tool, {keys[0]: inner})) <= set(known):
        return None  # the word is also one for a parameter, and no object is in it
    names = [arguments[key] for key in arguments if key != keys[0] and fold(key) in ("name", "tool", "toolname")]
    if any(isinstance(name, str) and find_name(name, tools) not in (tool, None) for name in names):
        return None
    return inner if isinstance(inner, dict | str) else None


def _read(text: str, spec: ToolSpec, notes: dict[str, None]) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    fenced = _FENCE.fullmatch(text)
    if fenced:
        notes["a code fence"] = None
        text = fenced[1]
    try:
        return _loosely(text, spec, notes)
    except NotReadable as error:
        bare = _without_braces(text, spec) or _bare(text, spec)
        if bare is None:
            raise _unreadable(spec, text, error) from None
        notes.update(dict.fromkeys(bare.notes))
        return bare.arguments
    except RecursionError:
        raise _failure(spec, "they are nested too deeply") from None


def _loosely(text: str, spec: ToolSpec, notes: dict[str, None]) -> Any:
    before = _BEFORE.match(text)
    start = before.end() if before else 0
    if start == len(text):
        raise NotReadable(0, "they are bare words")
    reader = Loose(text, start, close=not spec.effects)
    value = reader.value()
    if text[:start].strip():
        notes["words before the arguments"] = None
    _check_rest(text, reader.at, value, notes)
    notes.update(reader.notes)
    return value


def _check_rest(text: str, at: int, value: Any, notes: dict[str, None]) -> None:
    """What stands behind the object: nothing, brackets too many, the same again, or words; else it is not certain."""
    rest = text[at:].strip()
    if not rest:
        return
    if _CLOSERS.fullmatch(rest):
        notes["brackets too many"] = None
    elif not re.search(r"[{\[]", rest) and isinstance(value, dict):
        notes["words after the arguments"] = None
    elif _only_again(rest, value):
        notes["the arguments twice"] = None
    else:
        raise NotReadable(at, "there is more than one object; make one call for each")


def _only_again(rest: str, value: Any) -> bool:
    """Whether a text is nothing but the same value again."""
    reader = Loose(rest)
    while not reader.ended():
        if rest[reader.at] != "{" or reader.value() != value:
            return False
    return True


def _without_braces(text: str, spec: ToolSpec) -> Mended | None:
    """`path="a", line=3`, perhaps in `name(…)`: taken when every name is one of the tool's."""
    called = _CALL.fullmatch(text.strip().removesuffix(";").rstrip())
    reader = Loose(called[1] if called else text)
    try:
        members = reader.members()
    except (NotReadable, RecursionError):
        return None
    known = spec.schema.get("properties", {})
    if not members or not all(name in known for name in renamed(spec.name, members)):
        return None
    return Mended(members, ["arguments without braces"])


def _bare(text: str, spec: ToolSpec) -> Mended | None:
    """`src/main.py` or `path: src/main.py`: a word by itself is the one argument of a tool that changes nothing."""
    found = _WORD.fullmatch(text)
    needed = _only_needed(spec)
    if not found or not found[2].isprintable() or not needed or spec.effects:
        return None
    name, value = found.groups()
    if name and list(renamed(spec.name, {name: value})) != [needed]:
        return None
    return Mended({needed: value}, ["a bare text for the arguments"])


def _only_needed(spec: ToolSpec) -> str:
    """The one argument that a tool cannot do without, if there is just one and it is a text."""
    needed = spec.schema.get("required", ())
    return needed[0] if len(needed) == 1 and spec.schema["properties"][needed[0]].get("type") == "string" else ""


def _only_argument(text: str, spec: ToolSpec) -> dict[str, Any]:
    """A bare text in quotes is the one argument that a tool cannot do without."""
    needed = _only_needed(spec)
    if needed and not spec.effects:
        return {needed: text}
    raise _failure(spec, "they are a text")


def _unreadable(spec: ToolSpec, text: str, error: NotReadable) -> ToolFailure:
    if error.cut:
        size = " a long text goes in smaller pieces;" if len(text) > 2000 else ""
        return _failure(spec, f"they break off ({error.why});{size} send the whole call again")
    near = text[max(error.at - 20, 0) : error.at + 20].replace("\n", "\\n")
    return _failure(spec, f"{error.why}, near {near!r}")


def _failure(spec: ToolSpec, why: str) -> ToolFailure:
    said = f"the arguments of {spec.name} are not a JSON object: {why}"
    return ToolFailure(said, code="bad_arguments", hint=f"send them as {example(spec)}")
