"""The journal of one session in the SQLite database."""

import logging
import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress

import msgspec

from ostler.core.errors import JournalError
from ostler.core.events import Envelope, Queued, SessionOpened, ToolFinished, TurnEnded, TurnStarted, UnknownEvent
from ostler.journal import record_codec
from ostler.journal.conversation import ConversationReader
from ostler.journal.record_codec import NewerFormatError
from ostler.journal.records import LazyRecords, event_type_of
from ostler.journal.session_meta import SessionMeta
from ostler.storage.sqlite_database import SqliteDatabase
from ostler.storage.sqlite_words import add_words

_log = logging.getLogger("ostler.storage.journal")
_LINES = "SELECT seq, kind, call_id, line FROM records WHERE session = ? ORDER BY seq"


class ClaimedSession(msgspec.Struct, frozen=True):
    """A session that this process may write to, until another one increases its epoch."""

    id: str
    key: int
    epoch: int
    is_new: bool
    meta: SessionMeta


class SqliteRecords(LazyRecords):
    """The records of one session, read from the database when they are needed."""

    def __init__(self, database: SqliteDatabase, session_id: str, key: int) -> None:
        super().__init__()
        self.damage: list[str] = []
        self._database = database
        self._key = key
        self._unwritten: dict[int, bytes] = {}
        database.read(lambda db: self._load(db, session_id))

    def append(self, envelope: Envelope, line: bytes) -> None:
        """Add a record that will be written."""
        self._unwritten[envelope.seq] = line
        self._add_envelope(envelope, len(line))

    def mark_written(self, seq: int) -> None:
        """Forget the line of a record that can be read from the database from now on."""
        self._unwritten.pop(seq, None)

    def line(self, index: int) -> bytes:
        seq = self._seqs[index]
        if line := self._unwritten.get(seq):
            return line
        query = "SELECT line FROM records WHERE session = ? AND seq = ?"
        row = self._database.read(lambda db: db.execute(query, [self._key, seq]).fetchone())
        if row is None:
            raise JournalError(f"record {seq} was deleted", code="session_gone")
        return bytes(row[0])

    def decode(self, index: int) -> Envelope:
        line = self.line(index)
        if record_codec.parse_frame(line) is None:
            return Envelope(self._seqs[index], 0.0, UnknownEvent(self._kinds[index], {}))
        return record_codec.decode(line)

    def _load(self, db: sqlite3.Connection, session_id: str) -> None:
        damaged = 0
        for seq, kind, call_id, line in db.execute(_LINES, [self._key]):
            try:
                damaged += record_codec.parse_frame(line) is None
            except NewerFormatError as error:
                raise JournalError(f"session {session_id}: {error}", hint="open it with a newer Ostler") from None
            self._add_entry(seq, kind, call_id, len(line))
        if damaged:
            self.damage.append(f"session {session_id}: {damaged} damaged records; the remaining records are intact")


class _Unwritten(msgspec.Struct, frozen=True):
    """A record that waits for the writing thread, with the session's summary after it."""

    envelope: Envelope
    line: bytes
    meta: bytes
    turns: int


