"""Where sessions are kept, one folder each, and how one is found again."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ostler.core.errors import UsageError
from ostler.journal.file_journal import JOURNAL_NAME, FileJournal
from ostler.journal.history_xnl import HistoryXnl
from ostler.journal.lock import SessionLock
from ostler.journal.missing_records import describe_missing
from ostler.journal.observer import JournalObserver
from ostler.journal.session_meta import MetaFile, read_meta
from ostler.journal.todos_file import TodosFile
from ostler.text.lazy_regex import lazy_regex

LAST = "last"
_HEAD_BYTES = 256 * 1024
_ID = lazy_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class StoredSession(msgspec.Struct, frozen=True):
    """One session's folder; `project` is the name of its workspace's folder."""

    project: str
    id: str
    folder: Path

    @property
    def journal_path(self) -> Path:
        return self.folder / JOURNAL_NAME


class JournalStore:
    """All sessions below a root, as `<root>/<project>/sessions/<id>/`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def session(self, project: str, session_id: str) -> StoredSession:
        """Where a session is or would be; the id cannot lead elsewhere."""
        if not _ID.fullmatch(session_id):
            raise UsageError(f"{session_id[:120]!r} cannot be the id of a session", hint="ostler sessions list")
        return StoredSession(project, session_id, self.root / project / "sessions" / session_id)

    def session_keys(self, project: str = "") -> Iterator[tuple[str, str]]:
        """Project and id of every session, or of those of one project, in no order."""
        for name in [project] if project else _list_names(self.root):
            for session_id in _list_names(self.root / name / "sessions"):
                if _ID.fullmatch(session_id):
                    yield name, session_id

    def sessions(self, project: str = "") -> Iterator[StoredSession]:
        """The same with their folders."""
        return (self.session(name, session_id) for name, session_id in self.session_keys(project))

    def find(self, session_ref: str, project: str) -> StoredSession:
        """By id, by a part of it that only one session has, or `last`; in the project, then anywhere."""
        if session_ref == LAST:
            return self.latest(project)
        for scope in (project, ""):
            found = [names for names in self.session_keys(scope) if session_ref and session_ref in names[1]]
            exact = [names for names in found if names[1] == session_ref]
            if len(exact or found) == 1:
                return self.session(*(exact or found)[0])
            if found:
                raise UsageError(f"{len(found)} sessions have {session_ref!r} in their id", hint="give more of it")
        raise UsageError(f"there is no session {session_ref[:120]!r}", hint="`ostler sessions list --all` has them all")

    def latest(self, project: str) -> StoredSession:
        """The project's session that was written to last; a child's is its parent's business.

        One in which nothing was said yet, such as a run that was refused at once, counts only if there is no other.
        """
        empty: list[StoredSession] = []
        for place in sorted(self.sessions(project), key=_modified_ns, reverse=True):
            meta = read_meta(place.folder, place.id)
            if meta and meta.parent_id:
                continue
            if meta is None or meta.turns or _has_turns(place):
                return place
            empty.append(place)
        if empty:
            return empty[0]
        raise UsageError("there is no session in this workspace yet", hint="ostler sessions list --all")

    def open(self, session: StoredSession, *observers: JournalObserver) -> FileJournal:
        """The session's journal, with everything that is made from it beside it."""
        folder, meta = session.folder, MetaFile(session.folder, session.id)
        journal = FileJournal(folder, session.id, (HistoryXnl(folder), meta, TodosFile(folder), *observers))
        found = journal.records().damage
        accounted = found.skipped + (found.tail_offset is not None)
        journal.damage += describe_missing(journal.records(), session.id, meta.written_seq, accounted)
        return journal

    def delete(self, session: StoredSession) -> None:
        """Gone at once, for everybody; a session that is open in a process is not deleted."""
        import shutil

        lock = SessionLock(session.folder, session.id)
        try:
            doomed = session.folder.with_name(f".deleted-{session.id}-{os.urandom(3).hex()}")
            session.folder.rename(doomed)
        except OSError as error:
            raise UsageError(f"session {session.id} cannot be deleted: {error.strerror}") from None
        finally:
            lock.release()
        shutil.rmtree(doomed, ignore_errors=True)


def new_session_id() -> str:
    """Sorts by time, and cannot be guessed."""
    now = time.time()
    return (
        time.strftime("%Y-%m-%dT%H-%M-%S", time.gmtime(now)) + f"-{int(now * 1000) % 1000:03}Z-" + os.urandom(3).hex()
    )


def _list_names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _has_turns(session: StoredSession) -> bool:
    """Whether a turn began, also where a crash kept it from being counted; a first one stands near the beginning."""
    try:
        with session.journal_path.open("rb") as file:
            return b'"turn_started"' in file.read(_HEAD_BYTES)
    except OSError:
        return False


def _modified_ns(session: StoredSession) -> int:
    try:
        return session.journal_path.stat().st_mtime_ns
    except OSError:
        return 0
