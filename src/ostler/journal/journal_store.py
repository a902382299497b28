"""Finds, opens and deletes sessions on disk; one folder per session."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ostler.core.errors import UsageError
from ostler.journal.file_journal import JOURNAL_NAME, FileJournal, JournalObserver
from ostler.journal.history_xnl import HistoryXnl
from ostler.journal.lock import SessionLock
from ostler.journal.scan import describe_missing
from ostler.journal.session_meta import MetaFile, read_meta
from ostler.journal.todos_file import TodosFile
from ostler.text.lazy_regex import lazy_regex

LAST = "last"
_HEAD_BYTES = 256 * 1024
_ID = lazy_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class StoredSession(msgspec.Struct, frozen=True):
    """A session on disk; `project` is the name of its workspace's folder in the store."""

    project: str
    id: str
    folder: Path

    @property
    def journal_path(self) -> Path:
        return self.folder / JOURNAL_NAME

    @property
    def modified_ns(self) -> int:
        """When the journal was last written, or 0 if there is none."""
        try:
            return self.journal_path.stat().st_mtime_ns
        except OSError:
            return 0


class JournalStore:
    """All sessions below a root, as `<root>/<project>/sessions/<id>/`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def session(self, project: str, session_id: str) -> StoredSession:
        """Return where a session is or would be stored. Raises `UsageError` if the id is invalid."""
        check_session_id(session_id)
        return StoredSession(project, session_id, self.root / project / "sessions" / session_id)

    def session_keys(self, project: str = "") -> Iterator[tuple[str, str]]:
        """Yield project and id of all sessions, or of one project's, in any order."""
        for name in [project] if project else _list_names(self.root):
            for session_id in _list_names(self.root / name / "sessions"):
                if _ID.fullmatch(session_id):
                    yield name, session_id

    def sessions(self, project: str = "") -> Iterator[StoredSession]:
        """Yield all sessions, or one project's, in any order."""
        return (self.session(name, session_id) for name, session_id in self.session_keys(project))

    def find(self, session_ref: str, project: str) -> StoredSession:
        """Find a session by its id, by a unique part of it, or by `last`; in the project first, then anywhere.

        Raises `UsageError` if there is none or if several match.
        """
        if session_ref == LAST:
            return self.latest(project)
        for scope in (project, ""):
            matches = [key for key in self.session_keys(scope) if session_ref and session_ref in key[1]]
            exact = [key for key in matches if key[1] == session_ref]
            if len(exact or matches) == 1:
                return self.session(*(exact or matches)[0])
            if matches:
                raise UsageError(
                    f"{len(matches)} session ids contain {session_ref!r}", hint="use a longer part of the id"
                )
        raise UsageError(
            f"session {session_ref[:120]!r} not found", hint="list all sessions with `ostler sessions list --all`"
        )

    def find_exact(self, session_id: str, project: str = "") -> StoredSession | None:
        """Return the session with exactly this id, in the project if one is given, or None."""
        keys = (key for key in self.session_keys(project) if key[1] == session_id)
        found = next(keys, None)
        return self.session(*found) if found else None

    def latest(self, project: str) -> StoredSession:
        """Return the project's session that was written last, except child sessions.

        A session without a turn, such as a run that was refused, is returned only if there is no other.
        """
        empty: list[StoredSession] = []
        for session in sorted(self.sessions(project), key=lambda session: session.modified_ns, reverse=True):
            meta = read_meta(session.folder, session.id)
            if meta and meta.parent_id:
                continue
            if meta is None or meta.turns or _has_turns(session):
                return session
            empty.append(session)
        if empty:
            return empty[0]
        raise UsageError("no session in this workspace yet", hint="list all sessions with `ostler sessions list --all`")

    def open(self, session: StoredSession, *observers: JournalObserver) -> FileJournal:
        """Open a session's journal together with the files derived from it."""
        folder, meta = session.folder, MetaFile(session.folder, session.id)
        journal = FileJournal(folder, session.id, (HistoryXnl(folder), meta, TodosFile(folder), *observers))
        damage = journal.records().damage
        known_lost = damage.skipped + (damage.tail_offset is not None)
        journal.damage += describe_missing(journal.records(), session.id, meta.written_seq, known_lost)
        return journal

    def delete(self, session: StoredSession) -> None:
        """Delete a session. Raises `JournalError` if a process has it open, `UsageError` if it cannot be renamed."""
        import shutil

        lock = SessionLock(session.folder, session.id)
        try:
            trash = session.folder.with_name(f".deleted-{session.id}-{os.urandom(3).hex()}")
            session.folder.rename(trash)
        except OSError as error:
            raise UsageError(f"cannot delete session {session.id}: {error.strerror}") from None
        finally:
            lock.release()
        shutil.rmtree(trash, ignore_errors=True)


def check_session_id(session_id: str) -> None:
    """Raise `UsageError` if the id is invalid."""
    if not _ID.fullmatch(session_id):
        raise UsageError(f"invalid session id {session_id[:120]!r}", hint="list sessions with `ostler sessions list`")


def new_session_id(random_bytes: int = 3) -> str:
    """Return a new id that sorts by time and is hard to guess."""
    now = time.time()
    seconds = time.strftime("%Y-%m-%dT%H-%M-%S", time.gmtime(now))
    return f"{seconds}-{int(now * 1000) % 1000:03}Z-{os.urandom(random_bytes).hex()}"


def _list_names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _has_turns(session: StoredSession) -> bool:
    """Return whether a turn was started, by looking at the beginning of the journal; `meta.json` may be outdated."""
    try:
        with session.journal_path.open("rb") as file:
            return b'"turn_started"' in file.read(_HEAD_BYTES)
    except OSError:
        return False
