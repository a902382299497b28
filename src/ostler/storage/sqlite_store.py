"""The sessions of all users in the SQLite database, and the `Store` of each of them."""

import sqlite3
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import msgspec

from ostler.core.errors import JournalError, UsageError
from ostler.core.events import Envelope
from ostler.core.protocols import Journal
from ostler.core.sessions import SessionQuery, SessionSummary
from ostler.core.store import InterruptedSession
from ostler.journal import record_codec
from ostler.journal.conversation import ConversationReader
from ostler.journal.fork import NOT_FORKED
from ostler.journal.journal_store import LAST, check_session_id, new_session_id
from ostler.journal.session_meta import SessionMeta, format_time
from ostler.session.offline import rename
from ostler.storage.sqlite_database import SqliteDatabase
from ostler.storage.sqlite_journal import ClaimedSession, SqliteJournal, SqliteRecords, insert_record
from ostler.storage.sqlite_words import add_words, find_words, remove_words

ID_BYTES = 16  # ids of a server's sessions must not be guessable


class SqliteSessions:
    """The sessions of all users in one database."""

    def __init__(self, database: SqliteDatabase) -> None:
        self.database = database
        self._open_keys: set[int] = set()  # those that this process has open
        self._lock = threading.Lock()

    def of(self, owner: str) -> "SqliteStore":
        """Return the store of one user, who cannot see the sessions of others."""
        return SqliteStore(self, owner)

    def interrupted(self) -> Sequence[InterruptedSession]:
        """Return the sessions that can be taken over, oldest first; tasks of subagents are not among them."""
        where = "(open_turn != '' OR waiting) AND NOT is_child ORDER BY changed"
        query = f"SELECT key, holder, owner, id, root FROM sessions WHERE {where}"
        rows = self.database.read(lambda db: db.execute(query).fetchall())
        return [InterruptedSession(*row) for key, holder, *row in rows if not self.is_open(key, holder)]

    def delete_expired(self, before: float) -> Sequence[str]:
        """Delete the sessions that were last written before this time and are not open. Return their ids."""
        return self.database.write(lambda db: self._delete_expired(db, before))

    def is_open(self, key: int, holder: str) -> bool:
        """Return whether a running process has a session open."""
        mark = self.database.mark
        with self._lock:
            return key in self._open_keys if holder == mark.name else mark.is_running(holder)

    def open_journal(self, claim: ClaimedSession) -> SqliteJournal:
        """Open the journal of a session that was just claimed."""
        try:
            return SqliteJournal(self.database, claim, lambda: self.mark_closed(claim.key))
        except BaseException:
            self.mark_closed(claim.key)
            raise

    def mark_open(self, key: int) -> None:
        with self._lock:
            self._open_keys.add(key)

    def mark_closed(self, key: int) -> None:
        with self._lock:
            self._open_keys.discard(key)

    def _delete_expired(self, db: sqlite3.Connection, before: float) -> list[str]:
        rows = db.execute("SELECT key, id, holder FROM sessions WHERE changed < ?", [before]).fetchall()
        closed = [(key, session_id) for key, session_id, holder in rows if not self.is_open(key, holder)]
        if closed:
            delete_sessions(db, [key for key, _ in closed])
        return [session_id for _, session_id in closed]


