"""`history.xnl`: every message as a record of the XNL notation, appended the moment it exists."""

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from ostler.core.events import Envelope
from ostler.core.protocols import Records
from ostler.core.tools import ToolCall
from ostler.journal.conversation import CONVERSATION_TYPES, ConversationMessage, ConversationReader

HISTORY_NAME = "history.xnl"
OPEN_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
RECENT_COUNT = 16
TAIL_BYTES = 4 * 1024 * 1024


class HistoryXnl:
    """The whole of it can be told from the journal, so what a crash left out is made up for at the next opening."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / HISTORY_NAME
        self._conversation = ConversationReader()
        self._file = -1

    def catch_up(self, records: Records) -> None:
        try:
            missing = self._missing_texts(records)
            if missing is None:
                self._rewrite(records)
                missing = []
            self._file = os.open(self._path, OPEN_FLAGS, 0o600)
        except OSError:
            return
        for text in missing:
            self._append(text)

    def on_record(self, envelope: Envelope) -> None:
        said = self._conversation.read(envelope)
        if said and self._file >= 0:
            self._append(to_xnl(said))

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _append(self, text: str) -> None:
        """In one write, or not at all: after a failure the file waits for the next opening."""
        data = _encode(text)
        size = os.fstat(self._file).st_size
        try:
            whole = os.write(self._file, data) == len(data)
        except OSError:
            whole = False
        if not whole:
            with suppress(OSError):
                os.ftruncate(self._file, size)
            self.close()

    def _missing_texts(self, records: Records) -> list[str] | None:
        """The newest records that are not in the file yet; nothing to tell from when its end is none of ours.

        A torn record at its end is cut off.
        """
        recent = [_encode(text) for text in self._recent_texts(records)]
        if not self._path.exists():
            return None if recent else []
        with open(self._path, "rb+") as file:
            for end in _possible_ends(file):
                for known in range(len(recent), 0, -1):
                    wanted = b"".join(recent[:known])
                    file.seek(max(0, end - len(wanted)))
                    if file.read(len(wanted)) == wanted:
                        file.truncate(end)
                        return [data.decode() for data in recent[known:]]
        return None

    def _recent_texts(self, records: Records) -> Iterator[str]:
        places = (at for at in reversed(range(len(records))) if records.type_at(at) in CONVERSATION_TYPES)
        for index in reversed([*islice(places, RECENT_COUNT)]):
            if said := self._conversation.read(records[index]):
                yield to_xnl(said)

    def _rewrite(self, records: Records) -> None:
        self._conversation = ConversationReader()
        new = self._path.with_suffix(".new")
        with open(os.open(new, OPEN_FLAGS | os.O_TRUNC, 0o600), "wb") as file:
            for index in range(len(records)):
                if records.type_at(index) in CONVERSATION_TYPES and (said := self._conversation.read(records[index])):
                    file.write(_encode(to_xnl(said)))
        os.replace(new, self._path)


def _possible_ends(file: BinaryIO) -> Iterator[int]:
    """Where the last whole record may end: at the file's end, or before the last thing that begins a line."""
    size = file.seek(0, os.SEEK_END)
    yield size
    start = max(0, size - TAIL_BYTES)
    file.seek(start)
    begun = file.read().rfind(b"\n<")
    if begun >= 0:
        yield start + begun + 1


def to_xnl(message: ConversationMessage) -> str:
    """A message in the notation: the role, and below it whatever there is to tell."""
    from ostler.xnl.chat_records import write_record
    from ostler.xnl.errors import XnlError

    try:
        return write_record(message.role, _fields(message, plain=False))
    except XnlError:  # a number or a nesting that the notation cannot hold
        return write_record(message.role, _fields(message, plain=True))


def _fields(message: ConversationMessage, *, plain: bool) -> dict[str, Any]:
    calls = [{"id": call.id, "name": call.tool, "input": _call_input(call, plain)} for call in message.calls]
    fields = {
        "content": message.text,
        "reasoning_content": message.thought,
        "toolCalls": calls,
        "rawToolCalls": [call.raw for call in message.calls if call.raw],
        "toolCallId": message.call_id,
    }
    return {name: value for name, value in fields.items() if value or name == "content"}


def _call_input(call: ToolCall, plain: bool) -> object:
    return repr(call.arguments) if plain else call.arguments


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "replace")
