"""Calls written as tags: `<function=NAME>`, `<invoke name="NAME">`, or `NAME` in a wrapper; a tag per parameter."""

import json
import re
from typing import Any

from ostler.models.dialects.call_json import Known, TextCall, json_value, read_object
from ostler.models.dialects.tape import Reading, Tape
from ostler.models.loose_json import compact
from ostler.vocabulary.tools import ToolSpec

OPENERS = ("<function=", '<invoke name="')

_CALL_CLOSERS = ("</function>", "</invoke>")
_WRAP_CLOSERS = ("</tool_call>", "</tool_calls>", "</function_calls>", "</minimax:tool_call>")
_OPENER = re.compile(r"""<function=["']?([\w.:/-]{1,100})["']?>|<invoke name="([\w.:/-]{1,100})">""")
_NAME = re.compile(r"([\w.:/-]{1,100})\s{0,20}")
_AFTER_NAME = ("<arg_key>", "</tool_call>")
_LONGEST_OPENER = 120
_TAG = re.compile(
    r"""<parameter(?:=|\s+name=)["']?(?P<key>[^<>"'\n]{1,100})["']?>"""
    r"|<arg_key>(?P<arg>[^<>\n]{1,100})</arg_key>\s{0,20}<arg_value>"
    r"|(?P<ends_value></parameter>|</arg_value>)"
    rf"|(?P<ends_call>{'|'.join(_CALL_CLOSERS)})"
    rf"|(?P<ends_all>{'|'.join(_WRAP_CLOSERS)})"
)
_ARGUMENT = re.compile(r"<arg_key>[^<>\n]{0,100}(?:</?[arg_key]{0,7}(?:>\s{0,20}(?:<[arg_value]{0,9})?)?)?")
_LONGEST_ARGUMENT = 180
_CLOSING_TAGS = ("</parameter>", "</arg_value>", *_CALL_CLOSERS, *_WRAP_CLOSERS)


def known_function(tape: Tape, known: Known, *, named: bool) -> Reading[str]:
    """The known tool whose call is opened here, or nothing; reads nothing. `named`: its bare name will do."""
    if named and (yield from tape.peek()) != "<":
        return (yield from _bare_name(tape, known))
    while True:
        found = _OPENER.match(tape.window, tape.at)
        if found is not None:
            name = found[1] or found[2]
            return name if name in known else ""
        rest = tape.window[tape.at : tape.at + _LONGEST_OPENER]
        begun = any(opener.startswith(rest) or rest.startswith(opener) for opener in OPENERS)
        if tape.ended or not begun or len(rest) == _LONGEST_OPENER or "\n" in rest or ">" in rest:
            return ""
        yield


def _bare_name(tape: Tape, known: Known) -> Reading[str]:
    while True:
        found = _NAME.match(tape.window, tape.at)
        if found is None:
            return ""
        rest = tape.window[found.end() : found.end() + 16]
        if found[1] in known and any(rest.startswith(tag) for tag in _AFTER_NAME):
            return found[1]
        inside = found.end(1) == len(tape.window)
        likely = any(name.startswith(found[1]) for name in known) if inside else found[1] in known
        if tape.ended or not likely or not any(tag.startswith(rest) for tag in _AFTER_NAME):
            return ""
        yield


def function_call(tape: Tape, spec: ToolSpec, name: str) -> Reading[TextCall]:
    """Read a call that `known_function` found, as far as it goes."""
    found = _OPENER.match(tape.window, tape.at) or _NAME.match(tape.window, tape.at)
    assert found is not None, "known_function looked here"
    source = [tape.take(found.end())]
    if (yield from tape.skip_blanks()) == "{":
        text, whole = yield from json_value(tape)
        if not whole:
            text += yield from tape.until(_CALL_CLOSERS)
        yield from tape.skip_blanks()
        closer = yield from tape.peek_literal(_CALL_CLOSERS)
        tape.take(tape.at + len(closer))
        arguments = read_object(text)
        return TextCall(name, text if arguments is None else compact(arguments))
    parameters = _Parameters(spec)
    while True:
        text, tag = yield from _to_tag(tape)
        source += [text, tag[0] if tag else ""]
        if parameters.over_with(text, tag):
            break
    if tag is not None and tag["ends_all"]:
        tape.at -= len(tag[0])  # it closes what is around this call
    return TextCall(name, compact(parameters.found) if parameters.whole else "".join(source))