class SqliteStore:
    """Implements `Store` for one user."""

    def __init__(self, sessions: SqliteSessions, owner: str) -> None:
        self._sessions = sessions
        self._database = sessions.database
        self.owner = owner

    def open(self, project: str, session_id: str = "") -> Journal:
        if session_id:
            check_session_id(session_id)
        name, claimed = session_id or new_session_id(ID_BYTES), set[int]()
        try:
            claim = self._database.write(lambda db: self._claim(db, project, name, claimed))
        except BaseException:  # also if only the commit failed
            for key in claimed:
                self._sessions.mark_closed(key)
            raise
        return self._sessions.open_journal(claim)

    def find(self, project: str, session_ref: str) -> str:
        if session_ref == LAST:
            return self._latest(project)
        columns = "SELECT id, project, root FROM sessions WHERE owner = ?"
        mine = self._query(f"{columns} AND id = ?", self.owner, session_ref) or self._query(columns, self.owner)
        for scope in ([row for row in mine if row[1] == project], mine):
            matches = [row for row in scope if session_ref and session_ref in row[0]]
            exact = [row for row in matches if row[0] == session_ref]
            if len(exact or matches) == 1:
                return _check_project(*(exact or matches)[0], project=project)
            if matches:
                raise UsageError(
                    f"{len(matches)} session ids contain {session_ref!r}", hint="use a longer part of the id"
                )
        raise _not_found(session_ref)

    def backend(self, session_id: str) -> str:
        (meta,) = self._require("meta", session_id)
        return msgspec.json.decode(meta, type=SessionMeta).backend

    def list(self, query: SessionQuery) -> Sequence[SessionSummary]:
        where, values = "s.owner = ?", [self.owner]
        if query.cwd:
            where, values = f"{where} AND s.root = ?", [*values, query.cwd]
        return self._database.read(lambda db: _list(db, query, where, values))

    def fork(self, session_id: str, seq: int = 0) -> str:
        key, project, root, manifest = self._require("key, project, root, manifest", session_id)
        records = SqliteRecords(self._database, session_id, key)
        end = records.index_after(seq) if seq else len(records)
        if seq and (not end or records[end - 1].seq != seq):
            raise UsageError(f"session {session_id} has no record {seq}")
        new_id = new_session_id(ID_BYTES)
        copied = [records[index] for index in range(end) if records.type_at(index) not in NOT_FORKED]
        row = [new_id, self.owner, project, root, manifest]
        self._database.write(lambda db: _insert_copy(db, row, copied))
        return new_id

    def rename(self, session_id: str, title: str) -> None:
        (project,) = self._require("project", session_id)
        with closing(self.open(project, session_id)) as journal:
            rename(journal, title)

    def delete(self, session_id: str) -> None:
        self._require("key", session_id)
        self._database.write(lambda db: self._delete(db, session_id))

    # -- what only a server needs ----------------------------------------------------------------------------------

    def set_host(self, session_id: str, root: str, manifest: bytes) -> None:
        update = "UPDATE sessions SET root = ?, manifest = ? WHERE id = ? AND owner = ?"
        if not self._database.write(lambda db: db.execute(update, [root, manifest, session_id, self.owner]).rowcount):
            raise _not_found(session_id)

    def summary(self, session_id: str) -> SessionSummary:
        return _summary(*self._require("meta, changed", session_id))

    def host(self, session_id: str) -> tuple[str, bytes]:
        root, manifest = self._require("root, manifest", session_id)
        return root, bytes(manifest or b"")

    # -- internal --------------------------------------------------------------------------------------------------

    def _query(self, query: str, *values: object) -> Sequence[tuple[Any, ...]]:
        return self._database.read(lambda db: db.execute(query, values).fetchall())

    def _require(self, columns: str, session_id: str) -> tuple[Any, ...]:
        found = self._query(f"SELECT {columns} FROM sessions WHERE id = ? AND owner = ?", session_id, self.owner)
        if not found:
            raise _not_found(session_id)
        return found[0]

    def _latest(self, project: str) -> str:
        order = "ORDER BY turns > 0 DESC, changed DESC, id DESC LIMIT 1"
        query = f"SELECT id FROM sessions WHERE owner = ? AND project = ? AND NOT is_child {order}"
        found = self._query(query, self.owner, project)
        if not found:
            raise UsageError("no session in this workspace yet", hint="list all sessions first")
        return str(found[0][0])

    def _claim(self, db: sqlite3.Connection, project: str, session_id: str, claimed: set[int]) -> ClaimedSession:
        """Make this process the only one that may write a session; the new epoch stops every earlier writer."""
        query = "SELECT key, owner, project, root, holder, epoch, meta FROM sessions WHERE id = ?"
        row, mark = db.execute(query, [session_id]).fetchone(), self._database.mark.name
        if row is None:
            meta = SessionMeta(session_id)
            new = [session_id, self.owner, project, msgspec.json.encode(meta), time.time(), mark]
            columns = "id, owner, project, meta, changed, holder, epoch"
            cursor = db.execute(f"INSERT INTO sessions({columns}) VALUES (?, ?, ?, ?, ?, ?, 1)", new)
            key, epoch = cursor.lastrowid or 0, 1
        else:
            key, owner, stored_project, root, holder, epoch, stored = row
            if owner != self.owner:
                raise _not_found(session_id)
            _check_project(session_id, stored_project, root, project=project)
            self._check_not_open(session_id, key, holder)
            epoch += 1
            db.execute("UPDATE sessions SET epoch = ?, holder = ? WHERE key = ?", [epoch, mark, key])
            meta = msgspec.json.decode(stored, type=SessionMeta)
        claimed.add(key)
        self._sessions.mark_open(key)
        return ClaimedSession(session_id, key, epoch, row is None, meta)

    def _check_not_open(self, session_id: str, key: int, holder: str) -> None:
        if self._sessions.is_open(key, holder):
            raise JournalError(
                f"session {session_id} is open in another process",
                code="session_busy",
                hint=f"close it there, or work on a copy: ostler sessions fork {session_id}",
            )

    def _delete(self, db: sqlite3.Connection, session_id: str) -> None:
        row = db.execute("SELECT key, holder FROM sessions WHERE id = ?", [session_id]).fetchone()
        if row is None:
            raise _not_found(session_id)
        self._check_not_open(session_id, *row)
        delete_sessions(db, [row[0]])


