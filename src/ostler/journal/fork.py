"""A new session out of an old one, from any of its records on."""

import os
from collections.abc import Iterable

from ostler.journal.file import NAME, read_past, sync_folders
from ostler.journal.store import Place, Store, new_id
from ostler.vocabulary.errors import JournalError, UsageError

# What a person allowed one session, what waits to be said in it, and what it spent, is that session's own; so is its
# place at a far side.
NOT_FORKED = frozenset(("rule_added", "rule_revoked", "queued", "far_mark", "usage_reported"))


def fork(store: Store, source: Place, at: int = 0) -> Place:
    """A new session with a source's records up to and including a number, or with all of them."""
    past = read_past(source.journal)
    end = past.after(at) if at else len(past)
    if at and (not end or past[end - 1].seq != at):
        raise UsageError(f"session {source.id} has no record {at}", hint=f"ostler sessions show {source.id}")
    lines = (past.line(index) for index in range(end) if past.kind(index) not in NOT_FORKED)
    return write_new(store, source.project, lines)


def write_new(store: Store, project: str, lines: Iterable[bytes]) -> Place:
    """A session of these records: there whole, or not at all."""
    place = store.place(project, new_id())
    folder = place.folder.with_name(f".new-{place.id}")
    try:
        folder.mkdir(parents=True, mode=0o700)
        with open(os.open(folder / NAME, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
        folder.rename(place.folder)
        sync_folders(place.folder)
    except OSError as error:
        raise JournalError(f"cannot keep a new session in {place.folder.parent}: {error.strerror}") from error
    store.open(place).close()
    return place
