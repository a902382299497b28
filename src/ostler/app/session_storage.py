"""Opens journals, the session store and the index according to the settings."""

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
    """Return the store of all the user's sessions."""
    return JournalStore(require_home(os.environ) / expand_path(settings.config.session.path or "projects", os.environ))


def cache_folder(settings: Settings) -> Path:
    """Return the folder of files that can be rebuilt."""
    return require_home(os.environ) / expand_path(settings.config.cache.path or "cache", os.environ)


def session_index(settings: Settings, notify: Callable[[str], None] = lambda message: None) -> "SessionIndex":
    """Return the index of the session store."""
    import zlib

    from ostler.journal.session_index import SessionIndex

    store = session_store(settings)
    name = f"sessions-{zlib.crc32(os.fsencode(store.root)):08x}.db"
    return SessionIndex(store, cache_folder(settings) / name, notify)


def open_journal(settings: Settings, cwd: Path, resume: str, fork: bool, *extra_secrets: str) -> FileJournal:
    """Open the journal of a new session, of the resumed one or of a copy; `extra_secrets` are masked in its log."""
    from ostler.app.cleanup import start_cleanup
    from ostler.app.logging_setup import make_session_log

    ensure_home(os.environ)
    store, project = session_store(settings), project_id(cwd)
    session = _find_resumed(store, project, cwd, resume) if resume else store.session(project, new_session_id())
    if fork:
        from ostler.journal.fork import fork as fork_session

        session = fork_session(store, session)
    journal = store.open(session, make_session_log(settings, session.id, session.folder, *extra_secrets))
    start_cleanup(settings, session.id)
    return journal


def find_acp_backend(settings: Settings, cwd: Path, resume: str) -> str:
    """Return the ACP backend of a stored session as a `--backend` value; empty for other backends."""
    from ostler.journal.session_meta import read_meta

    session = _find_resumed(session_store(settings), project_id(cwd), cwd, resume)
    meta = read_meta(session.folder, session.id)
    return meta.backend if meta and meta.backend.startswith("acp:") else ""


def _find_resumed(store: JournalStore, project: str, cwd: Path, resume: str) -> StoredSession:
    session = store.find(resume, project)
    if session.project == project:
        return session
    from ostler.journal.session_meta import read_meta

    meta = read_meta(session.folder, session.id)
    hint = f"resume it there: --cwd {meta.cwd}" if meta and meta.cwd else "resume it there"
    raise UsageError(f"session {session.id!r} belongs to another workspace, not to {cwd}", hint=hint)


def make_summary(session: "IndexedSession") -> SessionSummary:
    """Return the summary of an indexed session."""
    meta = session.meta
    return SessionSummary(meta.id, meta.cwd, meta.title, meta.started, meta.changed, meta.turns)
