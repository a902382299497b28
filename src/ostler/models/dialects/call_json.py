"""Calls written as JSON: told by their first words, read when they are whole, and what is left of broken ones."""

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from ostler.models.dialects.json_extent import JsonExtent
from ostler.models.dialects.tape import Reading, Tape
from ostler.models.loose_json import compact
from ostler.vocabulary.tools import ToolSpec

# The tools that may be called, by every name they go by.
Known = Mapping[str, ToolSpec]

_NAME_KEYS = ("name", "tool", "tool_name", "function", "function_name")
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "input", "tool_input", "tool_args")
_LABEL_KEYS = ("id", "type", "call_id", "tool_call_id")
_KEYS = (*_NAME_KEYS, *_ARGUMENT_KEYS, *_LABEL_KEYS, "tool_calls")
_CALL_TYPES = ("function", "tool_call", "tool_use", "function_call")
_WORD = re.compile(r"""(["'])([^"'\\\n]{0,120})(\1)?""")
_NUMBER = re.compile(r"()(\d{1,20})")
_HEAD_LENGTH = 400
_NAMED = re.compile(rf"""["'](?:{"|".join(_NAME_KEYS)})["']\s*:\s*["']([^"'\\\n]{{1,120}})["']""")
_ARGUED = re.compile(rf"""["'](?:{"|".join(_ARGUMENT_KEYS)})["']\s*:\s*""")


class TextCall(msgspec.Struct, frozen=True):
    """A call found in text; the arguments are JSON, or what the model wrote in their place."""

    tool: str
    arguments: str


def may_be_call(tape: Tape, known: Known) -> Reading[bool]:
    """Whether the JSON that begins here can be a call of a known tool; waits for a few words and reads none."""
    while True:
        head = tape.window[tape.at : tape.at + _HEAD_LENGTH]
        verdict = _Head(head, known).verdict()
        if verdict is not None:
            return verdict
        if tape.ended or len(head) == _HEAD_LENGTH:
            return False
        yield


def json_value(tape: Tape) -> Reading[tuple[str, bool]]:
    """Read the JSON that begins here, and whether its end was seen; broken JSON is read as far as it goes."""
    extent = JsonExtent()
    pieces: list[str] = []
    while True:
        pieces.append(tape.take(extent.feed(tape.window, tape.at)))
        if extent.state != "open" or tape.ended:
            return "".join(pieces), extent.state == "whole"
        yield


def read_calls(text: str, known: Known, *, alone: bool) -> list[TextCall] | None:
    """The calls in a JSON text: none when it holds something else, None when it is no JSON.

    JSON that stands `alone`, with no tag to say that it is a call, must look like one and like nothing else.
    """
    try:
        return _calls(json.loads(text, strict=False), known, alone)
    except (ValueError, RecursionError):
        return None


def mended_call(text: str, known: Known) -> TextCall | None:
    """What can be made of a call whose JSON is broken: its arguments if they at least are whole, else their text."""
    name = next((found[1] for found in _NAMED.finditer(text) if found[1] in known), None)
    if name is None:
        return None
    argued = _ARGUED.search(text)
    given = text[argued.end() :].strip() if argued else ""
    guesses = (read_object(given), read_object(given.removesuffix("}")))
    whole = next((compact(guess) for guess in guesses if guess is not None), None)
    return TextCall(name, whole or given or text)


def read_object(text: str) -> dict[str, Any] | None:
    """A JSON object, line breaks within its strings forgiven; None for anything else."""
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


class _Head:
    """Looks at the first words of a JSON text; None says that more of them are needed."""

    def __init__(self, text: str, known: Known) -> None:
        self._text = text
        self._known = known
        self._at = 0

    def verdict(self) -> bool | None:
        if self._next() == "[":
            self._at += 1
        char = self._next()
        if char != "{":
            return False if char else None
        self._at += 1
        return self._members()

    def _members(self) -> bool | None:
        while True:
            key, whole = self._word()
            if not whole:
                return None if key is None or _begins(key, _KEYS) else False
            if key not in _KEYS:
                return False
            if self._next() != ":":
                return False if self._next() else None
            self._at += 1
            if not self._next() or key not in _LABEL_KEYS:
                return self._settled(key)
            label, whole = self._word()
            if not whole or self._next() != ",":
                return None if label is not None and not self._next() else False
            if key == "type" and label not in _CALL_TYPES:
                return False
            self._at += 1

    def _settled(self, key: str) -> bool | None:
        """A name settles it, and so do arguments: what they belong to is only known at the end."""
        char = self._next()
        if not char or key not in _NAME_KEYS:
            return True if char else None
        if char == "{" and key == "function":
            self._at += 1
            return self._members()
        value, whole = self._word()
        if not whole:
            return None if value is not None and _begins(value, self._known) else False
        return value in self._known

    def _word(self) -> tuple[str | None, bool]:
        """A quoted word or a number and whether it is whole; no word, and `whole`, when something else stands here."""
        if not self._next():
            return None, False
        found = _NUMBER.match(self._text, self._at) or _WORD.match(self._text, self._at)
        if found is None:
            return None, True
        whole = found.re is _NUMBER or found[3] is not None
        if not whole and found.end() < len(self._text):
            return None, True
        self._at = found.end()
        return found[2], whole

    def _next(self) -> str:
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1
        return self._text[self._at : self._at + 1]


def _begins(word: str, words: Collection[str]) -> bool:
    return any(one.startswith(word) for one in words)


def _calls(value: Any, known: Known, alone: bool) -> list[TextCall]:
    if isinstance(value, dict) and isinstance(value.get("tool_calls"), list):
        value = value["tool_calls"]
    if not isinstance(value, list):
        value = [value]
    calls = [_call(item, known, alone) for item in value]
    whole = [call for call in calls if call is not None]
    return whole if len(whole) == len(calls) else []


def _call(value: Any, known: Known, alone: bool) -> TextCall | None:
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("function"), dict):
        labels = {key: item for key, item in value.items() if key in _LABEL_KEYS}
        value = labels | value["function"]
    name_key = next((key for key in _NAME_KEYS if isinstance(value.get(key), str)), "")
    name = value.get(name_key)
    if name not in known:
        return None
    argument_key = next((key for key in _ARGUMENT_KEYS if key in value), "")
    rest = value.keys() - {name_key, argument_key, *_LABEL_KEYS}
    if not argument_key:
        return None if alone else TextCall(name, compact({key: value[key] for key in value if key in rest}))
    given = value[argument_key]
    if alone and (rest or _is_schema(given, known[name])):
        return None
    return TextCall(name, "{}" if given is None else compact(given))


def _is_schema(given: Any, spec: ToolSpec) -> bool:
    """Whether these are not arguments but the description of a tool's parameters."""
    own = spec.schema.get("properties")
    return isinstance(given, dict) and given.get("type") == "object" and "type" not in (own or ())
