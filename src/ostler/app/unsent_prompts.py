"""Finds what waited to be sent when a process was killed: it stands in the journals of this workspace."""

import os

from ostler.core.errors import OstlerError
from ostler.core.events import Queued
from ostler.journal.file_journal import read_journal
from ostler.journal.journal_store import JournalStore, StoredSession
from ostler.journal.lock import is_locked
from ostler.session.offline import take_queued

# Whoever was killed wrote to one of the newest sessions.
RECENT_SESSIONS = 5
# What waits was told in the turn that was cut, so not far from the end; a prompt is not held up by a long past.
TAIL_BYTES = 4 * 1024 * 1024
_QUEUED_MARKER = b'"queued"'


def take_unsent_prompts(store: JournalStore, project: str) -> str:
    """What sessions that nobody plays any more had waiting; it is taken, so nobody else gets it."""
    newest = sorted(store.sessions(project), key=_modified_at, reverse=True)[:RECENT_SESSIONS]
    texts: list[str] = []
    for place in reversed(newest):
        if not is_locked(place.folder) and _has_queued(place):
            texts += _take_queued(store, place)
    return "\n".join(texts)


def _has_queued(session: StoredSession) -> bool:
    """Whether the last word on what waits there is that something does; most journals have none."""
    try:
        with session.journal_path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
            if _QUEUED_MARKER not in file.read():
                return False
        past = read_journal(session.journal_path)
    except (OSError, OstlerError):
        return False
    last = next((at for at in reversed(range(len(past))) if past.type_at(at) == "queued"), None)
    event = past[last].event if last is not None else None
    return isinstance(event, Queued) and bool(event.texts)


def _take_queued(store: JournalStore, session: StoredSession) -> tuple[str, ...]:
    try:
        journal = store.open(session)
    except OstlerError:
        return ()
    try:
        return take_queued(journal)
    except OstlerError:
        return ()
    finally:
        journal.close()


def _modified_at(session: StoredSession) -> int:
    try:
        return os.stat(session.journal_path).st_mtime_ns
    except OSError:
        return 0