def _to_tag(tape: Tape) -> Reading[tuple[str, re.Match[str] | None]]:
    """Read as far as the next tag that means something here, and that tag; none at the end."""
    pieces: list[str] = []
    while True:
        at = tape.window.find("<", tape.at)
        pieces.append(tape.take(None if at < 0 else at))
        tag = _TAG.match(tape.window, tape.at)
        if tag is not None:
            tape.take(tag.end())
            return "".join(pieces), tag
        if at >= 0 and not _may_be_tag(tape):
            pieces.append(tape.take(at + 1))
        elif tape.ended:
            pieces.append(tape.take())
            return "".join(pieces), None
        else:
            yield


def _may_be_tag(tape: Tape) -> bool:
    rest = tape.window[tape.at : tape.at + _LONGEST_OPENER]
    if any(tag.startswith(rest) for tag in (*_CLOSING_TAGS, "<parameter", "<arg_key>")):
        return True
    if rest.startswith("<arg_key>"):
        return len(tape.window) - tape.at < _LONGEST_ARGUMENT and _ARGUMENT.fullmatch(tape.window, tape.at) is not None
    return rest.startswith("<parameter") and len(rest) < _LONGEST_OPENER and not set(">\n") & set(rest)


class _Parameters:
    """The parameters of one call as their tags come by; `whole` says whether all that was begun was also ended.

    A value may hold anything, closing tags too: one counts only where a tag that can follow it stands behind it.
    """

    def __init__(self, spec: ToolSpec) -> None:
        self.found: dict[str, Any] = {}
        self.whole = False
        self._types = spec.schema.get("properties") or {}
        self._key = ""
        self._value: list[str] = []
        self._closer: list[str] = []
        self._stray = False
        self._over = False

    def over_with(self, text: str, tag: re.Match[str] | None) -> bool:
        """Take text and the tag behind it, None for the end of everything; whether the call is over with them."""
        if self._closer and (text.strip() or not self._may_follow(tag)):
            self._value += self._closer
            self._closer = []
        if self._closer:
            self._keep()
        if self._key:
            self._inside(text, tag)
        else:
            self._between(text, tag)
        return self._over

    def _may_follow(self, tag: re.Match[str] | None) -> bool:
        if self._closer[0] in _CALL_CLOSERS:
            return tag is None or bool(tag["ends_all"])
        return tag is None or not tag["ends_value"]

    def _between(self, text: str, tag: re.Match[str] | None) -> None:
        self._stray = self._stray or bool(text.strip())
        if tag is not None and (key := tag["key"] or tag["arg"]):
            self._key = key.strip()
        elif tag is None or not tag["ends_value"]:
            self._end(whole=not self._stray and bool(self.found or tag))

    def _inside(self, text: str, tag: re.Match[str] | None) -> None:
        self._value.append(text)
        if tag is None:
            self._end(whole=False)
        elif (key := tag["key"] or tag["arg"]) and key in self._types and key not in self.found | {self._key: 0}:
            self._keep()  # the closing tag was forgotten
            self._key = key
        elif tag["ends_value"] or tag["ends_call"]:
            self._closer = [tag[0]]
        else:
            self._value.append(tag[0])

    def _keep(self) -> None:
        value = "".join(self._value)
        if self._closer != ["</arg_value>"]:  # in the other forms each value has lines of its own
            value = value.removeprefix("\n").removesuffix("\n")
        self.found[self._key] = _typed(value, self._types.get(self._key))
        self._key, self._value, self._closer = "", [], []

    def _end(self, *, whole: bool) -> None:
        self._over, self.whole = True, whole


def _typed(value: str, schema: Any) -> Any:
    """A value as the tool's schema wants it; text stays as it is."""
    kinds = _kinds(schema)
    if not kinds or "string" in kinds:
        return value
    try:
        return json.loads(value if value not in ("True", "False", "None") else value.lower().replace("none", "null"))
    except (ValueError, RecursionError):
        return value


def _kinds(schema: Any) -> set[str]:
    if not isinstance(schema, dict):
        return set()
    kind = schema.get("type")
    own = {kind} if isinstance(kind, str) else {item for item in kind or () if isinstance(item, str)}
    return own.union(*(_kinds(one) for one in schema.get("anyOf") or ()))
