"""`history.xnl`: every message as a record of the XNL notation, appended the moment it exists."""

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from ostler.journal.said import KINDS, Conversation, Said
from ostler.vocabulary.events import Envelope
from ostler.vocabulary.seams import Past
from ostler.vocabulary.tools import ToolCall

NAME = "history.xnl"
FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
RECENT = 16
REACH = 4 * 1024 * 1024


class HistoryXnl:
    """The whole of it can be told from the journal, so what a crash left out is made up for at the next opening."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._heard = Conversation()
        self._file = -1

    def catch_up(self, past: Past) -> None:
        try:
            missing = self._missing(past)
            if missing is None:
                self._write_anew(past)
                missing = []
            self._file = os.open(self._path, FLAGS, 0o600)
        except OSError:
            return
        for text in missing:
            self._append(text)

    def take(self, envelope: Envelope) -> None:
        said = self._heard.take(envelope)
        if said and self._file >= 0:
            self._append(record_of(said))

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _append(self, text: str) -> None:
        """In one write, or not at all: after a failure the file waits for the next opening."""
        data = _bytes(text)
        size = os.fstat(self._file).st_size
        try:
            whole = os.write(self._file, data) == len(data)
        except OSError:
            whole = False
        if not whole:
            with suppress(OSError):
                os.ftruncate(self._file, size)
            self.close()

    def _missing(self, past: Past) -> list[str] | None:
        """The newest records that are not in the file yet; nothing to tell from when its end is none of ours.

        A torn record at its end is cut off.
        """
        recent = [_bytes(text) for text in self._recent(past)]
        if not self._path.exists():
            return None if recent else []
        with open(self._path, "rb+") as file:
            for end in _ends(file):
                for known in range(len(recent), 0, -1):
                    wanted = b"".join(recent[:known])
                    file.seek(max(0, end - len(wanted)))
                    if file.read(len(wanted)) == wanted:
                        file.truncate(end)
                        return [data.decode() for data in recent[known:]]
        return None

    def _recent(self, past: Past) -> Iterator[str]:
        places = (at for at in reversed(range(len(past))) if past.kind(at) in KINDS)
        for index in reversed([*islice(places, RECENT)]):
            if said := self._heard.take(past[index]):
                yield record_of(said)

    def _write_anew(self, past: Past) -> None:
        self._heard = Conversation()
        new = self._path.with_suffix(".new")
        with open(os.open(new, FLAGS | os.O_TRUNC, 0o600), "wb") as file:
            for index in range(len(past)):
                if past.kind(index) in KINDS and (said := self._heard.take(past[index])):
                    file.write(_bytes(record_of(said)))
        os.replace(new, self._path)


def _ends(file: BinaryIO) -> Iterator[int]:
    """Where the last whole record may end: at the file's end, or before the last thing that begins a line."""
    size = file.seek(0, os.SEEK_END)
    yield size
    start = max(0, size - REACH)
    file.seek(start)
    begun = file.read().rfind(b"\n<")
    if begun >= 0:
        yield start + begun + 1


def record_of(said: Said) -> str:
    """A message in the notation: the role, and below it whatever there is to tell."""
    from ostler.xnl.chat import write_record
    from ostler.xnl.errors import XnlError

    try:
        return write_record(said.role, _fields(said, plain=False))
    except XnlError:  # a number or a nesting that the notation cannot hold
        return write_record(said.role, _fields(said, plain=True))


def _fields(said: Said, *, plain: bool) -> dict[str, Any]:
    calls = [{"id": call.id, "name": call.tool, "input": _input(call, plain)} for call in said.calls]
    fields = {
        "content": said.text,
        "reasoning_content": said.thought,
        "toolCalls": calls,
        "rawToolCalls": [call.raw for call in said.calls if call.raw],
        "toolCallId": said.call_id,
    }
    return {name: value for name, value in fields.items() if value or name == "content"}


def _input(call: ToolCall, plain: bool) -> object:
    return repr(call.arguments) if plain else call.arguments


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")
