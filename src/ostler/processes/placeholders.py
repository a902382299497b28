"""Creates placeholders for protected paths that do not exist, so that the sandbox can lock them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import time

from ostler.processes.startup_files import STARTUP_FILES, STARTUP_FOLDERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# The sticky bit marks a placeholder: it is harmless, and users' files do not have it. Placeholders in a home directory
# are private, in case the user puts a key or a password into one.
_FOLDER_MODE = 0o1755
_PRIVATE_FOLDER_MODE = 0o1700
_FILE_MODE = 0o1600
_MAX_ATTEMPTS = 20
_OPEN_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def is_placeholder(path: str, dir_fd: int | None = None) -> bool:
    """Return whether a path is a placeholder, of a running session or left by a killed one."""
    content = STARTUP_FILES.get(os.path.basename(path))
    try:
        found = os.stat(path, dir_fd=dir_fd, follow_symlinks=False)
        if stat.S_IMODE(found.st_mode) != _placeholder_mode(path):
            return False
        fd = os.open(path, _OPEN_FLAGS, dir_fd=dir_fd)
    except OSError:
        return False
    try:
        return not os.listdir(fd) if content is None else os.read(fd, len(content) + 1) == content
    except OSError:
        return False
    finally:
        os.close(fd)


def entry_is_placeholder(entry: os.DirEntry[str], folder: int) -> bool:
    """Return whether an entry of an open folder is a placeholder."""
    return (entry.name in STARTUP_FILES or entry.is_dir(follow_symlinks=False)) and is_placeholder(entry.name, folder)


def remove_placeholder(name: str, folder: int) -> None:
    """Remove a placeholder so that the real file can be created."""
    if is_placeholder(name, folder):
        with contextlib.suppress(OSError):
            _remove(name, folder)


class Placeholders:
    """Harmless folders and files in place of missing protected paths, so that a sandbox can lock them.

    `placeholder_process` creates them and removes them at the end of the sandbox, unless another session still uses
    them. They are recognised by their mode and content: the next session removes those left by a crash of the system.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._locks: list[tuple[str, int]] = []
        for path in paths:
            with contextlib.suppress(OSError):
                self._locks.append((path, _create_and_lock(path)))

    def close(self) -> None:
        for path, fd in self._locks:
            _release(path, fd)
        self._locks = []


def remove_stale_placeholders(paths: Iterable[str]) -> None:
    """Remove placeholders that no running session uses."""
    for path in paths:
        if is_placeholder(path):
            with contextlib.suppress(OSError):
                _release(path, os.open(path, _OPEN_FLAGS))


def _create_and_lock(path: str) -> int:
    """Create a placeholder if there is none, and lock it against removal. Return its descriptor; raises `OSError`."""
    for _ in range(_MAX_ATTEMPTS):
        if not is_placeholder(path):
            try:
                _create(path)
            except FileExistsError:  # a real file, or another session is creating it
                time.sleep(0.001)
                continue
        with contextlib.suppress(FileNotFoundError):
            fd = os.open(path, _OPEN_FLAGS)
            fcntl.flock(fd, fcntl.LOCK_SH)
            if _is_same_file(fd, path):
                return fd
            os.close(fd)  # removed by another session in the meantime
    raise FileExistsError(path)


def _release(path: str, fd: int) -> None:
    with contextlib.suppress(OSError):
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_same_file(fd, path):
            _remove(path)
    os.close(fd)


def _is_same_file(fd: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.lstat(path))
    except FileNotFoundError:
        return False


def _placeholder_mode(path: str) -> int:
    name = os.path.basename(path)
    if name in STARTUP_FILES:
        return _FILE_MODE
    return _PRIVATE_FOLDER_MODE if name in STARTUP_FOLDERS else _FOLDER_MODE


def _create(path: str) -> None:
    content = STARTUP_FILES.get(os.path.basename(path))
    if content is None:
        os.mkdir(path, 0o700)
        os.chmod(path, _placeholder_mode(path))
        return
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, content)
        os.fchmod(fd, _FILE_MODE)
    finally:
        os.close(fd)


def _remove(path: str, dir_fd: int | None = None) -> None:
    """Remove a placeholder, unless something was written to it."""
    if STARTUP_FILES.get(os.path.basename(path)) is None:
        os.rmdir(path, dir_fd=dir_fd)
    elif is_placeholder(path, dir_fd):
        os.unlink(path, dir_fd=dir_fd)
