"""Writes `history.xnl`: every message as an XNL record, appended immediately."""

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from ostler.core.events import Envelope
from ostler.core.session_view import Records
from ostler.core.tools import ToolCall
from ostler.journal.conversation import CONVERSATION_TYPES, ConversationMessage, ConversationReader

HISTORY_NAME = "history.xnl"
OPEN_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
RECENT_COUNT = 16
TAIL_BYTES = 4 * 1024 * 1024


class HistoryXnl:
    """Appends each message to `history.xnl`. Messages that are missing after a crash are added on the next opening."""

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
        message = self._conversation.read(envelope)
        if message and self._file >= 0:
            self._append(to_xnl(message))

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _append(self, text: str) -> None:
        """Append a text in one write. After a failure the file is closed until the next opening."""
        data = _encode(text)
        size = os.fstat(self._file).st_size
        try:
            complete = os.write(self._file, data) == len(data)
        except OSError:
            complete = False
        if not complete:
            with suppress(OSError):
                os.ftruncate(self._file, size)
            self.close()

    def _missing_texts(self, records: Records) -> list[str] | None:
        """Return the latest messages that are not in the file yet, or None if the file must be rewritten.

        An incomplete record at its end is removed.
        """
        recent = [_encode(text) for text in self._recent_texts(records)]
        if not self._path.exists():
            return None if recent else []
        with open(self._path, "rb+") as file:
            for end in _possible_ends(file):
                for count in range(len(recent), 0, -1):
                    expected = b"".join(recent[:count])
                    file.seek(max(0, end - len(expected)))
                    if file.read(len(expected)) == expected:
                        file.truncate(end)
                        return [data.decode() for data in recent[count:]]
        return None

    def _recent_texts(self, records: Records) -> Iterator[str]:
        indexes = (index for index in reversed(range(len(records))) if records.type_at(index) in CONVERSATION_TYPES)
        for index in reversed([*islice(indexes, RECENT_COUNT)]):
            if message := self._conversation.read(records[index]):
                yield to_xnl(message)

    def _rewrite(self, records: Records) -> None:
        self._conversation = ConversationReader()
        new = self._path.with_suffix(".new")
        with open(os.open(new, OPEN_FLAGS | os.O_TRUNC, 0o600), "wb") as file:
            for index in range(len(records)):
                if records.type_at(index) in CONVERSATION_TYPES and (
                    message := self._conversation.read(records[index])
                ):
                    file.write(_encode(to_xnl(message)))
        os.replace(new, self._path)


def _possible_ends(file: BinaryIO) -> Iterator[int]:
    """Yield where the last complete record may end: at the file's end, or before the last line that starts one."""
    size = file.seek(0, os.SEEK_END)
    yield size
    start = max(0, size - TAIL_BYTES)
    file.seek(start)
    position = file.read().rfind(b"\n<")
    if position >= 0:
        yield start + position + 1


def to_xnl(message: ConversationMessage) -> str:
    """Format a message as an XNL record."""
    from ostler.xnl.chat_records import write_record
    from ostler.xnl.errors import XnlError

    try:
        return write_record(message.role, _fields(message, plain=False))
    except XnlError:  # a number or a nesting that XNL cannot represent
        return write_record(message.role, _fields(message, plain=True))


def _fields(message: ConversationMessage, *, plain: bool) -> dict[str, Any]:
    calls = [{"id": call.id, "name": call.tool, "input": _call_input(call, plain)} for call in message.calls]
    fields = {
        "content": message.text,
        "reasoning_content": message.thought,
        "toolCalls": calls,
        "rawToolCalls": [call.source or call.raw for call in message.calls if call.source or call.raw],
        "toolCallId": message.call_id,
    }
    return {name: value for name, value in fields.items() if value or name == "content"}


def _call_input(call: ToolCall, plain: bool) -> object:
    return repr(call.arguments) if plain else call.arguments


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "replace")
