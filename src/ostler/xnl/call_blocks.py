"""Reads tool calls from an unquote block and writes the block with their results."""

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
# Anchored at the start of a word: a search from every letter of a long word would be quadratic.
_QUALIFIED_NAME = re.compile(r"(?<![\w$])[^\W\d][\w$]*\.[^\W\d][\w$]*")


class FoundCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """A call that can run. `source` is its code, if that was requested."""

    id: str
    function: str
    arguments: dict[str, Value]
    source: str = ""


class BadCall(msgspec.Struct, frozen=True):
    """A call that cannot run, or without an id a whole block. `function` is the name that it seems to contain."""

    error: str
    message: str
    id: str | None = None
    function: str = _TAG


CallEntry: TypeAlias = FoundCall | BadCall


def calls(text: str) -> list[CallEntry]:
    """Return the calls in the closed unquote blocks of a complete reply. Calls without an id are skipped."""
    entries: list[CallEntry] = []
    for part in scan(text):
        if isinstance(part, MarkedBlock) and part.kind == "unquote":
            entries += read_block(part.text)
    return keep_last_per_id(entry for entry in entries if not _lacks_id(entry))


def unclosed(text: str) -> XnlError | None:
    """Return an error at the start marker if the text ends inside an unquote block, else None."""
    last = scan(text)[-1:]
    if not last or not isinstance(last[0], UnclosedBlock) or last[0].kind != "unquote":
        return None
    offset = len(text) - len(last[0].text) - len(UNQUOTE_START)
    return XnlError(
        "UNEXPECTED_EOF", f"the block is not closed, so nothing in it runs: close it with {UNQUOTE_END}", text, offset
    )


def read_block(text: str, *, with_source: bool = False) -> list[CallEntry]:
    """Return the calls in one unquote block, in order. Never raises; an invalid block gives one `BadCall`."""
    try:
        nodes = parse(text).nodes
    except XnlError as error:
        return [BadCall(error.code, f"{error}: send the whole block again")]
    elements = [node for node in nodes if not isinstance(node, Comment) and node.tag == _TAG]
    return keep_last_per_id(_read_entry(element, with_source=with_source) for element in elements)


def keep_last_per_id(entries: Iterable[CallEntry]) -> list[CallEntry]:
    """Return the last entry of each id, at the place of the first. Entries without an id are all kept."""
    by_id: dict[str | int, CallEntry] = {}
    for number, entry in enumerate(entries):
        by_id[number if entry.id is None else entry.id] = entry
    return list(by_id.values())


def results_block(results: Sequence[tuple[str, str]]) -> str:
    """Return the block that answers calls, from pairs of call id and output."""
    elements = [format(TextElement("tool_resp", {"id": id}, output, text_marker=id)) for id, output in results]
    return "\n".join([UNQUOTE_START, *elements, UNQUOTE_END])


def _read_entry(element: Element, *, with_source: bool) -> CallEntry:
    fields = {**(element.attributes or {}), **element.metadata}
    id = _valid_id(fields.get("id"))
    if not isinstance(element, TextElement):
        return BadCall("INVALID_CONTENT", 'Write the call as text: <tool_call id="..." #>CODE</#>', id)
    name_match = _QUALIFIED_NAME.search(element.text)
    bad_call = partial(BadCall, id=id, function=name_match.group() if name_match else _TAG)
    if id is None:
        return bad_call(_MISSING_ID, "Give the tool_call a unique id and send it again")
    if fields.get("lang", _LANGUAGE) != _LANGUAGE:
        return bad_call("UNSUPPORTED_LANG", f'Send the call again with lang="{_LANGUAGE}"')
    try:
        call = parse_call(element.text)
    except CallError as error:
        return bad_call(error.code, str(error))
    return FoundCall(id, call.function, call.arguments, element.text if with_source else "")


def _lacks_id(entry: CallEntry) -> bool:
    return isinstance(entry, BadCall) and entry.error == _MISSING_ID


def _valid_id(value: Value) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) and value else None
