"""Copies a session, up to a given record, into a new one."""

import os
from collections.abc import Iterable

from ostler.core.errors import JournalError, UsageError
from ostler.core.events import RemoteCursor
from ostler.core.session_view import Records
from ostler.journal.file_journal import JOURNAL_NAME, read_journal, sync_folders
from ostler.journal.journal_store import JournalStore, StoredSession, new_session_id

# Permission rules, queued prompts and usage belong to the original session only.
NOT_FORKED = frozenset(("rule_added", "rule_revoked", "queued", "usage_reported", "server_state_changed"))


def fork(store: JournalStore, source: StoredSession, seq: int = 0) -> StoredSession:
    """Copy a session's records up to and including number `seq`, or all of them, into a new session.

    Raises `UsageError` if there is no record `seq`.
    """
    records = read_journal(source.journal_path)
    end = records.index_after(seq) if seq else len(records)
    if seq and (not end or records[end - 1].seq != seq):
        raise UsageError(f"session {source.id} has no record {seq}", hint=f"ostler sessions show {source.id}")
    lines = (records.line(index) for index in range(end) if _is_copied(records, index))
    return create_session(store, source.project, lines)


def _is_copied(records: Records, index: int) -> bool:
    """Return whether a copy has a record. A remote session belongs to the original, unless it can be copied too."""
    if records.type_at(index) != "far_mark":
        return records.type_at(index) not in NOT_FORKED
    event = records[index].event
    return isinstance(event, RemoteCursor) and bool(event.session)


def create_session(store: JournalStore, project: str, lines: Iterable[bytes]) -> StoredSession:
    """Create a session with these records, atomically."""
    session = store.session(project, new_session_id())
    folder = session.folder.with_name(f".new-{session.id}")
    try:
        folder.mkdir(parents=True, mode=0o700)
        with open(
            os.open(folder / JOURNAL_NAME, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb"
        ) as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
        folder.rename(session.folder)
        sync_folders(session.folder)
    except OSError as error:
        raise JournalError(f"cannot create a session in {session.folder.parent}: {error.strerror}") from error
    store.open(session).close()
    return session
