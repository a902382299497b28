"""What keeps the place of something protected that is absent, so that a sandbox can lock it."""

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterable

from ostler.processes.start_up import CONTENTS

# The sticky bit does no harm, and is on no folder and no file of a person.
_FOLDER_MODE = 0o1755
_FILE_MODE = 0o1644
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def stands_in(path: str, dir_fd: int | None = None) -> bool:
    """Whether this is a placeholder of ours, held by some session or left behind by one that was killed."""
    content = CONTENTS.get(os.path.basename(path))
    try:
        found = os.stat(path, dir_fd=dir_fd, follow_symlinks=False)
        if stat.S_IMODE(found.st_mode) != (_FOLDER_MODE if content is None else _FILE_MODE):
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
                if not stands_in(path):
                    _make(path)
                held = os.open(path, _OPEN)
                fcntl.flock(held, fcntl.LOCK_SH)
                self._held.append((path, held))

    def close(self) -> None:
        for path, held in self._held:
            with contextlib.suppress(OSError):
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(path)
            os.close(held)
        self._held = []


def _make(path: str) -> None:
    content = CONTENTS.get(os.path.basename(path))
    if content is None:
        os.mkdir(path)
        os.chmod(path, _FOLDER_MODE)
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
