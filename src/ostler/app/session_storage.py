"""Joins the settings to what is kept: where sessions, their index and the cache are, and how one is opened."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ostler.core.errors import UsageError
from ostler.core.sessions import SessionSummary
from ostler.journal.file_journal import FileJournal
from ostler.journal.journal_store import JournalStore, StoredSession, new_session_id
from ostler.settings.effective import Settings
from ostler.settings.home import ensure_home, expand_path, project_id, require_home

if TYPE_CHECKING:
    from ostler.journal.session_index import IndexedSession, SessionIndex


def session_store(settings: Settings) -> JournalStore:
    """All sessions of this person."""
    return JournalStore(require_home(os.environ) / expand_path(settings.config.session.path or "projects", os.environ))


def cache_folder(settings: Settings) -> Path:
    """What can be made again."""
    return require_home(os.environ) / expand_path(settings.config.cache.path or "cache", os.environ)


def session_index(settings: Settings, notify: Callable[[str], None] = lambda told: None) -> "SessionIndex":
    """The index over them."""
    import zlib

    from ostler.journal.session_index import SessionIndex

    store = session_store(settings)
    name = f"sessions-{zlib.crc32(os.fsencode(store.root)):08x}.db"
    return SessionIndex(store, cache_folder(settings) / name, notify)


def open_journal(settings: Settings, cwd: Path, resume: str, fork: bool, *extra_secrets: str) -> FileJournal:
    """The journal of a new session, of the one that is meant, or of a copy; `known` are secrets no log may tell."""
    from ostler.app.cleanup import start_cleanup
    from ostler.app.logging_setup import make_session_log

    ensure_home(os.environ)
    store, project = session_store(settings), project_id(cwd)
    place = _find_resumed(store, project, cwd, resume) if resume else store.session(project, new_session_id())
    if fork:
        from ostler.journal.fork import fork as copied

        place = copied(store, place)
    journal = store.open(place, make_session_log(settings, place.id, place.folder, *extra_secrets))
    start_cleanup(settings, place.id)
    return journal


def find_acp_backend(settings: Settings, cwd: Path, resume: str) -> str:
    """The ACP agent that a session is with, as `--backend` takes it; empty where Ostler itself works in it."""
    from ostler.journal.session_meta import read_meta

    place = _find_resumed(session_store(settings), project_id(cwd), cwd, resume)
    meta = read_meta(place.folder, place.id)
    return meta.backend if meta and meta.backend.startswith("acp:") else ""


def _find_resumed(store: JournalStore, project: str, cwd: Path, resume: str) -> StoredSession:
    place = store.find(resume, project)
    if place.project == project:
        return place
    from ostler.journal.session_meta import read_meta

    meta = read_meta(place.folder, place.id)
    hint = f"go on with it there: --cwd {meta.cwd}" if meta and meta.cwd else "go on with it there"
    raise UsageError(f"there is no session {place.id!r} for {cwd}, it belongs to another workspace", hint=hint)


def make_summary(session: "IndexedSession") -> SessionSummary:
    """One line of a list."""
    meta = session.meta
    return SessionSummary(meta.id, meta.cwd, meta.title, meta.started, meta.changed, meta.turns)