def delete_sessions(db: sqlite3.Connection, keys: Sequence[int]) -> None:
    """Delete some sessions with their records and words."""
    remove_words(db, keys)
    for key in keys:
        db.execute("DELETE FROM sessions WHERE key = ?", [key])


def _list(db: sqlite3.Connection, query: SessionQuery, where: str, values: list[str]) -> list[SessionSummary]:
    if query.text:
        keys = find_words(db, query.text, where, values, query.limit)
        rows = [db.execute("SELECT meta, changed FROM sessions WHERE key = ?", [key]).fetchone() for key in keys]
    else:
        order = "ORDER BY s.changed DESC, s.id DESC LIMIT ?"
        rows = db.execute(
            f"SELECT s.meta, s.changed FROM sessions s WHERE {where} AND NOT s.is_child {order}", [*values, query.limit]
        ).fetchall()
    return [_summary(*row) for row in rows]


def _summary(meta: bytes, changed: float) -> SessionSummary:
    """Return the entry of a session; one that was never opened has only the time of its creation."""
    m, created = msgspec.json.decode(meta, type=SessionMeta), format_time(changed)
    return SessionSummary(m.id, m.cwd, m.title, m.started or created, m.changed or created, m.turns)


def _insert_copy(db: sqlite3.Connection, row: list[Any], copied: Sequence[Envelope]) -> None:
    meta, conversation = SessionMeta(row[0]), ConversationReader()
    for envelope in copied:
        meta.apply(envelope)
    columns = "id, owner, project, root, manifest, meta, changed, turns, last_seq"
    values = [*row, msgspec.json.encode(meta), time.time(), meta.turns, meta.seq]
    cursor = db.execute(f"INSERT INTO sessions({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
    for envelope in copied:
        insert_record(db, cursor.lastrowid or 0, envelope, record_codec.encode(envelope))
        add_words(db, cursor.lastrowid or 0, envelope, conversation)
    db.execute("UPDATE sessions SET open_turn = '', waiting = 0 WHERE id = ?", [row[0]])  # a copy is not taken over


def _check_project(session_id: str, stored_project: str, root: str, *, project: str) -> str:
    if stored_project != project:
        hint = f"resume it there: {root}" if root else "resume it there"
        raise UsageError(f"session {session_id!r} belongs to another workspace", hint=hint)
    return session_id


def _not_found(session_ref: str) -> UsageError:
    return UsageError(f"session {session_ref[:120]!r} not found", code="session_not_found", hint="list the sessions")
