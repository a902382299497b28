"""Recognizes tool calls written as JSON."""

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from ostler.core.tools import ToolSpec
from ostler.models.dialects.incremental_reader import IncrementalReader, ParseGenerator
from ostler.models.dialects.json_extent import JsonExtent
from ostler.models.loose_json import to_text

# The tools that may be called, by name and alias.
KnownTools = Mapping[str, ToolSpec]

_NAME_KEYS = ("name", "tool", "tool_name", "function", "function_name")
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "input", "tool_input", "tool_args")
_LABEL_KEYS = ("id", "type", "call_id", "tool_call_id")
_KEYS = (*_NAME_KEYS, *_ARGUMENT_KEYS, *_LABEL_KEYS, "tool_calls")
_CALL_TYPES = ("function", "tool_call", "tool_use", "function_call")
_WORD = re.compile(r"""(["'])([^"'\\\n]{0,120})(\1)?""")
_NUMBER = re.compile(r"()(\d{1,20})")
_MAX_HEAD_LENGTH = 400
_NAME_MEMBER = re.compile(rf"""["'](?:{"|".join(_NAME_KEYS)})["']\s*:\s*["']([^"'\\\n]{{1,120}})["']""")
_ARGUMENTS_MEMBER = re.compile(rf"""["'](?:{"|".join(_ARGUMENT_KEYS)})["']\s*:\s*""")


class TextCall(msgspec.Struct, frozen=True):
    """A call found in text. `arguments` is JSON, or the model's text if it is not valid JSON.

    `source` is the text of the call. Of several calls in one text, only the first has it.
    """

    tool: str
    arguments: str
    source: str = ""


def may_be_call(reader: IncrementalReader, tools: KnownTools) -> ParseGenerator[bool]:
    """Return whether the JSON that starts here can be a call of a known tool. Consumes nothing."""
    while True:
        head = reader.buffer[reader.position : reader.position + _MAX_HEAD_LENGTH]
        verdict = _CallHeadMatcher(head, tools).match()
        if verdict is not None:
            return verdict
        if reader.ended or len(head) == _MAX_HEAD_LENGTH:
            return False
        yield


def read_json_value(reader: IncrementalReader) -> ParseGenerator[tuple[str, bool]]:
    """Read the JSON that starts here, up to an error if it is invalid. Return it and whether it is complete."""
    extent = JsonExtent()
    parts: list[str] = []
    while True:
        parts.append(reader.read(extent.feed(reader.buffer, reader.position)))
        if extent.state != "open" or reader.ended:
            return "".join(parts), extent.state == "complete"
        yield


def parse_calls(text: str, tools: KnownTools, *, untagged: bool) -> list[TextCall] | None:
    """Return the calls in a JSON text, an empty list if it contains anything else, or None if it is not JSON.

    `untagged` JSON, with no tag that marks it as a call, must have exactly the keys of a call.
    """
    try:
        return _extract_calls(json.loads(text, strict=False), tools, untagged)
    except (ValueError, RecursionError):
        return None


def repair_call(text: str, tools: KnownTools) -> TextCall | None:
    """Return the call in invalid JSON, with its arguments or their text, or None without a known name."""
    name = next((match[1] for match in _NAME_MEMBER.finditer(text) if match[1] in tools), None)
    if name is None:
        return None
    arguments_start = _ARGUMENTS_MEMBER.search(text)
    arguments = text[arguments_start.end() :].strip() if arguments_start else ""
    candidates = (parse_object(arguments), parse_object(arguments.removesuffix("}")))
    repaired = next((to_text(candidate) for candidate in candidates if candidate is not None), None)
    return TextCall(name, repaired or arguments or text)


def parse_object(text: str) -> dict[str, Any] | None:
    """Parse a JSON object, allowing line breaks in strings. Return None for anything else."""
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


class _CallHeadMatcher:
    """Matches the start of a JSON text against the form of a call. None means that more text is needed."""

    def __init__(self, text: str, tools: KnownTools) -> None:
        self._text = text
        self._tools = tools
        self._position = 0

    def match(self) -> bool | None:
        if self._next_char() == "[":
            self._position += 1
        char = self._next_char()
        if char != "{":
            return False if char else None
        self._position += 1
        return self._match_members()

    def _match_members(self) -> bool | None:
        while True:
            key, is_complete = self._read_word()
            if not is_complete:
                return None if key is None or _is_prefix(key, _KEYS) else False
            if key not in _KEYS:
                return False
            if self._next_char() != ":":
                return False if self._next_char() else None
            self._position += 1
            if not self._next_char() or key not in _LABEL_KEYS:
                return self._match_value(key)
            label, is_complete = self._read_word()
            if not is_complete or self._next_char() != ",":
                return None if label is not None and not self._next_char() else False
            if key == "type" and label not in _CALL_TYPES:
                return False
            self._position += 1

    def _match_value(self, key: str) -> bool | None:
        """Decide by a name; arguments always match, because their tool may be named after them."""
        char = self._next_char()
        if not char or key not in _NAME_KEYS:
            return True if char else None
        if char == "{" and key == "function":
            self._position += 1
            return self._match_members()
        value, is_complete = self._read_word()
        if not is_complete:
            return None if value is not None and _is_prefix(value, self._tools) else False
        return value in self._tools

    def _read_word(self) -> tuple[str | None, bool]:
        """Return a quoted word or number and whether it is complete, or (None, True) for anything else."""
        if not self._next_char():
            return None, False
        match = _NUMBER.match(self._text, self._position) or _WORD.match(self._text, self._position)
        if match is None:
            return None, True
        is_complete = match.re is _NUMBER or match[3] is not None
        if not is_complete and match.end() < len(self._text):
            return None, True
        self._position = match.end()
        return match[2], is_complete

    def _next_char(self) -> str:
        while self._position < len(self._text) and self._text[self._position].isspace():
            self._position += 1
        return self._text[self._position : self._position + 1]


def _is_prefix(prefix: str, words: Collection[str]) -> bool:
    return any(word.startswith(prefix) for word in words)


def _extract_calls(value: Any, tools: KnownTools, untagged: bool) -> list[TextCall]:
    if isinstance(value, dict) and isinstance(value.get("tool_calls"), list):
        value = value["tool_calls"]
    if not isinstance(value, list):
        value = [value]
    calls = [_extract_call(item, tools, untagged) for item in value]
    known_calls = [call for call in calls if call is not None]
    return known_calls if len(known_calls) == len(calls) else []


def _extract_call(value: Any, tools: KnownTools, untagged: bool) -> TextCall | None:
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("function"), dict):
        labels = {key: item for key, item in value.items() if key in _LABEL_KEYS}
        value = labels | value["function"]
    name_key = next((key for key in _NAME_KEYS if isinstance(value.get(key), str)), "")
    name = value.get(name_key)
    if name not in tools:
        return None
    argument_key = next((key for key in _ARGUMENT_KEYS if key in value), "")
    rest = value.keys() - {name_key, argument_key, *_LABEL_KEYS}
    if not argument_key:
        return None if untagged else TextCall(name, to_text({key: value[key] for key in value if key in rest}))
    arguments = value[argument_key]
    if untagged and (rest or _is_schema(arguments, tools[name])):
        return None
    return TextCall(name, "{}" if arguments is None else to_text(arguments))


def _is_schema(arguments: Any, spec: ToolSpec) -> bool:
    """Whether these are not arguments but a JSON Schema of parameters."""
    properties = spec.schema.get("properties")
    return isinstance(arguments, dict) and arguments.get("type") == "object" and "type" not in (properties or ())
