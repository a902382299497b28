"""Bytes put in a file's place whole and at once, or not at all."""

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ostler.workspace.files import READ, read_up_to, read_whole
from ostler.workspace.jail import Spot

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_WAIT = 200
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV)


class ChangedMeanwhileError(Exception):
    """What stood in the place when the write was prepared stands there no more."""


def replace(
    spot: Spot, data: bytes, before: bytes, found: os.stat_result, mode: int | None = None, *, sync: bool = True
) -> None:
    """Put new bytes in the place of an existing file's, its owner kept, and its mode if no other is named."""
    with _temporary(spot, data, 0o600, sync=sync) as name:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=spot.directory)
        try:
            _take_over(fd, spot, found)
            os.fchmod(fd, found.st_mode & 0o777 if mode is None else mode)
        finally:
            os.close(fd)
        with alone(spot.directory):
            if not _still(spot, before):
                raise ChangedMeanwhileError
            os.rename(name, spot.name, src_dir_fd=spot.directory, dst_dir_fd=spot.directory)


def create(spot: Spot, data: bytes, mode: int | None = None, *, sync: bool = True) -> None:
    """Make a file that was not there; never over one that came meanwhile."""
    with _temporary(spot, data, 0o666, mode, sync=sync) as name:
        try:
            os.link(name, spot.name, src_dir_fd=spot.directory, dst_dir_fd=spot.directory, follow_symlinks=False)
        except FileExistsError:
            raise ChangedMeanwhileError from None
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            with alone(spot.directory):
                if spot.stat() is not None:
                    raise ChangedMeanwhileError from None
                os.rename(name, spot.name, src_dir_fd=spot.directory, dst_dir_fd=spot.directory)


def overwrite(spot: Spot, data: bytes, before: bytes, mode: int | None = None) -> None:
    """Write into the file itself, for one that has other names; what was there is put back if that fails."""
    fd = os.open(spot.name, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=spot.directory)
    try:
        with alone(spot.directory):
            if read_up_to(fd, len(before) + 1) != before:
                raise ChangedMeanwhileError
            try:
                if len(data) > len(before) and hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(fd, 0, len(data))  # a full disk shows before the old bytes are gone
                _fill(fd, data)
            except OSError:
                with suppress(OSError):
                    _fill(fd, before)
                raise
            if mode is not None:
                os.fchmod(fd, mode)
    finally:
        os.close(fd)


def append(spot: Spot, data: bytes) -> os.stat_result:
    """Put bytes at the end of a file, made if it is not there; they are on disk when this returns."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    fd = os.open(spot.name, flags, 0o666, dir_fd=spot.directory)
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


def current(spot: Spot) -> bytes | None:
    """The bytes that stand in a place, None for nothing."""
    try:
        fd = os.open(spot.name, READ | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=spot.directory)
    except FileNotFoundError:
        return None
    try:
        return read_whole(fd, spot.relative)
    finally:
        os.close(fd)


def _still(spot: Spot, before: bytes) -> bool:
    """Whether a place holds the very bytes it held before."""
    try:
        fd = os.open(spot.name, READ | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=spot.directory)
    except FileNotFoundError:
        return False
    try:
        return read_up_to(fd, len(before) + 1) == before
    finally:
        os.close(fd)


@contextmanager
def _temporary(spot: Spot, data: bytes, mode: int, exact: int | None = None, *, sync: bool) -> Iterator[str]:
    """A file of the new bytes beside the old one; gone afterwards if it did not take its place."""
    name = f".ostler-{os.urandom(8).hex()}.tmp"
    fd = os.open(name, _CREATE, mode, dir_fd=spot.directory)
    try:
        try:
            _write_all(fd, data)
            if exact is not None:
                os.fchmod(fd, exact)
            if sync:
                os.fsync(fd)
        finally:
            os.close(fd)
        yield name
    finally:
        with suppress(OSError):
            os.unlink(name, dir_fd=spot.directory)


def _take_over(fd: int, spot: Spot, found: os.stat_result) -> None:
    """Give a file the owner and the attributes of the one it will replace, as far as allowed."""
    mine = os.fstat(fd)
    if (mine.st_uid, mine.st_gid) != (found.st_uid, found.st_gid):
        with suppress(OSError):
            os.fchown(fd, found.st_uid, found.st_gid)
    if hasattr(os, "listxattr"):
        _copy_attributes(fd, spot)


def _copy_attributes(fd: int, spot: Spot) -> None:
    with suppress(OSError):
        old = os.open(spot.name, READ | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=spot.directory)
        try:
            for name in os.listxattr(old):
                with suppress(OSError):
                    os.setxattr(fd, name, os.getxattr(old, name))
        finally:
            os.close(old)


@contextmanager
def alone(directory: int) -> Iterator[None]:
    """The moment of check and rename, kept from every other Ostler on this machine."""
    for _ in range(_WAIT):
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


def _fill(fd: int, data: bytes) -> None:
    os.lseek(fd, 0, os.SEEK_SET)
    _write_all(fd, data)
    os.ftruncate(fd, len(data))
    os.fsync(fd)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
