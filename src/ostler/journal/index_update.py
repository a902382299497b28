"""Brings the session index up to date: what journals have grown by is read, what is gone is forgotten."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from ostler.core.events import Envelope, PrefixBuilt, Renamed, UsageReported
from ostler.journal import record_codec
from ostler.journal import session_meta as meta_file
from ostler.journal.conversation import CONVERSATION_TYPES, ConversationReader
from ostler.journal.file_journal import JOURNAL_NAME
from ostler.journal.journal_store import JournalStore
from ostler.journal.record_codec import NewerFormatError
from ostler.journal.scan import Damage, scan
from ostler.journal.search_text import searchable_text, split_cjk
from ostler.journal.session_meta import SessionMeta, format_time

INDEXED_TYPES = CONVERSATION_TYPES | meta_file.META_EVENT_TYPES | {"usage_reported"}
REPORT_ABOVE = 500


class IndexedState(NamedTuple):
    """A session as the index has it: its journal's size, time of writing and inode, and how far it was read."""

    key: int
    stamp: tuple[int, int, int]
    offset: int


class ChangedSession(NamedTuple):
    """A session whose journal is not as the index has it."""

    project: str
    id: str
    path: str
    stamp: tuple[int, int, int]
    known: IndexedState | None


def refresh(db: sqlite3.Connection, store: JournalStore, project: str, report: Callable[[str], None]) -> None:
    """Look at every journal's stamp, and read on where one changed."""
    known = _indexed_states(db, project)
    changed = sorted(
        _changed_sessions(store, project, known), key=lambda found: found.stamp[1]
    )  # the newest is found first
    if not changed and not known:
        return
    if len(changed) > REPORT_ABOVE:
        report(f"reading {len(changed)} sessions for the index, this once")
    db.execute("BEGIN IMMEDIATE")
    try:
        for gone in known.values():
            remove_session(db, gone.key)
        for found in changed:
            _JournalIndexer(db, found).read()
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise


def remove_session(db: sqlite3.Connection, key: int) -> None:
    """Take a session out of the index."""
    db.execute("DELETE FROM words WHERE rowid IN (SELECT number FROM messages WHERE session = ?)", [key])
    for table, column in (("messages", "session"), ("usage", "session"), ("sessions", "key")):
        db.execute(f"DELETE FROM {table} WHERE {column} = ?", [key])


def _indexed_states(db: sqlite3.Connection, project: str) -> dict[tuple[str, str], IndexedState]:
    where, scope = ("WHERE project = ?", [project]) if project else ("", [])
    rows = db.execute(f"SELECT project, id, key, size, written, file, offset FROM sessions {where}", scope)
    return {
        (name, id_): IndexedState(key, (size, written, file), offset)
        for name, id_, key, size, written, file, offset in rows
    }


def _changed_sessions(
    store: JournalStore, project: str, known: dict[tuple[str, str], IndexedState]
) -> Iterator[ChangedSession]:
    """The sessions whose stamp is not the known one; those that are still there are taken out of `known`."""
    for name, session_id in store.session_keys(project):
        path = f"{store.root}/{name}/sessions/{session_id}/{JOURNAL_NAME}"
        try:
            stat = os.stat(path)
        except OSError:
            continue
        stamp = (stat.st_size, stat.st_mtime_ns, stat.st_ino)
        entry = known.pop((name, session_id), None)
        if entry is None or entry.stamp != stamp:
            yield ChangedSession(name, session_id, path, stamp, entry)


class _JournalIndexer:
    """One journal, from where it was last read to its end."""

    def __init__(self, db: sqlite3.Connection, session: ChangedSession) -> None:
        self._db = db
        self._session = session
        self._conversation = ConversationReader()
        self._usage: dict[tuple[str, str], list[float]] = {}

    def read(self) -> None:
        key, meta, offset = self._load_state()
        try:
            with open(self._session.path, "rb") as file:
                file.seek(offset)
                for frame, place, line in scan(file, Damage(), offset, meta.seq):
                    offset = place + len(line)
                    meta.seq, meta.changed = int(frame["seq"]), format_time(float(frame["time"]))
                    if frame["kind"].decode("utf-8", "replace") in INDEXED_TYPES:
                        self._index_record(key, meta, record_codec.decode(line))
        except NewerFormatError as newer:
            meta.title = f"({newer})"
        except OSError:
            return
        self._save(key, meta, offset)

    def _load_state(self) -> tuple[int, SessionMeta, int]:
        known, found = self._session.known, self._session
        if known and known.stamp[2] == found.stamp[2] and known.offset <= found.stamp[0]:
            (stored,) = self._db.execute("SELECT meta FROM sessions WHERE key = ?", [known.key]).fetchone()
            return known.key, msgspec.json.decode(stored, type=SessionMeta), known.offset
        if known:
            remove_session(self._db, known.key)
        cursor = self._db.execute("INSERT INTO sessions(project, id) VALUES (?, ?)", [found.project, found.id])
        return cursor.lastrowid or 0, SessionMeta(found.id), 0

    def _index_record(self, key: int, meta: SessionMeta, envelope: Envelope) -> None:
        meta.apply(envelope)
        event = envelope.event
        if isinstance(event, UsageReported):
            if not event.child_id:  # the child's own journal has it
                self._add_usage(format_time(envelope.time)[:10], event)
        elif isinstance(event, Renamed):
            self._add_text(key, envelope, "title", split_cjk(event.title))
        elif not isinstance(event, PrefixBuilt) and (said := self._conversation.read(envelope)):
            self._add_text(key, envelope, said.role, searchable_text(said))

    def _add_text(self, key: int, envelope: Envelope, role: str, text: str) -> None:
        row = [key, envelope.seq, envelope.time, role]
        cursor = self._db.execute("INSERT INTO messages(session, seq, time, role) VALUES (?, ?, ?, ?)", row)
        self._db.execute("INSERT INTO words(rowid, text) VALUES (?, ?)", [cursor.lastrowid, text])

    def _add_usage(self, day: str, usage: UsageReported) -> None:
        if usage.cost == 0 and not usage.tokens_in + usage.tokens_out:
            return  # no call: how full the window is after a summary
        sums = self._usage.setdefault((day, usage.model), [0] * 6)
        tokens = (usage.tokens_in, usage.tokens_out, usage.tokens_cached)
        for place, amount in enumerate((1, *tokens, usage.cost or 0.0, usage.cost is None)):
            sums[place] += amount

    def _save(self, key: int, meta: SessionMeta, offset: int) -> None:
        for (day, model), sums in self._usage.items():
            self._db.execute("INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", [key, day, model, *sums])
        stamp = [*self._session.stamp, offset, msgspec.json.encode(meta), key]
        self._db.execute(
            "UPDATE sessions SET size = ?, written = ?, file = ?, offset = ?, meta = ? WHERE key = ?", stamp
        )
