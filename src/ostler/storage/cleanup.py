"""Starts the daily cleanup of cache and expired sessions in a thread."""

import logging
import os
import threading
import time
from pathlib import Path

from ostler.settings.effective import Settings
from ostler.settings.project_paths import cache_folder
from ostler.storage.session_stores import session_store

STAMP_NAME = ".tidied"
DAY_SECONDS = 86400.0


def start_cleanup(settings: Settings, keep_id: str) -> None:
    """Start the cleanup in a thread if the last one is more than a day old; the session `keep_id` is kept."""
    stamp = cache_folder(settings) / STAMP_NAME
    if _done_today(stamp):
        return
    threading.Thread(target=_clean_up, args=(settings, stamp, keep_id), name="tidy").start()


def _clean_up(settings: Settings, stamp: Path, keep_id: str) -> None:
    from ostler.journal.cleanup import clean_cache, delete_expired

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
        return abs(time.time() - os.stat(stamp).st_mtime) < DAY_SECONDS
    except OSError:
        return False
