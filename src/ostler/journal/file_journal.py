"""A session's journal as an append-only file of JSON lines."""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from ostler.core.errors import JournalError
from ostler.core.events import Envelope
from ostler.core.session_view import Records
from ostler.journal import record_codec
from ostler.journal.lock import SessionLock
from ostler.journal.record_codec import NewerFormatError
from ostler.journal.records import FileRecords

JOURNAL_NAME = "journal.jsonl"
CHUNK_BYTES = 1024 * 1024


class JournalObserver(Protocol):
    """Receives the records of a journal, for a file or log that is derived from it.

    That can be rebuilt, so its failures must not stop the session.
    """

    def catch_up(self, records: Records) -> None:
        """Called when the journal is opened; handle the records that an earlier process missed."""

    def on_record(self, envelope: Envelope) -> None:
        """Called after a record was written."""

    def close(self) -> None: ...


class FileJournal:
    """The records of one session in its own folder (0700/0600), opened by one process at a time.

    `damage` lists what was found broken on opening, as sentences for the user.
    """

    def __init__(self, folder: Path, session_id: str, observers: Sequence[JournalObserver] = ()) -> None:
        self.session_id = session_id
        self.path = folder / JOURNAL_NAME
        self.damage: list[str] = []
        self._observers = observers
        self._file: int
        self._needs_folder_sync: bool
        self._is_new: bool
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = SessionLock(folder, session_id)
            self._open()
        except OSError as error:
            raise JournalError(
                f"cannot write session files in {folder}: {error.strerror}",
                hint="make it writable, or set OSTLER_HOME to a writable folder",
            ) from error

    def records(self) -> FileRecords:
        return self._records

    def append(self, envelope: Envelope) -> None:
        line = record_codec.encode(envelope)
        if len(line) > record_codec.MAX_RECORD_BYTES:
            raise JournalError(f"a record of {len(line) >> 20} MB is too large for {self.path}")
        self._write(line)
        self._records.append(envelope, self._size, len(line))
        self._size += len(line)
        for observer in self._observers:
            observer.on_record(envelope)

    def sync(self) -> None:
        self._check_open()
        try:
            os.fdatasync(self._file)
            if self._needs_folder_sync:
                self._needs_folder_sync = False
                sync_folders(self.path.parent)
        except OSError as error:
            raise self._write_error(error.strerror or "sync failed") from error

    def close(self) -> None:
        if self._file < 0:
            return
        for observer in self._observers:
            observer.close()
        os.close(self._file)
        self._file = -1
        self._lock.release()

    def drop(self) -> None:
        import shutil

        if self._is_new and self._file >= 0:
            trash = self.path.parent.with_name(f".deleted-{self.session_id}")
            with suppress(OSError):  # then an empty session remains
                self.path.parent.rename(trash)
            shutil.rmtree(trash, ignore_errors=True)
        self.close()

    def _open(self) -> None:
        try:
            self._is_new = self._needs_folder_sync = not self.path.exists()
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                self._read()
            except BaseException:
                os.close(self._file)
                raise
        except BaseException:
            self._lock.release()
            raise

    def _read(self) -> None:
        self._records = read_journal(self.path)
        damage = self._records.damage
        self.damage += damage.describe(self.path.name)
        if damage.tail_offset is not None:
            self._move_tail(damage.tail_offset)
        elif damage.lacks_newline:
            os.write(self._file, b"\n")
        self._size = os.fstat(self._file).st_size
        for observer in self._observers:
            observer.catch_up(self._records)

    def _write(self, line: bytes) -> None:
        self._check_open()
        if os.fstat(self._file).st_size != self._size:
            raise JournalError(
                f"{self.path} was changed by another program; this session can no longer write to it",
                hint="resume the session when that program is done",
            )
        try:
            written = os.write(self._file, line)
        except OSError as error:
            raise self._write_error(error.strerror or "write failed") from error
        if written != len(line):
            os.ftruncate(self._file, self._size)
            raise self._write_error("no space left")

    def _check_open(self) -> None:
        if self._file < 0:
            raise JournalError(f"{self.path} is closed and cannot be written", code="session_closed")

    def _write_error(self, reason: str) -> JournalError:
        return JournalError(
            f"cannot write {self.path}: {reason}; earlier records are intact",
            hint="free some space and resume the session",
        )

    def _move_tail(self, start: int) -> None:
        """Move an incomplete last record to a separate file, then truncate the journal."""
        tail_path = self.path.with_suffix(".torn")
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        with open(os.open(tail_path, flags, 0o600), "ab") as file:
            offset = start
            while chunk := os.pread(self._file, CHUNK_BYTES, offset):
                file.write(chunk)
                offset += len(chunk)
            file.write(b"\n")
            file.flush()
            os.fsync(file.fileno())
        os.ftruncate(self._file, start)
        self.damage.append(f"{self.path.name}: the last record was incomplete; it was moved to {tail_path.name}")


def read_journal(path: Path) -> FileRecords:
    """Read a journal without locking or changing it. Raises `JournalError` if its format is newer."""
    try:
        return FileRecords(path)
    except NewerFormatError as error:
        raise JournalError(f"{path}: {error}", hint="open this session with a newer Ostler") from None


def sync_folders(folder: Path) -> None:
    """Sync a new session's folder and its three parents, so that the folder entries survive a crash."""
    for directory in (folder, *folder.parents[:3]):
        file = os.open(directory, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
        try:
            os.fsync(file)
        finally:
            os.close(file)
