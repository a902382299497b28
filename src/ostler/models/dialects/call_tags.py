"""Recognizes tool calls written as tags such as `<function=NAME>`, with a tag for each parameter."""

import json
import re
from typing import Any

from ostler.core.tools import ToolSpec
from ostler.models.dialects.call_json import KnownTools, TextCall, parse_object, read_json_value
from ostler.models.dialects.incremental_reader import IncrementalReader, ParseGenerator
from ostler.models.loose_json import to_text

OPENERS = ("<function=", '<invoke name="')

_CALL_CLOSERS = ("</function>", "</invoke>")
_WRAP_CLOSERS = ("</tool_call>", "</tool_calls>", "</function_calls>", "</minimax:tool_call>")
_OPENER = re.compile(r"""<function=["']?([\w.:/-]{1,100})["']?>|<invoke name="([\w.:/-]{1,100})">""")
_NAME = re.compile(r"([\w.:/-]{1,100})\s{0,20}")
_AFTER_NAME = ("<arg_key>", "</tool_call>")
_MAX_OPENER_LENGTH = 120
_TAG = re.compile(
    r"""<parameter(?:=|\s+name=)["']?(?P<key>[^<>"'\n]{1,100})["']?>"""
    r"|<arg_key>(?P<arg>[^<>\n]{1,100})</arg_key>\s{0,20}<arg_value>"
    r"|(?P<ends_value></parameter>|</arg_value>)"
    rf"|(?P<ends_call>{'|'.join(_CALL_CLOSERS)})"
    rf"|(?P<ends_all>{'|'.join(_WRAP_CLOSERS)})"
)
_ARGUMENT = re.compile(r"<arg_key>[^<>\n]{0,100}(?:</?[arg_key]{0,7}(?:>\s{0,20}(?:<[arg_value]{0,9})?)?)?")
_MAX_ARGUMENT_LENGTH = 180
_CLOSING_TAGS = ("</parameter>", "</arg_value>", *_CALL_CLOSERS, *_WRAP_CLOSERS)


def find_function(reader: IncrementalReader, tools: KnownTools, *, allow_bare_name: bool) -> ParseGenerator[str]:
    """Return the known tool whose call starts here, or an empty string. Consumes nothing.

    With `allow_bare_name` the call may start with the name alone, as inside a wrapper tag.
    """
    if allow_bare_name and (yield from reader.peek()) != "<":
        return (yield from _find_bare_name(reader, tools))
    while True:
        match = _OPENER.match(reader.buffer, reader.position)
        if match is not None:
            name = match[1] or match[2]
            return name if name in tools else ""
        rest = reader.buffer[reader.position : reader.position + _MAX_OPENER_LENGTH]
        may_be_opener = any(opener.startswith(rest) or rest.startswith(opener) for opener in OPENERS)
        if reader.ended or not may_be_opener or len(rest) == _MAX_OPENER_LENGTH or "\n" in rest or ">" in rest:
            return ""
        yield


def _find_bare_name(reader: IncrementalReader, tools: KnownTools) -> ParseGenerator[str]:
    while True:
        match = _NAME.match(reader.buffer, reader.position)
        if match is None:
            return ""
        rest = reader.buffer[match.end() : match.end() + 16]
        if match[1] in tools and any(rest.startswith(tag) for tag in _AFTER_NAME):
            return match[1]
        incomplete = match.end(1) == len(reader.buffer)
        likely = any(name.startswith(match[1]) for name in tools) if incomplete else match[1] in tools
        if reader.ended or not likely or not any(tag.startswith(rest) for tag in _AFTER_NAME):
            return ""
        yield


def read_function_call(reader: IncrementalReader, spec: ToolSpec, name: str) -> ParseGenerator[TextCall]:
    """Read the call that `find_function` found."""
    match = _OPENER.match(reader.buffer, reader.position) or _NAME.match(reader.buffer, reader.position)
    assert match is not None, "call find_function first"
    source = [reader.read(match.end())]
    if (yield from reader.skip_blanks()) == "{":
        text, is_complete = yield from read_json_value(reader)
        if not is_complete:
            text += yield from reader.read_until(_CALL_CLOSERS)
        yield from reader.skip_blanks()
        closer = yield from reader.peek_literal(_CALL_CLOSERS)
        reader.read(reader.position + len(closer))
        arguments = parse_object(text)
        return TextCall(name, text if arguments is None else to_text(arguments))
    parameters = _ParameterCollector(spec)
    while True:
        text, tag = yield from _read_to_tag(reader)
        source += [text, tag[0] if tag else ""]
        if parameters.feed(text, tag):
            break
    if tag is not None and tag["ends_all"]:
        reader.position -= len(tag[0])  # the tag closes a wrapper around this call
    return TextCall(name, to_text(parameters.values) if parameters.is_complete else "".join(source))


