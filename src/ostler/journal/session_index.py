"""Lists and searches sessions through an SQLite index that is updated on each query."""

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from ostler.journal.index_schema import open_index
from ostler.journal.index_update import refresh
from ostler.journal.journal_store import JournalStore
from ostler.journal.search_text import join_cjk, to_fts_query
from ostler.journal.session_meta import SessionMeta

T = TypeVar("T")
HIT_START, HIT_END = "\x02", "\x03"


class IndexedSession(msgspec.Struct, frozen=True):
    """A session in the index."""

    project: str
    meta: SessionMeta
    size: int


class SearchHit(msgspec.Struct, frozen=True):
    """A session that matches a search, with its latest matching message."""

    session: IndexedSession
    number: int
    role: str
    time: float
    snippet: str


class UsageRow(msgspec.Struct, frozen=True):
    """The usage of one model on one day; `unpriced` is the number of calls without a known price."""

    day: str
    model: str
    calls: int
    tokens_in: int
    tokens_out: int
    tokens_cached: int
    cost: float
    unpriced: int


class SessionIndex:
    """The sessions of a store; every query updates the index first."""

    def __init__(self, store: JournalStore, path: Path, report: Callable[[str], None] = lambda text: None) -> None:
        self._store = store
        self._path = path
        self._report = report
        self._db = open_index(path)

    def close(self) -> None:
        self._db.close()

    def sessions(self, project: str = "", limit: int = 50, *, children: bool = False) -> list[IndexedSession]:
        """Return the sessions, most recently changed first."""
        listed = [
            session for session in self._run(self._list_sessions, project) if children or not session.meta.parent_id
        ]
        return sorted(listed, key=lambda session: (session.meta.changed, session.meta.id), reverse=True)[:limit]

    def search(self, text: str, project: str = "", limit: int = 20) -> Sequence[SearchHit]:
        """Return sessions with all words in one message, latest first, then those that match by prefix."""
        return self._run(lambda scope: self._search(text, scope, limit), project)

    def usage(self, project: str = "") -> Sequence[UsageRow]:
        """Return the usage by day and model."""
        return self._run(self._read_usage, project)

    def purge(self) -> None:
        """Remove all traces of deleted sessions, including their words in the full-text index."""
        self._run(lambda scope: self._db.execute("INSERT INTO words(words) VALUES ('optimize')"), "")

    def _run(self, lookup: Callable[[str], T], project: str) -> T:
        try:
            refresh(self._db, self._store, project, self._report)
            return lookup(project)
        except sqlite3.DatabaseError:
            self._db.close()
            self._path.unlink(missing_ok=True)
            self._db = open_index(self._path)
        refresh(self._db, self._store, project, self._report)
        return lookup(project)

    # -- queries -----------------------------------------------------------------------------------------------

    def _list_sessions(self, project: str) -> list[IndexedSession]:
        where, scope = ("WHERE project = ?", [project]) if project else ("", [])
        rows = self._db.execute(f"SELECT project, meta, size FROM sessions {where}", scope)
        return [IndexedSession(name, msgspec.json.decode(meta, type=SessionMeta), size) for name, meta, size in rows]

    def _search(self, text: str, project: str, limit: int) -> list[SearchHit]:
        hits: dict[str, SearchHit] = {}
        for terms in (to_fts_query(text), to_fts_query(text, match_prefixes=True)):
            if terms and len(hits) < limit:
                for hit in self._find_hits(terms, project, limit):
                    hits.setdefault(hit.session.meta.id, hit)
        return list(hits.values())[:limit]

    def _find_hits(self, terms: str, project: str, limit: int) -> list[SearchHit]:
        newest: dict[int, int] = {}
        keys = "SELECT key FROM sessions WHERE project = ?"
        allowed = {key for (key,) in self._db.execute(keys, [project])} if project else None
        matches = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC"
        for (number,) in self._db.execute(matches, [terms]):
            (session,) = self._db.execute("SELECT session FROM messages WHERE number = ?", [number]).fetchone()
            if allowed is None or session in allowed:
                newest.setdefault(session, number)
            if len(newest) >= limit:
                break
        return [self._read_hit(terms, number) for number in newest.values()]

    def _read_hit(self, terms: str, number: int) -> SearchHit:
        snippet_sql = f"snippet(words, 0, '{HIT_START}', '{HIT_END}', '…', 24)"
        (snippet,) = self._db.execute(
            f"SELECT {snippet_sql} FROM words WHERE words MATCH ? AND rowid = ?", [terms, number]
        ).fetchone()
        seq, time, role, project, meta, size = self._db.execute(
            "SELECT m.seq, m.time, m.role, s.project, s.meta, s.size FROM messages m JOIN sessions s "
            "ON s.key = m.session WHERE m.number = ?",
            [number],
        ).fetchone()
        listed = IndexedSession(project, msgspec.json.decode(meta, type=SessionMeta), size)
        return SearchHit(listed, seq, role, time, join_cjk(snippet))

    def _read_usage(self, project: str) -> list[UsageRow]:
        where, scope = ("WHERE s.project = ?", [project]) if project else ("", [])
        rows = self._db.execute(
            "SELECT day, model, sum(calls), sum(tokens_in), sum(tokens_out), sum(tokens_cached), sum(cost), "
            f"sum(unpriced) FROM usage u JOIN sessions s ON s.key = u.session {where} GROUP BY day, model ORDER BY day",
            scope,
        )
        return [UsageRow(*row) for row in rows]
