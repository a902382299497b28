"""The tool calls in an unquote block, and the block that answers them."""

import re
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TypeAlias

import msgspec

from ostler.xnl.call_expressions import parse_call
from ostler.xnl.errors import CallError, XnlError
from ostler.xnl.parser import parse
from ostler.xnl.scanner import UNQUOTE_END, UNQUOTE_START, MarkedBlock, UnclosedBlock, scan
from ostler.xnl.tree import Comment, Element, TextElement, Value
from ostler.xnl.writer import format

_TAG = "tool_call"
_LANGUAGE = "javascript"
_MISSING_ID = "MISSING_ID"
# Anchored at the start of a word, as a search from every letter of a long word would be quadratic.
_QUALIFIED_NAME = re.compile(r"(?<![\w$])[^\W\d][\w$]*\.[^\W\d][\w$]*")


class FoundCall(msgspec.Struct, frozen=True):
    id: str
    function: str
    arguments: dict[str, Value]


class BadCall(msgspec.Struct, frozen=True):
    """A call, or with no id a whole block, that cannot run; `function` is what it seems to have meant."""

    error: str
    message: str
    id: str | None = None
    function: str = _TAG


CallEntry: TypeAlias = FoundCall | BadCall


def calls(text: str) -> list[CallEntry]:
    """The calls of an assistant's whole text; what has no id, or stands outside of a whole unquote block, is none."""
    entries: list[CallEntry] = []
    for piece in scan(text):
        if isinstance(piece, MarkedBlock) and piece.kind == "unquote":
            entries += read_block(piece.text)
    return keep_last_per_id(entry for entry in entries if not _lacks_id(entry))


def unclosed(text: str) -> XnlError | None:
    """The fault of a text that ends within an unquote block, where nothing may run; it points at the block's mark."""
    last = scan(text)[-1:]
    if not last or not isinstance(last[0], UnclosedBlock) or last[0].kind != "unquote":
        return None
    at = len(text) - len(last[0].text) - len(UNQUOTE_START)
    return XnlError(
        "UNEXPECTED_EOF", f"the block is not closed, so nothing in it runs: end it with {UNQUOTE_END}", text, at
    )


def read_block(text: str) -> list[CallEntry]:
    """The calls in the text of one unquote block, in order; never raises, a bad block is one entry."""
    try:
        nodes = parse(text).nodes
    except XnlError as error:
        return [BadCall(error.code, f"{error}: send the whole block again")]
    elements = [node for node in nodes if not isinstance(node, Comment) and node.tag == _TAG]
    return keep_last_per_id(map(_read_entry, elements))


def keep_last_per_id(entries: Iterable[CallEntry]) -> list[CallEntry]:
    """Where an id occurs again the later content takes the place of the earlier; what has no id stays."""
    kept: dict[str | int, CallEntry] = {}
    for number, entry in enumerate(entries):
        kept[number if entry.id is None else entry.id] = entry
    return list(kept.values())


def results_block(results: Sequence[tuple[str, str]]) -> str:
    """One message that answers calls: pairs of a call's id and its output."""
    answers = [format(TextElement("tool_resp", {"id": id}, output, text_marker=id)) for id, output in results]
    return "\n".join([UNQUOTE_START, *answers, UNQUOTE_END])


def _read_entry(element: Element) -> CallEntry:
    named = {**(element.attributes or {}), **element.metadata}
    id = _valid_id(named.get("id"))
    if not isinstance(element, TextElement):
        return BadCall("INVALID_CONTENT", 'Write the call as text: <tool_call id="..." #>CODE</#>', id)
    route = _QUALIFIED_NAME.search(element.text)
    bad_call = partial(BadCall, id=id, function=route.group() if route else _TAG)
    if id is None:
        return bad_call(_MISSING_ID, "Give the tool_call an id of its own and send it again")
    if named.get("lang", _LANGUAGE) != _LANGUAGE:
        return bad_call("UNSUPPORTED_LANG", f'Send the call again with lang="{_LANGUAGE}"')
    try:
        call = parse_call(element.text)
    except CallError as error:
        return bad_call(error.code, str(error))
    return FoundCall(id, call.function, call.arguments)


def _lacks_id(entry: CallEntry) -> bool:
    return isinstance(entry, BadCall) and entry.error == _MISSING_ID


def _valid_id(value: Value) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) and value else None
