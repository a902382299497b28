"""Diagnostic logs on disk: JSON lines without secrets, turned over within a bound, written beside the work."""

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

from ostler.journal.meta import moment

LET_START = 1.0  # seconds; whoever starts reads much else first, and what cleans a line is much to read
SESSION: ContextVar[str] = ContextVar("session", default="")


class LogFile(msgspec.Struct, frozen=True):
    """Where lines go, how large the file may grow, and how many old ones are kept."""

    path: Path
    most_bytes: int
    keep: int

    def add(self, lines: bytes) -> None:
        """Append; several processes may, and one of them turns the file over when it is full."""
        while True:
            file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
                if not self._is_current(file):
                    continue
                size = os.fstat(file).st_size
                if size and size + len(lines) > self.most_bytes:
                    self._turn_over()
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

    def _turn_over(self) -> None:
        names = [self.path, *(self.path.with_name(f"{self.path.name}.{age}") for age in range(1, self.keep + 1))]
        names[-1].unlink(missing_ok=True)
        for newer, older in reversed(list(pairwise(names))):
            if newer.exists():
                newer.rename(older)


class LogHandler(logging.Handler):
    """Hands every record to a thread that cleans and writes it; logging never waits for a disk."""

    def __init__(self, file: LogFile, make_clean: Callable[[], Callable[[str], str]]) -> None:
        super().__init__()
        self._file = file
        self._make_clean = make_clean
        self._sessions: dict[str, LogFile] = {}
        self._waiting: queue.SimpleQueue[logging.LogRecord | str | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()

    def join_session(self, session_id: str, file: LogFile) -> None:
        """From now on a session's records go to a file of its own, too."""
        self._sessions[session_id] = file

    def part_session(self, session_id: str) -> None:
        """What was logged until now still goes there."""
        self._waiting.put(session_id)

    def emit(self, record: logging.LogRecord) -> None:
        record.session = getattr(record, "session", SESSION.get())
        if self._thread is None:
            self._thread = threading.Thread(target=self._write_all, name="log", daemon=True)
            self._thread.start()
        self._waiting.put(record)

    def close(self) -> None:
        """All that was logged is written, unless the disk hangs."""
        super().close()
        if self._thread:
            self._closing.set()
            self._waiting.put(None)
            self._thread.join(timeout=2)
            self._thread = None

    def _write_all(self) -> None:
        self._closing.wait(LET_START)
        clean = self._make_clean()
        while item := self._waiting.get():
            if isinstance(item, str):
                self._sessions.pop(item, None)
                continue
            line = _line(item, clean)
            for file in (self._file, self._sessions.get(item.__dict__["session"])):
                if file:
                    _try(file, line)


def _try(file: LogFile, line: bytes) -> None:
    try:
        file.add(line)
    except OSError:
        return


def _line(record: logging.LogRecord, clean: Callable[[str], str]) -> bytes:
    text = record.getMessage()
    if record.exc_info:
        text += "\n" + logging.Formatter().formatException(record.exc_info)
    told = {"time": moment(record.created), "level": record.levelname.lower(), "from": record.name}
    if session := record.__dict__["session"]:
        told["session"] = session
    return msgspec.json.encode({**told, "text": clean(text).encode("utf-8", "replace").decode()}) + b"\n"
