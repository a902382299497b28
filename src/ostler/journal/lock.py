"""Lock that lets one process at a time open a session."""

import fcntl
import os
from pathlib import Path

from ostler.core.errors import JournalError

LOCK_NAME = "lock"


class SessionLock:
    """An exclusive lock on a session's folder, held until `release` or the end of the process.

    Raises `JournalError` if another process holds it or the session was just deleted.
    """

    def __init__(self, folder: Path, session_id: str) -> None:
        self._file = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            deleted = not os.path.samestat(os.fstat(self._file), os.stat(folder / LOCK_NAME))
        except BlockingIOError:
            os.close(self._file)
            raise JournalError(
                f"session {session_id} is open in another process",
                code="session_busy",
                hint=f"close it there, or work on a copy: ostler sessions fork {session_id}",
            ) from None
        except FileNotFoundError:
            deleted = True
        if deleted:
            os.close(self._file)
            raise JournalError(f"session {session_id} was just deleted", code="session_gone")

    def release(self) -> None:
        os.close(self._file)


def is_locked(folder: Path) -> bool:
    """Return whether a process has the session in this folder open."""
    try:
        file = os.open(folder / LOCK_NAME, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False
