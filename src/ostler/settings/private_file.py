"""Reads and atomically replaces files that only the current user may write (trust, grants, credentials)."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ostler.core.errors import UsageError
from ostler.settings.home import error_text

MAX_BYTES = 16 * 1024 * 1024


@contextmanager
def locked_for_change(file: Path) -> Iterator[None]:
    """Lock a file against other processes while it is read, changed and written. Raises `UsageError`."""
    import fcntl

    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(file.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error_text(error)}") from None


def read_private(file: Path, forbidden_mode: int = 0o022) -> bytes:
    """Read a file that only the current user can have written. Return b"" if it does not exist.

    `forbidden_mode` has the permissions that the file must not have.

    Raises `ValueError` if the file is not safe to use, or `OSError`.
    """
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise ValueError("it is not a regular file")
        if found.st_uid != os.geteuid() or found.st_mode & 0o022:
            raise ValueError("other users could have written it")
        if found.st_mode & forbidden_mode:
            raise ValueError("other users can read it; run `chmod 600` on it")
        if found.st_size > MAX_BYTES:
            raise ValueError("it is too large")
        return os.read(descriptor, MAX_BYTES)
    finally:
        os.close(descriptor)


def replace_private(file: Path, data: bytes) -> None:
    """Replace a file atomically. A symlink in its place is replaced, not followed."""
    from tempfile import mkstemp

    descriptor, name = mkstemp(dir=file.parent, prefix=".new-")
    try:
        with open(descriptor, "wb") as new:
            new.write(data)
            new.flush()
            os.fsync(descriptor)
        os.replace(name, file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
