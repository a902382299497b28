"""What keeps the place of something protected that is absent, so that a sandbox can lock it."""

import contextlib
import fcntl
import os
import stat
import time
from collections.abc import Iterable

from ostler.processes.start_up import CONTENTS, FOLDERS

# The sticky bit does no harm, and is on no folder and no file of a person. Whoever puts a key or a password into what
# lies in a home keeps it to himself.
_FOLDER_MODE = 0o1755
_PRIVATE_FOLDER_MODE = 0o1700
_FILE_MODE = 0o1600
_TRIES = 20
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def stands_in(path: str, dir_fd: int | None = None) -> bool:
    """Whether this is a placeholder of ours, held by some session or left behind by one that was killed."""
    content = CONTENTS.get(os.path.basename(path))
    try:
        found = os.stat(path, dir_fd=dir_fd, follow_symlinks=False)
        if stat.S_IMODE(found.st_mode) != _mode(path):
            return False
        fd = os.open(path, _OPEN, dir_fd=dir_fd)
    except OSError:
        return False
    try:
        return not os.listdir(fd) if content is None else os.read(fd, len(content) + 1) == content
    except OSError:
        return False
    finally:
        os.close(fd)


def keeps_a_place(entry: "os.DirEntry[str]", folder: int) -> bool:
    """Whether an entry of an open folder is a placeholder, and no file of anybody's."""
    return (entry.name in CONTENTS or entry.is_dir(follow_symlinks=False)) and stands_in(entry.name, folder)


def give_way(name: str, folder: int) -> None:
    """Somebody makes what a placeholder keeps the place of."""
    if stands_in(name, folder):
        with contextlib.suppress(OSError):
            _remove(name, folder)


class Placeholders:
    """Folders and files where something protected is absent: nothing takes notice of them, and a sandbox can lock them.

    They are removed at the end by the session that made them, unless another session still counts on them. Nobody else
    gives what is as good as empty their mode, so one that was left behind by `kill -9` is known, and goes with the next
    session.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._held: list[tuple[str, int]] = []
        for path in paths:
            with contextlib.suppress(OSError):
                self._held.append((path, _hold(path)))

    def close(self) -> None:
        for path, held in self._held:
            _let_go(path, held)
        self._held = []


def sweep(paths: Iterable[str]) -> None:
    """Remove placeholders that no session counts on: one that was killed left them."""
    for path in paths:
        if stands_in(path):
            with contextlib.suppress(OSError):
                _let_go(path, os.open(path, _OPEN))


def _hold(path: str) -> int:
    """A placeholder, made where there is none, that stays as long as it is held; OSError when it cannot be."""
    for _ in range(_TRIES):
        if not stands_in(path):
            try:
                _make(path)
            except FileExistsError:  # a person's, or one that another session is about to make
                time.sleep(0.001)
                continue
        with contextlib.suppress(FileNotFoundError):
            held = os.open(path, _OPEN)
            fcntl.flock(held, fcntl.LOCK_SH)
            if _is_at(held, path):
                return held
            os.close(held)  # whoever held it removed it meanwhile
    raise FileExistsError(path)


def _let_go(path: str, held: int) -> None:
    with contextlib.suppress(OSError):
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_at(held, path):
            _remove(path)
    os.close(held)


def _is_at(held: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(held), os.lstat(path))
    except FileNotFoundError:
        return False


def _mode(path: str) -> int:
    name = os.path.basename(path)
    if name in CONTENTS:
        return _FILE_MODE
    return _PRIVATE_FOLDER_MODE if name in FOLDERS else _FOLDER_MODE


def _make(path: str) -> None:
    content = CONTENTS.get(os.path.basename(path))
    if content is None:
        os.mkdir(path, 0o700)
        os.chmod(path, _mode(path))
        return
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, content)
        os.fchmod(fd, _FILE_MODE)
    finally:
        os.close(fd)


def _remove(path: str, dir_fd: int | None = None) -> None:
    """One that somebody has put something into stays."""
    if CONTENTS.get(os.path.basename(path)) is None:
        os.rmdir(path, dir_fd=dir_fd)
    elif stands_in(path, dir_fd):
        os.unlink(path, dir_fd=dir_fd)
