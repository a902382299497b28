"""Updates the session index: reads what journals have grown by and drops deleted sessions."""

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
    """The index's entry of a session: its journal's size, time and inode, and the offset read so far."""

    key: int
    stamp: tuple[int, int, int]
    offset: int


class ChangedSession(NamedTuple):
    """A session whose journal changed since it was indexed."""

    project: str
    id: str
    path: str
    stamp: tuple[int, int, int]
    known: IndexedState | None


def refresh(db: sqlite3.Connection, store: JournalStore, project: str, report: Callable[[str], None]) -> None:
    """Index all journals that changed, and remove deleted sessions."""
    known = _indexed_states(db, project)
    # Oldest first: a search returns the latest rows first.
    changed = sorted(_changed_sessions(store, project, known), key=lambda session: session.stamp[1])
    if not changed and not known:
        return
    if len(changed) > REPORT_ABOVE:
        report(f"building the search index for {len(changed)} sessions (once)")
    db.execute("BEGIN IMMEDIATE")
    try:
        for deleted in known.values():
            remove_session(db, deleted.key)
        for changed_session in changed:
            _JournalIndexer(db, changed_session).read()
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise


def remove_session(db: sqlite3.Connection, key: int) -> None:
    """Remove a session from the index."""
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
    """Yield new and changed sessions; all sessions that still exist are removed from `known`."""
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
    """Indexes one journal from where it was last read to its end."""

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
                for frame, start, line in scan(file, Damage(), offset, meta.seq):
                    offset = start + len(line)
                    meta.seq, meta.changed = int(frame["seq"]), format_time(float(frame["time"]))
                    if frame["kind"].decode("utf-8", "replace") in INDEXED_TYPES:
                        self._index_record(key, meta, record_codec.decode(line))
        except NewerFormatError as newer:
            meta.title = f"({newer})"
        except OSError:
            return
        self._save(key, meta, offset)

    def _load_state(self) -> tuple[int, SessionMeta, int]:
        known, session = self._session.known, self._session
        if known and known.stamp[2] == session.stamp[2] and known.offset <= session.stamp[0]:
            (stored,) = self._db.execute("SELECT meta FROM sessions WHERE key = ?", [known.key]).fetchone()
            return known.key, msgspec.json.decode(stored, type=SessionMeta), known.offset
        if known:
            remove_session(self._db, known.key)
        cursor = self._db.execute("INSERT INTO sessions(project, id) VALUES (?, ?)", [session.project, session.id])
        return cursor.lastrowid or 0, SessionMeta(session.id), 0

    def _index_record(self, key: int, meta: SessionMeta, envelope: Envelope) -> None:
        meta.apply(envelope)
        event = envelope.event
        if isinstance(event, UsageReported):
            if not event.child_id:  # the child's own journal is indexed too
                self._add_usage(format_time(envelope.time)[:10], event)
        elif isinstance(event, Renamed):
            self._add_text(key, envelope, "title", split_cjk(event.title))
        elif not isinstance(event, PrefixBuilt) and (message := self._conversation.read(envelope)):
            self._add_text(key, envelope, message.role, searchable_text(message))

    def _add_text(self, key: int, envelope: Envelope, role: str, text: str) -> None:
        row = [key, envelope.seq, envelope.time, role]
        cursor = self._db.execute("INSERT INTO messages(session, seq, time, role) VALUES (?, ?, ?, ?)", row)
        self._db.execute("INSERT INTO words(rowid, text) VALUES (?, ?)", [cursor.lastrowid, text])

    def _add_usage(self, day: str, usage: UsageReported) -> None:
        if usage.cost == 0 and not usage.tokens_in + usage.tokens_out:
            return  # not a call; reports the context size after a compaction
        sums = self._usage.setdefault((day, usage.model), [0] * 6)
        tokens = (usage.tokens_in, usage.tokens_out, usage.tokens_cached)
        for column, amount in enumerate((1, *tokens, usage.cost or 0.0, usage.cost is None)):
            sums[column] += amount

    def _save(self, key: int, meta: SessionMeta, offset: int) -> None:
        for (day, model), sums in self._usage.items():
            self._db.execute("INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", [key, day, model, *sums])
        stamp = [*self._session.stamp, offset, msgspec.json.encode(meta), key]
        self._db.execute(
            "UPDATE sessions SET size = ?, written = ?, file = ?, offset = ?, meta = ? WHERE key = ?", stamp
        )
