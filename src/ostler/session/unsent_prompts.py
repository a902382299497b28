"""Recovers queued prompts from sessions whose process was killed."""

import os
from contextlib import closing

from ostler.core.errors import OstlerError
from ostler.core.events import Queued
from ostler.journal.file_journal import read_journal
from ostler.journal.journal_store import JournalStore, StoredSession
from ostler.journal.lock import is_locked
from ostler.session.offline import take_queued

# A killed process wrote to one of the newest sessions.
RECENT_SESSIONS = 5
# The queue was recorded in the interrupted turn, near the end of the journal; reading all of it would be slow.
TAIL_BYTES = 4 * 1024 * 1024
_QUEUED_MARKER = b'"queued"'


def take_unsent_prompts(store: JournalStore, project: str) -> str:
    """Return the queued prompts of recent sessions that no process has open, and remove them there."""
    newest = sorted(store.sessions(project), key=lambda session: session.modified_ns, reverse=True)[:RECENT_SESSIONS]
    texts: list[str] = []
    for session in reversed(newest):
        if not is_locked(session.folder) and _has_queued(session):
            texts += _take_queued(store, session)
    return "\n".join(texts)


def _has_queued(session: StoredSession) -> bool:
    """Return whether the last `queued` record has prompts; a search in the tail rules out most journals."""
    try:
        with session.journal_path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
            if _QUEUED_MARKER not in file.read():
                return False
        records = read_journal(session.journal_path)
    except (OSError, OstlerError):
        return False
    indexes = reversed(range(len(records)))
    last = next((index for index in indexes if records.type_at(index) == "queued"), None)
    event = records[last].event if last is not None else None
    return isinstance(event, Queued) and bool(event.texts)


def _take_queued(store: JournalStore, session: StoredSession) -> tuple[str, ...]:
    try:
        with closing(store.open(session)) as journal:
            return take_queued(journal)
    except OstlerError:
        return ()
