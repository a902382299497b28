"""A locked file for each process that uses a database, which shows the others whether it still runs."""

import fcntl
import os
from contextlib import suppress
from pathlib import Path


class ProcessMark:
    """The mark of this process. The kernel releases the lock when the process ends, also by `kill -9`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(mode=0o700, exist_ok=True)
        for name in os.listdir(folder):
            self.is_running(name)  # removes the marks of ended processes
        while True:
            self.name = os.urandom(16).hex()
            path = folder / self.name
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._file, fcntl.LOCK_EX)
            if path.exists():  # another process may have removed it before it was locked
                return
            os.close(self._file)

    def is_running(self, name: str) -> bool:
        """Return whether the process with this mark still runs."""
        if not name:
            return False
        path = self._folder / name
        try:
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            path.unlink(missing_ok=True)
        except BlockingIOError:
            return True
        finally:
            os.close(file)
        return False

    def remove(self) -> None:
        with suppress(OSError):
            (self._folder / self.name).unlink(missing_ok=True)
        os.close(self._file)
