"""A new session out of an old one, from any of its records on."""

import os
from collections.abc import Iterable

from ostler.core.errors import JournalError, UsageError
from ostler.journal.file_journal import JOURNAL_NAME, read_journal, sync_folders
from ostler.journal.journal_store import JournalStore, StoredSession, new_session_id

# What a person allowed one session, what waits to be said in it, and what it spent, is that session's own; so is its
# place at a far side.
NOT_FORKED = frozenset(("rule_added", "rule_revoked", "queued", "far_mark", "usage_reported"))


def fork(store: JournalStore, source: StoredSession, seq: int = 0) -> StoredSession:
    """A new session with a source's records up to and including a number, or with all of them."""
    past = read_journal(source.journal_path)
    end = past.index_after(seq) if seq else len(past)
    if seq and (not end or past[end - 1].seq != seq):
        raise UsageError(f"session {source.id} has no record {seq}", hint=f"ostler sessions show {source.id}")
    lines = (past.line(index) for index in range(end) if past.type_at(index) not in NOT_FORKED)
    return create_session(store, source.project, lines)


def create_session(store: JournalStore, project: str, lines: Iterable[bytes]) -> StoredSession:
    """A session of these records: there whole, or not at all."""
    place = store.session(project, new_session_id())
    folder = place.folder.with_name(f".new-{place.id}")
    try:
        folder.mkdir(parents=True, mode=0o700)
        with open(
            os.open(folder / JOURNAL_NAME, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb"
        ) as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
        folder.rename(place.folder)
        sync_folders(place.folder)
    except OSError as error:
        raise JournalError(f"cannot keep a new session in {place.folder.parent}: {error.strerror}") from error
    store.open(place).close()
    return place