class SqliteJournal:
    """Hands records to the database's writing thread; `sync` waits until they are on disk.

    A record that could not be written, for example on a full disk, is kept and written before the next one. Each
    record must follow the last one of the session and have its epoch: a process that lost the session cannot write.
    """

    def __init__(self, database: SqliteDatabase, claim: ClaimedSession, on_close: Callable[[], None]) -> None:
        self.session_id = claim.id
        self._database = database
        self._claim = claim
        self._meta = claim.meta
        self._on_close = on_close
        self._records = SqliteRecords(database, claim.id, claim.key)
        self._conversation = ConversationReader()
        self._lock = threading.Lock()
        self._unwritten: deque[_Unwritten] = deque()
        self._writing: Future[int] | None = None
        self._is_open = True

    @property
    def damage(self) -> list[str]:
        return self._records.damage

    @property
    def epoch(self) -> int:
        """The number of times that the session was opened for writing."""
        return self._claim.epoch

    def records(self) -> SqliteRecords:
        return self._records

    def append(self, envelope: Envelope) -> None:
        self._check_open()
        line = record_codec.encode(envelope)
        if len(line) > record_codec.MAX_RECORD_BYTES:
            raise JournalError(f"a record of {len(line) >> 20} MB is too large for session {self.session_id}")
        last = self._records[-1].seq if len(self._records) else 0
        if envelope.seq != last + 1:
            raise JournalError(f"record {envelope.seq} of session {self.session_id} does not follow record {last}")
        if self._writing and self._writing.done() and self._writing.exception():
            self.sync()  # an earlier record could not be written
        self._meta.apply(envelope)
        self._records.append(envelope, line)
        with self._lock:
            self._unwritten.append(_Unwritten(envelope, line, msgspec.json.encode(self._meta), self._meta.turns))
        self._start_writing()

    def sync(self) -> None:
        self._check_open()
        self._flush()

    def close(self) -> None:
        if not self._is_open:
            return
        try:
            self._flush()
        except JournalError as error:  # the turn that it belongs to was reported as failed
            _log.warning("closing: %s", error, extra={"session": self.session_id})
        finally:
            self._is_open = False
            self._release("UPDATE sessions SET holder = '' WHERE key = ? AND epoch = ?")

    def drop(self) -> None:
        if not self._claim.is_new:
            self.close()
        elif self._is_open:
            self._is_open = False
            self._release("DELETE FROM sessions WHERE key = ? AND epoch = ?")

    def _check_open(self) -> None:
        if not self._is_open:
            raise JournalError(f"session {self.session_id} is closed and cannot be written", code="session_closed")

    def _release(self, statement: str) -> None:
        try:
            self._database.write(lambda db: db.execute(statement, [self._claim.key, self._claim.epoch]).rowcount)
        finally:
            self._on_close()

    def _flush(self) -> None:
        """Wait until everything appended so far is written. Raises `JournalError`."""
        with self._lock:
            last = self._unwritten[-1].envelope.seq if self._unwritten else 0
        while last and self._first_unwritten() <= last:
            self._database.result(self._start_writing())

    def _first_unwritten(self) -> float:
        with self._lock:
            return self._unwritten[0].envelope.seq if self._unwritten else float("inf")

    def _start_writing(self) -> "Future[int]":
        """Return the running write, or start one for all records that wait."""
        with self._lock:
            if self._writing is None or self._writing.done():
                batch: list[_Unwritten] = []
                self._writing = self._database.submit(
                    lambda db: self._write(db, batch), lambda: self._forget_written(batch)
                )
                self._writing.add_done_callback(self._write_later_ones)
            return self._writing

    def _write_later_ones(self, done: "Future[int]") -> None:
        """Start to write the records that were appended during the last write."""
        if not done.exception() and self._first_unwritten() < float("inf"):
            with suppress(JournalError):  # the database is being closed
                self._start_writing()

    def _write(self, db: sqlite3.Connection, batch: list[_Unwritten]) -> int:
        """Write the records that wait, in the writing thread. They are forgotten after the commit."""
        with self._lock:
            batch += self._unwritten
        if not batch:
            return 0
        key, first, last = self._claim.key, batch[0].envelope, batch[-1]
        changed = db.execute(
            "UPDATE sessions SET last_seq = ?, meta = ?, changed = ?, turns = ? "
            "WHERE key = ? AND epoch = ? AND last_seq = ?",
            [last.envelope.seq, last.meta, last.envelope.time, last.turns, key, self._claim.epoch, first.seq - 1],
        )
        if changed.rowcount != 1:
            raise JournalError(
                f"session {self.session_id} is now written by another process",
                code="session_lost",
                hint="open it again",
            )
        for record in batch:
            insert_record(db, key, record.envelope, record.line)
            add_words(db, key, record.envelope, self._conversation)
        return len(batch)

    def _forget_written(self, batch: list[_Unwritten]) -> None:
        with self._lock:
            for record in batch:
                self._unwritten.popleft()
                self._records.mark_written(record.envelope.seq)


def insert_record(db: sqlite3.Connection, key: int, envelope: Envelope, line: bytes) -> None:
    """Add a record, and keep what the list of sessions shows about it."""
    event = envelope.event
    call_id = event.result.call_id if isinstance(event, ToolFinished) else None
    row = [key, envelope.seq, event_type_of(event), call_id, line]
    db.execute("INSERT INTO records(session, seq, kind, call_id, line) VALUES (?, ?, ?, ?, ?)", row)
    match event:
        case SessionOpened(session_id, root, parent_id=parent_id):
            values = [root, session_id, parent_id, key]
            db.execute("UPDATE sessions SET root = ?, is_child = (id = ? AND ? != '') WHERE key = ?", values)
        case TurnStarted(turn_id):
            db.execute("UPDATE sessions SET open_turn = ? WHERE key = ?", [turn_id, key])
        case TurnEnded():
            db.execute("UPDATE sessions SET open_turn = '' WHERE key = ?", [key])
        case Queued(_, prompts):
            db.execute("UPDATE sessions SET waiting = ? WHERE key = ?", [len(prompts), key])
        case _:
            pass
