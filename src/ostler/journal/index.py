"""Finds sessions by their words, their workspace and their time, through an index that is made up as they grow."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from ostler.journal.index_tables import open_index
from ostler.journal.index_update import refresh
from ostler.journal.meta import Meta
from ostler.journal.search_text import query, unspaced
from ostler.journal.store import Store

T = TypeVar("T")
MARK, END = "\x02", "\x03"


class Listed(msgspec.Struct, frozen=True):
    """One session of a list."""

    project: str
    meta: Meta
    size: int


class Hit(msgspec.Struct, frozen=True):
    """Where a session has the words: the newest message that has them all."""

    session: Listed
    number: int
    role: str
    time: float
    snippet: str


class Spent(msgspec.Struct, frozen=True):
    """What model calls took on one day; `unpriced` of them have no known price."""

    day: str
    model: str
    calls: int
    tokens_in: int
    tokens_out: int
    tokens_cached: int
    cost: float
    unpriced: int


class Index:
    """The sessions of a store; every question first looks which of them changed."""

    def __init__(self, store: Store, path: Path, say: Callable[[str], None] = lambda told: None) -> None:
        self._store = store
        self._path = path
        self._say = say
        self._db = open_index(path)

    def close(self) -> None:
        self._db.close()

    def sessions(self, project: str = "", limit: int = 50, *, children: bool = False) -> list[Listed]:
        """The sessions that changed last, newest first."""
        listed = [one for one in self._ask(self._listed, project) if children or not one.meta.parent_id]
        return sorted(listed, key=lambda one: (one.meta.changed, one.meta.id), reverse=True)[:limit]

    def search(self, words: str, project: str = "", limit: int = 20) -> Sequence[Hit]:
        """The sessions that have all the words in one message, newest first; then those with longer ones."""
        return self._ask(lambda scope: self._found(words, scope, limit), project)

    def spent(self, project: str = "") -> Sequence[Spent]:
        """What was used, by day and model."""
        return self._ask(self._spent, project)

    def purge(self) -> None:
        """Leave no trace of sessions that are gone, not even of their words."""
        self._ask(lambda scope: self._db.execute("INSERT INTO words(words) VALUES ('optimize')"), "")

    def _ask(self, question: Callable[[str], T], project: str) -> T:
        try:
            refresh(self._db, self._store, project, self._say)
            return question(project)
        except sqlite3.DatabaseError:
            self._db.close()
            self._path.unlink(missing_ok=True)
            self._db = open_index(self._path)
        refresh(self._db, self._store, project, self._say)
        return question(project)

    # -- questions -----------------------------------------------------------------------------------------------

    def _listed(self, project: str) -> list[Listed]:
        where, scope = ("WHERE project = ?", [project]) if project else ("", [])
        rows = self._db.execute(f"SELECT project, meta, size FROM sessions {where}", scope)
        return [Listed(name, msgspec.json.decode(meta, type=Meta), size) for name, meta, size in rows]

    def _found(self, words: str, project: str, limit: int) -> list[Hit]:
        found: dict[str, Hit] = {}
        for terms in (query(words), query(words, beginnings=True)):
            if terms and len(found) < limit:
                for hit in self._hits(terms, project, limit):
                    found.setdefault(hit.session.meta.id, hit)
        return list(found.values())[:limit]

    def _hits(self, terms: str, project: str, limit: int) -> list[Hit]:
        newest: dict[int, int] = {}
        allowed = set(self._keys(project)) if project else None
        matches = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC"
        for (number,) in self._db.execute(matches, [terms]):
            (session,) = self._db.execute("SELECT session FROM messages WHERE number = ?", [number]).fetchone()
            if allowed is None or session in allowed:
                newest.setdefault(session, number)
            if len(newest) >= limit:
                break
        return [self._hit(terms, number) for number in newest.values()]

    def _hit(self, terms: str, number: int) -> Hit:
        told = f"snippet(words, 0, '{MARK}', '{END}', '…', 24)"
        (snippet,) = self._db.execute(
            f"SELECT {told} FROM words WHERE words MATCH ? AND rowid = ?", [terms, number]
        ).fetchone()
        seq, time, role, project, meta, size = self._db.execute(
            "SELECT m.seq, m.time, m.role, s.project, s.meta, s.size FROM messages m JOIN sessions s "
            "ON s.key = m.session WHERE m.number = ?",
            [number],
        ).fetchone()
        listed = Listed(project, msgspec.json.decode(meta, type=Meta), size)
        return Hit(listed, seq, role, time, unspaced(snippet))

    def _spent(self, project: str) -> list[Spent]:
        where, scope = ("WHERE s.project = ?", [project]) if project else ("", [])
        rows = self._db.execute(
            "SELECT day, model, sum(calls), sum(tokens_in), sum(tokens_out), sum(tokens_cached), sum(cost), "
            f"sum(unpriced) FROM usage u JOIN sessions s ON s.key = u.session {where} GROUP BY day, model ORDER BY day",
            scope,
        )
        return [Spent(*row) for row in rows]

    def _keys(self, project: str) -> Iterator[int]:
        return (key for (key,) in self._db.execute("SELECT key FROM sessions WHERE project = ?", [project]))
