"""Writes and reads a chat history as appended XNL records."""

import re
from collections.abc import Mapping

import msgspec

from ostler.xnl.errors import XnlError
from ostler.xnl.tree import DataElement, Node, Value
from ostler.xnl.writer import format

_RECORD_START = r"(?m)^<(?!!--)"


class ChatRecord(msgspec.Struct, frozen=True):
    """One message: its role and all other fields, in order."""

    role: str
    fields: dict[str, Value]


class ChatHistory(msgspec.Struct, frozen=True):
    """The readable records in order, and an error for each unreadable one."""

    records: list[ChatRecord]
    errors: list[XnlError]


def write_record(role: str, fields: Mapping[str, Value]) -> str:
    """Return the text to append for one message."""
    return format(DataElement(role, {}, dict(fields)), pretty=True, indent="  ") + "\n"


def read_records(text: str) -> ChatHistory:
    """Return all records. A damaged record does not affect others, because each starts on a new line."""
    from ostler.xnl.parser import parse  # not needed for writing

    history = ChatHistory([], [])
    try:
        _add_nodes(history, parse(text).nodes)
    except XnlError:
        _add_each_record(history, text)
    return history


def _add_each_record(history: ChatHistory, text: str) -> None:
    from ostler.xnl.parser import parse

    starts = sorted({0, *(match.start() for match in re.finditer(_RECORD_START, text))})
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        try:
            _add_nodes(history, parse(text[start:end]).nodes)
        except XnlError as error:
            history.errors.append(error)


def _add_nodes(history: ChatHistory, nodes: list[Node]) -> None:
    for node in nodes:
        if isinstance(node, DataElement):
            history.records.append(ChatRecord(node.tag, {**node.metadata, **(node.attributes or {})}))
        else:
            history.errors.append(XnlError("INVALID_CONTENT", "A chat record must be a data element"))
