"""What may be thrown away: cached things that are old, and sessions only where the person set a bound for them."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from ostler.core.errors import OstlerError
from ostler.journal.journal_store import JournalStore, StoredSession

T = TypeVar("T")
HOUR, DAY, MB = 3600.0, 86400.0, 1024 * 1024


def clean_cache(folder: Path, ttl_hours: int, max_mb: int, now: float) -> int:
    """Remove files that were not written for so long, then the oldest until the rest fits; says how many went."""
    files = sorted(_files(folder))
    fresh = [entry for entry in files if now - entry[0] <= ttl_hours * HOUR]
    doomed = [path for written, _, path in files if now - written > ttl_hours * HOUR]
    doomed += [path for _, _, path in _over_limit(fresh, max_mb * MB)]
    for path in doomed:
        path.unlink(missing_ok=True)
    return len(doomed)


def delete_expired(
    store: JournalStore, keep_days: int | None, max_mb: int | None, now: float, keep_id: str = ""
) -> list[str]:
    """Delete sessions that nobody wrote to for so many days, then the oldest until the rest fits; says which went.

    Without a bound nothing is ever deleted; nor is a session that is open, or the one to spare.
    """
    if keep_days is None and max_mb is None:
        return []
    sessions = sorted(_sessions(store, keep_id), key=lambda entry: entry[0])
    old = [place for written, _, place in sessions if keep_days is not None and now - written > keep_days * DAY]
    fresh = [entry for entry in sessions if entry[2] not in old]
    large = [place for _, _, place in _over_limit(fresh, max_mb * MB)] if max_mb is not None else []
    return [place.id for place in (*old, *large) if _try_delete(store, place)]


def _over_limit(entries: list[tuple[float, int, T]], max_bytes: int) -> Iterator[tuple[float, int, T]]:
    """The oldest of some entries that must go so that the rest is small enough."""
    size = sum(entry[1] for entry in entries)
    for entry in entries:
        if size <= max_bytes:
            return
        size -= entry[1]
        yield entry


def _files(folder: Path) -> Iterator[tuple[float, int, Path]]:
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place, name)
            try:
                stat = path.lstat()
            except OSError:
                continue
            yield stat.st_mtime, stat.st_size, path


def _sessions(store: JournalStore, keep_id: str) -> Iterator[tuple[float, int, StoredSession]]:
    for place in store.sessions():
        try:
            stat = place.journal_path.stat()
        except OSError:
            continue
        if place.id != keep_id:
            yield stat.st_mtime, stat.st_size, place


def _try_delete(store: JournalStore, session: StoredSession) -> bool:
    try:
        store.delete(session)
    except OstlerError:
        return False
    return True
