"""Joins the settings to what is kept: where sessions, their index and the cache are, and how one is opened."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ostler.journal.file import FileJournal
from ostler.journal.store import Place, Store, new_id
from ostler.settings.effective import Settings
from ostler.settings.home import ensure_home, expand, home, project_id
from ostler.vocabulary.errors import UsageError
from ostler.vocabulary.sessions import SessionSummary

if TYPE_CHECKING:
    from ostler.journal.index import Index, Listed


def session_store(settings: Settings) -> Store:
    """All sessions of this person."""
    return Store(home(os.environ) / expand(settings.config.session.path or "projects", os.environ))


def cache_folder(settings: Settings) -> Path:
    """What can be made again."""
    return home(os.environ) / expand(settings.config.cache.path or "cache", os.environ)


def session_index(settings: Settings, say: Callable[[str], None] = lambda told: None) -> "Index":
    """The index over them."""
    import zlib

    from ostler.journal.index import Index

    store = session_store(settings)
    name = f"sessions-{zlib.crc32(os.fsencode(store.root)):08x}.db"
    return Index(store, cache_folder(settings) / name, say)


def open_journal(settings: Settings, cwd: Path, resume: str, fork: bool, *known: str) -> FileJournal:
    """The journal of a new session, of the one that is meant, or of a copy; `known` are secrets no log may tell."""
    from ostler.app.logs import session_log
    from ostler.app.tidying import tidy_soon

    ensure_home(os.environ)
    store, project = session_store(settings), project_id(cwd)
    place = _resumed(store, project, cwd, resume) if resume else store.place(project, new_id())
    if fork:
        from ostler.journal.fork import fork as copied

        place = copied(store, place)
    journal = store.open(place, session_log(settings, place.id, place.folder, *known))
    tidy_soon(settings, place.id)
    return journal


def agent_before(settings: Settings, cwd: Path, resume: str) -> str:
    """The ACP agent that a session is with, as `--backend` takes it; empty where Ostler itself works in it."""
    from ostler.journal.meta import read_meta

    place = _resumed(session_store(settings), project_id(cwd), cwd, resume)
    meta = read_meta(place.folder, place.id)
    return meta.backend if meta and meta.backend.startswith("acp:") else ""


def _resumed(store: Store, project: str, cwd: Path, resume: str) -> Place:
    place = store.find(resume, project)
    if place.project == project:
        return place
    from ostler.journal.meta import read_meta

    meta = read_meta(place.folder, place.id)
    hint = f"go on with it there: --cwd {meta.cwd}" if meta and meta.cwd else "go on with it there"
    raise UsageError(f"there is no session {place.id!r} for {cwd}, it belongs to another workspace", hint=hint)


def summary(listed: "Listed") -> SessionSummary:
    """One line of a list."""
    meta = listed.meta
    return SessionSummary(meta.id, meta.cwd, meta.title, meta.started, meta.changed, meta.turns)
