"""The user's stored sessions as files, according to the settings."""

import os
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from ostler.core.errors import UsageError
from ostler.core.protocols import Journal
from ostler.core.sessions import SessionQuery, SessionSummary
from ostler.journal.journal_store import JournalStore, StoredSession, new_session_id
from ostler.settings.effective import Settings
from ostler.settings.home import ensure_home, expand_path, project_id, require_home
from ostler.settings.project_paths import cache_folder

if TYPE_CHECKING:
    from ostler.journal.session_index import IndexedSession, SessionIndex


def session_store(settings: Settings) -> JournalStore:
    """Return the store of all the user's sessions."""
    return JournalStore(require_home(os.environ) / expand_path(settings.config.session.path or "projects", os.environ))


def session_index(settings: Settings, notify: Callable[[str], None] = lambda message: None) -> "SessionIndex":
    """Return the index of the session store."""
    import zlib

    from ostler.journal.session_index import SessionIndex

    store = session_store(settings)
    name = f"sessions-{zlib.crc32(os.fsencode(store.root)):08x}.db"
    return SessionIndex(store, cache_folder(settings) / name, notify)


class FileStore:
    """Implements `Store` with a folder per session and a search index."""

    def __init__(self, settings: Settings, *extra_secrets: str) -> None:
        """`extra_secrets` are masked in the sessions' logs."""
        self._settings = settings
        self._extra_secrets = extra_secrets

    def open(self, project: str, session_id: str = "") -> Journal:
        from ostler.storage.cleanup import start_cleanup
        from ostler.storage.logging_setup import make_session_log

        ensure_home(os.environ)
        store = session_store(self._settings)
        session = store.session(project, session_id or new_session_id())
        log = make_session_log(self._settings, session.id, session.folder, *self._extra_secrets)
        journal = store.open(session, log)
        start_cleanup(self._settings, session.id)
        return journal

    def find(self, project: str, session_ref: str) -> str:
        session = session_store(self._settings).find(session_ref, project)
        if session.project == project:
            return session.id
        from ostler.journal.session_meta import read_meta

        meta = read_meta(session.folder, session.id)
        hint = f"resume it there: --cwd {meta.cwd}" if meta and meta.cwd else "resume it there"
        raise UsageError(f"session {session.id!r} belongs to another workspace", hint=hint)

    def backend(self, session_id: str) -> str:
        from ostler.journal.session_meta import read_meta

        session = self._require(session_id)
        meta = read_meta(session.folder, session.id)
        return meta.backend if meta else ""

    def list(self, query: SessionQuery) -> Sequence[SessionSummary]:
        project = project_id(Path(query.cwd)) if query.cwd else ""
        with closing(session_index(self._settings)) as index:
            if query.text:
                return [make_summary(hit.session) for hit in index.search(query.text, project, query.limit)]
            return [make_summary(session) for session in index.sessions(project, query.limit)]

    def fork(self, session_id: str, seq: int = 0) -> str:
        from ostler.journal.fork import fork

        return fork(session_store(self._settings), self._require(session_id), seq).id

    def rename(self, session_id: str, title: str) -> None:
        from ostler.session.offline import rename

        with closing(session_store(self._settings).open(self._require(session_id))) as journal:
            rename(journal, title)

    def delete(self, session_id: str) -> None:
        session_store(self._settings).delete(self._require(session_id))
        with closing(session_index(self._settings)) as index:
            index.purge()

    def _require(self, session_id: str) -> StoredSession:
        session = session_store(self._settings).find_exact(session_id)
        if session is None:
            raise UsageError(f"session {session_id[:120]!r} not found")
        return session


class EphemeralStore:
    """Implements `Store` for sessions that are not saved."""

    def open(self, project: str, session_id: str = "") -> Journal:
        from ostler.journal.memory_journal import MemoryJournal

        return MemoryJournal(session_id or new_session_id())

    def find(self, project: str, session_ref: str) -> str:
        raise UsageError("an --ephemeral run cannot resume a session", hint="remove --ephemeral")

    def backend(self, session_id: str) -> str:
        return ""

    def list(self, query: SessionQuery) -> Sequence[SessionSummary]:
        return ()

    def fork(self, session_id: str, seq: int = 0) -> str:
        raise self._not_saved()

    def rename(self, session_id: str, title: str) -> None:
        raise self._not_saved()

    def delete(self, session_id: str) -> None:
        raise self._not_saved()

    @staticmethod
    def _not_saved() -> UsageError:
        return UsageError("sessions are not saved with --ephemeral", hint="start without it")


def make_summary(session: "IndexedSession") -> SessionSummary:
    """Return the summary of an indexed session."""
    meta = session.meta
    return SessionSummary(meta.id, meta.cwd, meta.title, meta.started, meta.changed, meta.turns)
