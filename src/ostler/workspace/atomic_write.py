"""Replaces, creates and appends files atomically."""

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ostler.workspace.file_reading import READ_FLAGS, read_all, read_up_to
from ostler.workspace.jail import EntryHandle, closing_fd

_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LOCK_ATTEMPTS = 200
_NO_HARDLINK_ERRNOS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV)


class ConcurrentChangeError(Exception):
    """Raised when the file changed while a write was prepared."""


def replace(
    entry: EntryHandle, data: bytes, before: bytes, found: os.stat_result, mode: int | None = None, *, sync: bool = True
) -> None:
    """Replace an existing file, keeping its owner and, unless `mode` is given, its mode."""
    with _temporary_file(entry, data, 0o600, sync=sync) as name:
        with EntryHandle(entry.directory_fd, name, name).open(os.O_RDONLY) as fd:
            _copy_owner(fd, entry, found)
            os.fchmod(fd, found.st_mode & 0o777 if mode is None else mode)
        with directory_lock(entry.directory_fd):
            if not _is_unchanged(entry, before):
                raise ConcurrentChangeError
            os.rename(name, entry.name, src_dir_fd=entry.directory_fd, dst_dir_fd=entry.directory_fd)


def create(entry: EntryHandle, data: bytes, mode: int | None = None, *, sync: bool = True) -> None:
    """Create a file. Raises `ConcurrentChangeError` if it already exists."""
    with _temporary_file(entry, data, 0o666, mode, sync=sync) as name:
        try:
            os.link(
                name, entry.name, src_dir_fd=entry.directory_fd, dst_dir_fd=entry.directory_fd, follow_symlinks=False
            )
        except FileExistsError:
            raise ConcurrentChangeError from None
        except OSError as error:
            if error.errno not in _NO_HARDLINK_ERRNOS:
                raise
            with directory_lock(entry.directory_fd):
                if entry.stat() is not None:
                    raise ConcurrentChangeError from None
                os.rename(name, entry.name, src_dir_fd=entry.directory_fd, dst_dir_fd=entry.directory_fd)


def overwrite(entry: EntryHandle, data: bytes, before: bytes, mode: int | None = None) -> None:
    """Overwrite a file in place, for files with several hard links. The old content is restored on failure."""
    with entry.open(os.O_RDWR) as fd, directory_lock(entry.directory_fd):
        if read_up_to(fd, len(before) + 1) != before:
            raise ConcurrentChangeError
        try:
            if len(data) > len(before) and hasattr(os, "posix_fallocate"):
                os.posix_fallocate(fd, 0, len(data))  # fails on a full disk before old bytes are lost
            _rewrite(fd, data)
        except OSError:
            with suppress(OSError):
                _rewrite(fd, before)
            raise
        if mode is not None:
            os.fchmod(fd, mode)


def append(entry: EntryHandle, data: bytes) -> os.stat_result:
    """Append bytes to a file, created if missing, and sync them to disk."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    with closing_fd(os.open(entry.name, flags, 0o666, dir_fd=entry.directory_fd)) as fd:
        size = os.fstat(fd).st_size
        try:
            _write_all(fd, data)
            os.fsync(fd)
        except OSError:
            with suppress(OSError):
                os.ftruncate(fd, size)
            raise
        return os.fstat(fd)


def read_current(entry: EntryHandle) -> bytes | None:
    """Return the bytes of a file, or None if it does not exist."""
    try:
        with entry.open(READ_FLAGS) as fd:
            return read_all(fd, entry.relative)
    except FileNotFoundError:
        return None


def _is_unchanged(entry: EntryHandle, before: bytes) -> bool:
    """Return whether a file still contains exactly the bytes `before`."""
    try:
        with entry.open(READ_FLAGS) as fd:
            return read_up_to(fd, len(before) + 1) == before
    except FileNotFoundError:
        return False


@contextmanager
def _temporary_file(
    entry: EntryHandle, data: bytes, mode: int, exact_mode: int | None = None, *, sync: bool
) -> Iterator[str]:
    """Write the bytes to a temporary file in the same directory; removed on exit unless it was renamed."""
    name = f".ostler-{os.urandom(8).hex()}.tmp"
    new_fd = os.open(name, _CREATE_FLAGS, mode, dir_fd=entry.directory_fd)
    try:
        with closing_fd(new_fd) as fd:
            _write_all(fd, data)
            if exact_mode is not None:
                os.fchmod(fd, exact_mode)
            if sync:
                os.fsync(fd)
        yield name
    finally:
        with suppress(OSError):
            os.unlink(name, dir_fd=entry.directory_fd)


def _copy_owner(fd: int, entry: EntryHandle, found: os.stat_result) -> None:
    """Copy owner and extended attributes from the file to be replaced, as far as permitted."""
    current = os.fstat(fd)
    if (current.st_uid, current.st_gid) != (found.st_uid, found.st_gid):
        with suppress(OSError):
            os.fchown(fd, found.st_uid, found.st_gid)
    if hasattr(os, "listxattr"):
        _copy_attributes(fd, entry)


def _copy_attributes(fd: int, entry: EntryHandle) -> None:
    with suppress(OSError), entry.open(READ_FLAGS) as old:
        for name in os.listxattr(old):
            with suppress(OSError):
                os.setxattr(fd, name, os.getxattr(old, name))


@contextmanager
def directory_lock(directory: int) -> Iterator[None]:
    """Lock a directory against other Ostler processes while a file is checked and renamed."""
    for _ in range(_LOCK_ATTEMPTS):
        try:
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            time.sleep(0.01)
        except OSError:
            break  # a file system without locks
    try:
        yield
    finally:
        with suppress(OSError):
            fcntl.flock(directory, fcntl.LOCK_UN)


def _rewrite(fd: int, data: bytes) -> None:
    os.lseek(fd, 0, os.SEEK_SET)
    _write_all(fd, data)
    os.ftruncate(fd, len(data))
    os.fsync(fd)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
