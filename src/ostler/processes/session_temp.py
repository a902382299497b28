"""The temporary folder of a session; removed at its end, or by a later session if it was killed."""

import contextlib
import fcntl
import os
import shutil
import tempfile
import time

_PREFIX = "ostler-session-"
_MIN_AGE_SECONDS = 60.0  # younger folders may not be locked yet


class SessionTempFolder:
    """A folder created on first use. It is locked while the session lives; the kernel releases the lock at its end."""

    def __init__(self) -> None:
        self._path = ""
        self._lock = -1

    def subfolder(self, name: str) -> str:
        """Return the real path of a private subfolder, created if missing."""
        if not self._path:
            self._path = os.path.realpath(tempfile.mkdtemp(prefix=_PREFIX))
            self._lock = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            fcntl.flock(self._lock, fcntl.LOCK_SH)
        path = os.path.join(self._path, name)
        os.makedirs(path, mode=0o700, exist_ok=True)
        return path

    def remove(self) -> None:
        """Remove the folder, and those of killed sessions."""
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