def _read_to_tag(reader: IncrementalReader) -> ParseGenerator[tuple[str, re.Match[str] | None]]:
    """Read up to and including the next relevant tag. Return the text before it and the tag, None at the end."""
    parts: list[str] = []
    while True:
        index = reader.buffer.find("<", reader.position)
        parts.append(reader.read(None if index < 0 else index))
        tag = _TAG.match(reader.buffer, reader.position)
        if tag is not None:
            reader.read(tag.end())
            return "".join(parts), tag
        if index >= 0 and not _may_be_tag(reader):
            parts.append(reader.read(index + 1))
        elif reader.ended:
            parts.append(reader.read())
            return "".join(parts), None
        else:
            yield


def _may_be_tag(reader: IncrementalReader) -> bool:
    rest = reader.buffer[reader.position : reader.position + _MAX_OPENER_LENGTH]
    if any(tag.startswith(rest) for tag in (*_CLOSING_TAGS, "<parameter", "<arg_key>")):
        return True
    if rest.startswith("<arg_key>"):
        return (
            len(reader.buffer) - reader.position < _MAX_ARGUMENT_LENGTH
            and _ARGUMENT.fullmatch(reader.buffer, reader.position) is not None
        )
    return rest.startswith("<parameter") and len(rest) < _MAX_OPENER_LENGTH and not set(">\n") & set(rest)


class _ParameterCollector:
    """Collects the parameters of one call. `is_complete` is True if every parameter was closed.

    A value may contain anything, also closing tags: one ends the value only if a tag that can follow it comes next.
    """

    def __init__(self, spec: ToolSpec) -> None:
        self.values: dict[str, Any] = {}
        self.is_complete = False
        self._types = spec.schema.get("properties") or {}
        self._key = ""
        self._value: list[str] = []
        self._closer: list[str] = []
        self._has_stray_text = False
        self._ended = False

    def feed(self, text: str, tag: re.Match[str] | None) -> bool:
        """Add text and the tag after it, None at the end of the answer. Return True if the call has ended."""
        if self._closer and (text.strip() or not self._may_follow(tag)):
            self._value += self._closer
            self._closer = []
        if self._closer:
            self._store_value()
        if self._key:
            self._feed_inside(text, tag)
        else:
            self._feed_between(text, tag)
        return self._ended

    def _may_follow(self, tag: re.Match[str] | None) -> bool:
        if self._closer[0] in _CALL_CLOSERS:
            return tag is None or bool(tag["ends_all"])
        return tag is None or not tag["ends_value"]

    def _feed_between(self, text: str, tag: re.Match[str] | None) -> None:
        self._has_stray_text = self._has_stray_text or bool(text.strip())
        if tag is not None and (key := tag["key"] or tag["arg"]):
            self._key = key.strip()
        elif tag is None or not tag["ends_value"]:
            self._finish(is_complete=not self._has_stray_text and bool(self.values or tag))

    def _feed_inside(self, text: str, tag: re.Match[str] | None) -> None:
        self._value.append(text)
        if tag is None:
            self._finish(is_complete=False)
        elif (key := tag["key"] or tag["arg"]) and key in self._types and key not in self.values | {self._key: 0}:
            self._store_value()  # the closing tag is missing
            self._key = key
        elif tag["ends_value"] or tag["ends_call"]:
            self._closer = [tag[0]]
        else:
            self._value.append(tag[0])

    def _store_value(self) -> None:
        value = "".join(self._value)
        if self._closer != ["</arg_value>"]:  # other formats put the value on separate lines
            value = value.removeprefix("\n").removesuffix("\n")
        self.values[self._key] = _convert_value(value, self._types.get(self._key))
        self._key, self._value, self._closer = "", [], []

    def _finish(self, *, is_complete: bool) -> None:
        self._ended, self.is_complete = True, is_complete


def _convert_value(value: str, schema: Any) -> Any:
    """Convert a value to a type in its schema; strings and invalid values are unchanged."""
    types = _schema_types(schema)
    if not types or "string" in types:
        return value
    try:
        return json.loads(value if value not in ("True", "False", "None") else value.lower().replace("none", "null"))
    except (ValueError, RecursionError):
        return value


def _schema_types(schema: Any) -> set[str]:
    if not isinstance(schema, dict):
        return set()
    kind = schema.get("type")
    types = {kind} if isinstance(kind, str) else {item for item in kind or () if isinstance(item, str)}
    return types.union(*(_schema_types(choice) for choice in schema.get("anyOf") or ()))
