"""Bytes put in a file's place whole and at once, or not at all."""

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ostler.workspace.file_reading import READ_FLAGS, read_all, read_up_to
from ostler.workspace.jail import EntryHandle

_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LOCK_ATTEMPTS = 200
_NO_HARDLINK_ERRNOS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV)


class ConcurrentChangeError(Exception):
    """What stood in the place when the write was prepared stands there no more."""


def replace(
    entry: EntryHandle, data: bytes, before: bytes, found: os.stat_result, mode: int | None = None, *, sync: bool = True
) -> None:
    """Put new bytes in the place of an existing file's, its owner kept, and its mode if no other is named."""
    with _temporary_file(entry, data, 0o600, sync=sync) as name:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=entry.directory_fd)
        try:
            _copy_owner(fd, entry, found)
            os.fchmod(fd, found.st_mode & 0o777 if mode is None else mode)
        finally:
            os.close(fd)
        with directory_lock(entry.directory_fd):
            if not _is_unchanged(entry, before):
                raise ConcurrentChangeError
            os.rename(name, entry.name, src_dir_fd=entry.directory_fd, dst_dir_fd=entry.directory_fd)


def create(entry: EntryHandle, data: bytes, mode: int | None = None, *, sync: bool = True) -> None:
    """Make a file that was not there; never over one that came meanwhile."""
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
    """Write into the file itself, for one that has other names; what was there is put back if that fails."""
    fd = os.open(entry.name, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=entry.directory_fd)
    try:
        with directory_lock(entry.directory_fd):
            if read_up_to(fd, len(before) + 1) != before:
                raise ConcurrentChangeError
            try:
                if len(data) > len(before) and hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(fd, 0, len(data))  # a full disk shows before the old bytes are gone
                _rewrite(fd, data)
            except OSError:
                with suppress(OSError):
                    _rewrite(fd, before)
                raise
            if mode is not None:
                os.fchmod(fd, mode)
    finally:
        os.close(fd)


def append(entry: EntryHandle, data: bytes) -> os.stat_result:
    """Put bytes at the end of a file, made if it is not there; they are on disk when this returns."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    fd = os.open(entry.name, flags, 0o666, dir_fd=entry.directory_fd)
    try:
        size = os.fstat(fd).st_size
        try:
            _write_all(fd, data)
            os.fsync(fd)
        except OSError:
            with suppress(OSError):
                os.ftruncate(fd, size)
            raise
        return os.fstat(fd)
    finally:
        os.close(fd)


def read_current(entry: EntryHandle) -> bytes | None:
    """The bytes that stand in a place, None for nothing."""
    try:
        fd = os.open(entry.name, READ_FLAGS | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=entry.directory_fd)
    except FileNotFoundError:
        return None
    try:
        return read_all(fd, entry.relative)
    finally:
        os.close(fd)


def _is_unchanged(entry: EntryHandle, before: bytes) -> bool:
    """Whether a place holds the very bytes it held before."""
    try:
        fd = os.open(entry.name, READ_FLAGS | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=entry.directory_fd)
    except FileNotFoundError:
        return False
    try:
        return read_up_to(fd, len(before) + 1) == before
    finally:
        os.close(fd)


@contextmanager
def _temporary_file(
    entry: EntryHandle, data: bytes, mode: int, exact_mode: int | None = None, *, sync: bool
) -> Iterator[str]:
    """A file of the new bytes beside the old one; gone afterwards if it did not take its place."""
    name = f".ostler-{os.urandom(8).hex()}.tmp"
    fd = os.open(name, _CREATE_FLAGS, mode, dir_fd=entry.directory_fd)
    try:
        try:
            _write_all(fd, data)
            if exact_mode is not None:
                os.fchmod(fd, exact_mode)
            if sync:
                os.fsync(fd)
        finally:
            os.close(fd)
        yield name
    finally:
        with suppress(OSError):
            os.unlink(name, dir_fd=entry.directory_fd)


def _copy_owner(fd: int, entry: EntryHandle, found: os.stat_result) -> None:
    """Give a file the owner and the attributes of the one it will replace, as far as allowed."""
    mine = os.fstat(fd)
    if (mine.st_uid, mine.st_gid) != (found.st_uid, found.st_gid):
        with suppress(OSError):
            os.fchown(fd, found.st_uid, found.st_gid)
    if hasattr(os, "listxattr"):
        _copy_attributes(fd, entry)


def _copy_attributes(fd: int, entry: EntryHandle) -> None:
    with suppress(OSError):
        old = os.open(entry.name, READ_FLAGS | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=entry.directory_fd)
        try:
            for name in os.listxattr(old):
                with suppress(OSError):
                    os.setxattr(fd, name, os.getxattr(old, name))
        finally:
            os.close(old)


@contextmanager
def directory_lock(directory: int) -> Iterator[None]:
    """The moment of check and rename, kept from every other Ostler on this machine."""
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
