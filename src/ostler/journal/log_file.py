"""Diagnostic logs: redacted JSON lines in rotated files, written by a background thread."""

import fcntl
import logging
import os
import queue
import threading
from collections.abc import Callable
from contextvars import ContextVar
from itertools import pairwise
from pathlib import Path

import msgspec

from ostler.journal.session_meta import format_time

START_DELAY = 1.0  # seconds; importing the redactor is slow and would delay the start of the program
CURRENT_SESSION: ContextVar[str] = ContextVar("session", default="")


class LogFile(msgspec.Struct, frozen=True):
    """A log file that is rotated at `max_bytes`; `backup_count` old files are kept."""

    path: Path
    max_bytes: int
    backup_count: int

    def append(self, lines: bytes) -> None:
        """Append lines. Safe with several processes; the one that fills the file rotates it."""
        while True:
            file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
                if not self._is_current(file):
                    continue
                size = os.fstat(file).st_size
                if size and size + len(lines) > self.max_bytes:
                    self._rotate()
                    continue
                os.write(file, lines)
                return
            finally:
                os.close(file)

    def _is_current(self, file: int) -> bool:
        try:
            return os.path.samestat(os.fstat(file), os.stat(self.path))
        except FileNotFoundError:
            return False

    def _rotate(self) -> None:
        names = [
            self.path,
            *(self.path.with_name(f"{self.path.name}.{age}") for age in range(1, self.backup_count + 1)),
        ]
        names[-1].unlink(missing_ok=True)
        for newer, older in reversed(list(pairwise(names))):
            if newer.exists():
                newer.rename(older)


class LogHandler(logging.Handler):
    """Passes log records to a thread that redacts and writes them, so that logging never waits for a disk."""

    def __init__(self, file: LogFile, make_redact: Callable[[], Callable[[str], str]]) -> None:
        super().__init__()
        self._file = file
        self._make_redact = make_redact
        self._sessions: dict[str, LogFile] = {}
        self._queue: queue.SimpleQueue[logging.LogRecord | str | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()

    def add_session_file(self, session_id: str, file: LogFile) -> None:
        """Write a session's records to this file too, from now on."""
        self._sessions[session_id] = file

    def remove_session_file(self, session_id: str) -> None:
        """Stop writing to a session's file after the records logged so far."""
        self._queue.put(session_id)

    def emit(self, record: logging.LogRecord) -> None:
        record.session = getattr(record, "session", CURRENT_SESSION.get())
        if self._thread is None:
            self._thread = threading.Thread(target=self._write_all, name="log", daemon=True)
            self._thread.start()
        self._queue.put(record)

    def close(self) -> None:
        """Write everything that was logged; wait two seconds at most."""
        super().close()
        if self._thread:
            self._closing.set()
            self._queue.put(None)
            self._thread.join(timeout=2)
            self._thread = None

    def _write_all(self) -> None:
        self._closing.wait(START_DELAY)
        redact = self._make_redact()
        while item := self._queue.get():
            if isinstance(item, str):
                self._sessions.pop(item, None)
                continue
            line = _format_line(item, redact)
            for file in (self._file, self._sessions.get(item.__dict__["session"])):
                if file:
                    _append_quietly(file, line)


def _append_quietly(file: LogFile, line: bytes) -> None:
    try:
        file.append(line)
    except OSError:
        return


def _format_line(record: logging.LogRecord, redact: Callable[[str], str]) -> bytes:
    text = record.getMessage()
    if record.exc_info:
        text += "\n" + logging.Formatter().formatException(record.exc_info)
    fields: dict[str, object] = {
        "time": format_time(record.created),
        "level": record.levelname.lower(),
        "from": record.name,
    }
    if session := record.__dict__["session"]:
        fields["session"] = session
    fields |= record.__dict__.get("fields", {})  # of `extra`: names and numbers, which need no redaction
    return msgspec.json.encode({**fields, "text": redact(text).encode("utf-8", "replace").decode()}) + b"\n"
