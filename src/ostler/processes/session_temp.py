"""A session's own temporary folder, gone with the session, or with a later one if this one was killed."""

import contextlib
import fcntl
import os
import shutil
import tempfile
import time

_PREFIX = "ostler-session-"
_MIN_AGE_SECONDS = 60.0  # seconds: younger ones may not have been locked yet


class SessionTempFolder:
    """Made when it is first needed. A lock on it says that the session lives; the kernel drops it when that ends."""

    def __init__(self) -> None:
        self._path = ""
        self._lock = -1

    def subfolder(self, name: str) -> str:
        """The real path of a folder in it, which nobody else can enter."""
        if not self._path:
            self._path = os.path.realpath(tempfile.mkdtemp(prefix=_PREFIX))
            self._lock = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            fcntl.flock(self._lock, fcntl.LOCK_SH)
        path = os.path.join(self._path, name)
        os.makedirs(path, mode=0o700, exist_ok=True)
        return path

    def remove(self) -> None:
        """It, and what killed sessions of ours left behind."""
        if not self._path:
            return
        shutil.rmtree(self._path, ignore_errors=True)
        os.close(self._lock)
        _remove_stale(os.path.dirname(self._path))
        self._path = ""


def _remove_stale(parent: str) -> None:
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(_PREFIX) and entry.is_dir(follow_symlinks=False):
                with contextlib.suppress(OSError):
                    _remove_if_dead(entry.path, entry.stat(follow_symlinks=False))


def _remove_if_dead(path: str, found: os.stat_result) -> None:
    if found.st_uid != os.geteuid() or time.time() - found.st_mtime < _MIN_AGE_SECONDS:
        return
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(folder)
