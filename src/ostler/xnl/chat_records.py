"""A chat history as a file of records that grows by appending, and its records read back."""

import re
from collections.abc import Mapping

import msgspec

from ostler.xnl.errors import XnlError
from ostler.xnl.tree import DataElement, Node, Value
from ostler.xnl.writer import format

_RECORD_START = r"(?m)^<(?!!--)"


class ChatRecord(msgspec.Struct, frozen=True):
    """One message: who spoke, and everything else that is known of it, in order."""

    role: str
    fields: dict[str, Value]


class ChatHistory(msgspec.Struct, frozen=True):
    """The records that could be read, in order, and a fault for each that could not."""

    records: list[ChatRecord]
    errors: list[XnlError]


def write_record(role: str, fields: Mapping[str, Value]) -> str:
    """The text to append for one message."""
    return format(DataElement(role, {}, dict(fields)), pretty=True, indent="  ") + "\n"


def read_records(text: str) -> ChatHistory:
    """Every record of a history; a torn one costs itself alone, as records start at a line's start."""
    from ostler.xnl.parser import parse  # whoever writes a history reads none

    history = ChatHistory([], [])
    try:
        _add_nodes(history, parse(text).nodes)
    except XnlError:
        _add_each_record(history, text)
    return history


def _add_each_record(history: ChatHistory, text: str) -> None:
    from ostler.xnl.parser import parse

    starts = sorted({0, *(found.start() for found in re.finditer(_RECORD_START, text))})
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        try:
            _add_nodes(history, parse(text[start:end]).nodes)
        except XnlError as fault:
            history.errors.append(fault)


def _add_nodes(history: ChatHistory, nodes: list[Node]) -> None:
    for node in nodes:
        if isinstance(node, DataElement):
            history.records.append(ChatRecord(node.tag, {**node.metadata, **(node.attributes or {})}))
        else:
            history.errors.append(XnlError("INVALID_CONTENT", "A chat record must be a data element"))
