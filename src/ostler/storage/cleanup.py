"""Deletes old cache files, and old sessions where the settings set a limit, once a day."""

import logging
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from ostler.core.errors import OstlerError
from ostler.journal.journal_store import JournalStore, StoredSession
from ostler.settings.effective import Settings
from ostler.settings.project_paths import cache_folder
from ostler.storage.session_stores import session_store

STAMP_NAME = ".tidied"
T = TypeVar("T")

HOUR, DAY, MB = 3600.0, 86400.0, 1024 * 1024


def start_cleanup(settings: Settings, keep_id: str) -> None:
    """Start the cleanup in a thread if the last one is more than a day old; the session `keep_id` is kept."""
    stamp = cache_folder(settings) / STAMP_NAME
    if _done_today(stamp):
        return
    threading.Thread(target=_clean_up, args=(settings, stamp, keep_id), name="tidy").start()


def _clean_up(settings: Settings, stamp: Path, keep_id: str) -> None:
    cache, session = settings.config.cache, settings.config.session
    try:
        stamp.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        clean_cache(stamp.parent, cache.ttl_hours, cache.max_mb, time.time())
        for session_id in delete_expired(
            session_store(settings), session.keep_days, session.max_mb, time.time(), keep_id
        ):
            logging.getLogger("ostler.journal.session").info("deleted by the settings", extra={"session": session_id})
        stamp.touch(mode=0o600)
    except OSError:
        return


def _done_today(stamp: Path) -> bool:
    try:
        return abs(time.time() - os.stat(stamp).st_mtime) < DAY
    except OSError:
        return False


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
