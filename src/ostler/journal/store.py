"""Where sessions are kept, one folder each, and how one is found again."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ostler.journal.file import NAME, FileJournal
from ostler.journal.follower import Follower
from ostler.journal.history_xnl import HistoryXnl
from ostler.journal.lock import SessionLock
from ostler.journal.meta import MetaFile, read_meta
from ostler.journal.missing import missing_told
from ostler.journal.todos_file import TodosFile
from ostler.text.regex import regex
from ostler.vocabulary.errors import UsageError

LAST = "last"
_BEGINNING = 256 * 1024
_ID = regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class Place(msgspec.Struct, frozen=True):
    """One session's folder; `project` is the name of its workspace's folder."""

    project: str
    id: str
    folder: Path

    @property
    def journal(self) -> Path:
        return self.folder / NAME


class Store:
    """All sessions below a root, as `<root>/<project>/sessions/<id>/`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def place(self, project: str, session_id: str) -> Place:
        """Where a session is or would be; the id cannot lead elsewhere."""
        if not _ID.fullmatch(session_id):
            raise UsageError(f"{session_id[:120]!r} cannot be the id of a session", hint="ostler sessions list")
        return Place(project, session_id, self.root / project / "sessions" / session_id)

    def names(self, project: str = "") -> Iterator[tuple[str, str]]:
        """Project and id of every session, or of those of one project, in no order."""
        for name in [project] if project else _names(self.root):
            for session_id in _names(self.root / name / "sessions"):
                if _ID.fullmatch(session_id):
                    yield name, session_id

    def places(self, project: str = "") -> Iterator[Place]:
        """The same with their folders."""
        return (self.place(name, session_id) for name, session_id in self.names(project))

    def find(self, wanted: str, project: str) -> Place:
        """By id, by a part of it that only one session has, or `last`; in the project, then anywhere."""
        if wanted == LAST:
            return self.latest(project)
        for scope in (project, ""):
            found = [names for names in self.names(scope) if wanted and wanted in names[1]]
            exact = [names for names in found if names[1] == wanted]
            if len(exact or found) == 1:
                return self.place(*(exact or found)[0])
            if found:
                raise UsageError(f"{len(found)} sessions have {wanted!r} in their id", hint="give more of it")
        raise UsageError(f"there is no session {wanted[:120]!r}", hint="`ostler sessions list --all` has them all")

    def latest(self, project: str) -> Place:
        """The project's session that was written to last; a child's is its parent's business.

        One in which nothing was said yet, such as a run that was refused at once, counts only if there is no other.
        """
        empty: list[Place] = []
        for place in sorted(self.places(project), key=_written, reverse=True):
            meta = read_meta(place.folder, place.id)
            if meta and meta.parent_id:
                continue
            if meta is None or meta.turns or _begun(place):
                return place
            empty.append(place)
        if empty:
            return empty[0]
        raise UsageError("there is no session in this workspace yet", hint="ostler sessions list --all")

    def open(self, place: Place, *also: Follower) -> FileJournal:
        """The session's journal, with everything that is made from it beside it."""
        folder, meta = place.folder, MetaFile(place.folder, place.id)
        journal = FileJournal(folder, place.id, (HistoryXnl(folder), meta, TodosFile(folder), *also))
        found = journal.past().damage
        accounted = found.skipped + (found.tail is not None)
        journal.damage += missing_told(journal.past(), place.id, meta.reached, accounted)
        return journal

    def delete(self, place: Place) -> None:
        """Gone at once, for everybody; a session that is open in a process is not deleted."""
        import shutil

        lock = SessionLock(place.folder, place.id)
        try:
            doomed = place.folder.with_name(f".deleted-{place.id}-{os.urandom(3).hex()}")
            place.folder.rename(doomed)
        except OSError as error:
            raise UsageError(f"session {place.id} cannot be deleted: {error.strerror}") from None
        finally:
            lock.release()
        shutil.rmtree(doomed, ignore_errors=True)


def new_id() -> str:
    """Sorts by time, and cannot be guessed."""
    now = time.time()
    return (
        time.strftime("%Y-%m-%dT%H-%M-%S", time.gmtime(now)) + f"-{int(now * 1000) % 1000:03}Z-" + os.urandom(3).hex()
    )


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _begun(place: Place) -> bool:
    """Whether a turn began, also where a crash kept it from being counted; a first one stands near the beginning."""
    try:
        with place.journal.open("rb") as file:
            return b'"turn_started"' in file.read(_BEGINNING)
    except OSError:
        return False


def _written(place: Place) -> int:
    try:
        return place.journal.stat().st_mtime_ns
    except OSError:
        return 0
