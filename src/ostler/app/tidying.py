"""Tidies up once a day, beside the work: the cache by its age and size, sessions only where the settings say so."""

import logging
import os
import threading
import time
from pathlib import Path

from ostler.app.sessions import cache_folder, session_store
from ostler.settings.effective import Settings

STAMP = ".tidied"
DAY = 86400.0


def tidy_soon(settings: Settings, spare: str) -> None:
    """In a thread of its own, if it was not done today."""
    stamp = cache_folder(settings) / STAMP
    if _done_today(stamp):
        return
    threading.Thread(target=_tidy, args=(settings, stamp, spare), name="tidy").start()


def _tidy(settings: Settings, stamp: Path, spare: str) -> None:
    from ostler.journal.tidy import clean_cache, expire

    cache, kept = settings.config.cache, settings.config.session
    try:
        stamp.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        clean_cache(stamp.parent, cache.ttl_hours, cache.max_mb, time.time())
        for session_id in expire(session_store(settings), kept.keep_days, kept.max_mb, time.time(), spare):
            logging.getLogger("ostler.journal.session").info("deleted by the settings", extra={"session": session_id})
        stamp.touch(mode=0o600)
    except OSError:
        return


def _done_today(stamp: Path) -> bool:
    try:
        return abs(time.time() - os.stat(stamp).st_mtime) < DAY
    except OSError:
        return False
