"""Deletes old cache files, and old sessions where the settings set a limit."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from ostler.core.errors import OstlerError
from ostler.journal.journal_store import JournalStore, StoredSession

T = TypeVar("T")
HOUR, DAY, MB = 3600.0, 86400.0, 1024 * 1024


def clean_cache(folder: Path, ttl_hours: int, max_mb: int, now: float) -> int:
    """Delete files not written for `ttl_hours`, then the oldest until `max_mb` is met. Return how many were deleted."""
    files = sorted(_files(folder))
    recent = [entry for entry in files if now - entry[0] <= ttl_hours * HOUR]
    to_delete = [path for written, _, path in files if now - written > ttl_hours * HOUR]
    to_delete += [path for _, _, path in _over_limit(recent, max_mb * MB)]
    for path in to_delete:
        path.unlink(missing_ok=True)
    return len(to_delete)


def delete_expired(
    store: JournalStore, keep_days: int | None, max_mb: int | None, now: float, keep_id: str = ""
) -> list[str]:
    """Delete sessions not written for `keep_days`, then the oldest until `max_mb` is met. Return the deleted ids.

    A limit of None is not applied. Open sessions and the session `keep_id` are never deleted.
    """
    if keep_days is None and max_mb is None:
        return []
    sessions = sorted(_sessions(store, keep_id), key=lambda entry: entry[0])
    old = [session for written, _, session in sessions if keep_days is not None and now - written > keep_days * DAY]
    recent = [entry for entry in sessions if entry[2] not in old]
    large = [session for _, _, session in _over_limit(recent, max_mb * MB)] if max_mb is not None else []
    return [session.id for session in (*old, *large) if _try_delete(store, session)]


def _over_limit(entries: list[tuple[float, int, T]], max_bytes: int) -> Iterator[tuple[float, int, T]]:
    """Yield the entries to delete, from the first on, until the others fit into `max_bytes`."""
    size = sum(entry[1] for entry in entries)
    for entry in entries:
        if size <= max_bytes:
            return
        size -= entry[1]
        yield entry


def _files(folder: Path) -> Iterator[tuple[float, int, Path]]:
    for directory, _, names in os.walk(folder):
        for name in names:
            path = Path(directory, name)
            try:
                stat = path.lstat()
            except OSError:
                continue
            yield stat.st_mtime, stat.st_size, path


def _sessions(store: JournalStore, keep_id: str) -> Iterator[tuple[float, int, StoredSession]]:
    for session in store.sessions():
        try:
            stat = session.journal_path.stat()
        except OSError:
            continue
        if session.id != keep_id:
            yield stat.st_mtime, stat.st_size, session


def _try_delete(store: JournalStore, session: StoredSession) -> bool:
    try:
        store.delete(session)
    except OstlerError:
        return False
    return True
