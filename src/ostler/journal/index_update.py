"""Brings the session index up to date: what journals have grown by is read, what is gone is forgotten."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from ostler.journal import meta as meta_file
from ostler.journal import record
from ostler.journal.file import NAME
from ostler.journal.meta import Meta, moment
from ostler.journal.record import NewerRecord
from ostler.journal.said import KINDS, Conversation
from ostler.journal.scan import Damage, scan
from ostler.journal.search_text import indexed, spaced
from ostler.journal.store import Store
from ostler.vocabulary.events import Envelope, PrefixBuilt, Renamed, UsageReported

READ = KINDS | meta_file.KINDS | {"usage_reported"}
WORTH_TELLING = 500


class Known(NamedTuple):
    """A session as the index has it: its journal's size, time of writing and inode, and how far it was read."""

    key: int
    stamp: tuple[int, int, int]
    offset: int


class Changed(NamedTuple):
    """A session whose journal is not as the index has it."""

    project: str
    id: str
    path: str
    stamp: tuple[int, int, int]
    known: Known | None


def refresh(db: sqlite3.Connection, store: Store, project: str, say: Callable[[str], None]) -> None:
    """Look at every journal's stamp, and read on where one changed."""
    known = _known(db, project)
    changed = sorted(_changed(store, project, known), key=lambda found: found.stamp[1])  # the newest is found first
    if not changed and not known:
        return
    if len(changed) > WORTH_TELLING:
        say(f"reading {len(changed)} sessions for the index, this once")
    db.execute("BEGIN IMMEDIATE")
    try:
        for gone in known.values():
            forget(db, gone.key)
        for found in changed:
            _Reading(db, found).read()
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise


def forget(db: sqlite3.Connection, key: int) -> None:
    """Take a session out of the index."""
    db.execute("DELETE FROM words WHERE rowid IN (SELECT number FROM messages WHERE session = ?)", [key])
    for table, column in (("messages", "session"), ("usage", "session"), ("sessions", "key")):
        db.execute(f"DELETE FROM {table} WHERE {column} = ?", [key])


def _known(db: sqlite3.Connection, project: str) -> dict[tuple[str, str], Known]:
    where, scope = ("WHERE project = ?", [project]) if project else ("", [])
    rows = db.execute(f"SELECT project, id, key, size, written, file, offset FROM sessions {where}", scope)
    return {
        (name, id_): Known(key, (size, written, file), offset) for name, id_, key, size, written, file, offset in rows
    }


def _changed(store: Store, project: str, known: dict[tuple[str, str], Known]) -> Iterator[Changed]:
    """The sessions whose stamp is not the known one; those that are still there are taken out of `known`."""
    for name, session_id in store.names(project):
        path = f"{store.root}/{name}/sessions/{session_id}/{NAME}"
        try:
            stat = os.stat(path)
        except OSError:
            continue
        stamp = (stat.st_size, stat.st_mtime_ns, stat.st_ino)
        entry = known.pop((name, session_id), None)
        if entry is None or entry.stamp != stamp:
            yield Changed(name, session_id, path, stamp, entry)


class _Reading:
    """One journal, from where it was last read to its end."""

    def __init__(self, db: sqlite3.Connection, found: Changed) -> None:
        self._db = db
        self._found = found
        self._heard = Conversation()
        self._usage: dict[tuple[str, str], list[float]] = {}

    def read(self) -> None:
        key, meta, offset = self._begin()
        try:
            with open(self._found.path, "rb") as file:
                file.seek(offset)
                for frame, place, line in scan(file, Damage(), offset, meta.seq):
                    offset = place + len(line)
                    meta.seq, meta.changed = int(frame["seq"]), moment(float(frame["time"]))
                    if frame["kind"].decode("utf-8", "replace") in READ:
                        self._take(key, meta, record.decode(line))
        except NewerRecord as newer:
            meta.title = f"({newer})"
        except OSError:
            return
        self._finish(key, meta, offset)

    def _begin(self) -> tuple[int, Meta, int]:
        known, found = self._found.known, self._found
        if known and known.stamp[2] == found.stamp[2] and known.offset <= found.stamp[0]:
            (stored,) = self._db.execute("SELECT meta FROM sessions WHERE key = ?", [known.key]).fetchone()
            return known.key, msgspec.json.decode(stored, type=Meta), known.offset
        if known:
            forget(self._db, known.key)
        cursor = self._db.execute("INSERT INTO sessions(project, id) VALUES (?, ?)", [found.project, found.id])
        return cursor.lastrowid or 0, Meta(found.id), 0

    def _take(self, key: int, meta: Meta, envelope: Envelope) -> None:
        meta.take(envelope)
        event = envelope.event
        if isinstance(event, UsageReported):
            if not event.child_id:  # the child's own journal has it
                self._spend(moment(envelope.time)[:10], event)
        elif isinstance(event, Renamed):
            self._add(key, envelope, "title", spaced(event.title))
        elif not isinstance(event, PrefixBuilt) and (said := self._heard.take(envelope)):
            self._add(key, envelope, said.role, indexed(said))

    def _add(self, key: int, envelope: Envelope, role: str, text: str) -> None:
        row = [key, envelope.seq, envelope.time, role]
        cursor = self._db.execute("INSERT INTO messages(session, seq, time, role) VALUES (?, ?, ?, ?)", row)
        self._db.execute("INSERT INTO words(rowid, text) VALUES (?, ?)", [cursor.lastrowid, text])

    def _spend(self, day: str, usage: UsageReported) -> None:
        if usage.cost == 0 and not usage.tokens_in + usage.tokens_out:
            return  # no call: how full the window is after a summary
        sums = self._usage.setdefault((day, usage.model), [0] * 6)
        tokens = (usage.tokens_in, usage.tokens_out, usage.tokens_cached)
        for place, amount in enumerate((1, *tokens, usage.cost or 0.0, usage.cost is None)):
            sums[place] += amount

    def _finish(self, key: int, meta: Meta, offset: int) -> None:
        for (day, model), sums in self._usage.items():
            self._db.execute("INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", [key, day, model, *sums])
        stamp = [*self._found.stamp, offset, msgspec.json.encode(meta), key]
        self._db.execute(
            "UPDATE sessions SET size = ?, written = ?, file = ?, offset = ?, meta = ? WHERE key = ?", stamp
        )
