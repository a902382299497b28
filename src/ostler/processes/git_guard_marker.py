"""Marker on disk while commands run, so that the next start can clean up after a killed process."""

import contextlib
import fcntl
import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from ostler.processes.git_exec_files import GitExecFile, GitExecFiles
from ostler.processes.git_guard import GitGuard

_OPEN_FLAGS = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
_Row = tuple[bytes, GitExecFile, bytes]


class _MarkerContent(msgspec.Struct, frozen=True):
    """The git files from before the first running command. Paths are bytes, because they may not be valid UTF-8."""

    roots: tuple[bytes, ...]
    pieces: tuple[_Row, ...]  # stored name


class GuardMarker:
    """The marker of one guard, in a folder that commands cannot write to. It is locked while the session lives."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._path = ""
        self._fd = -1

    def set(self, roots: tuple[str, ...], known: GitExecFiles) -> None:
        with contextlib.suppress(OSError):  # the marker is optional; commands run without it
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            self._path = os.path.join(self._folder, f"{os.getpid()}-{os.urandom(8).hex()}")
            self._fd = os.open(self._path, _OPEN_FLAGS | os.O_CREAT | os.O_EXCL, 0o600)
            fcntl.flock(self._fd, fcntl.LOCK_EX)
            os.write(self._fd, _encode(roots, known))

    def clear(self) -> None:
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                os.unlink(self._path)
            os.close(self._fd)
            self._fd = -1


async def recover_stale_markers(folder: str) -> list[str]:
    """Quarantine what commands of killed sessions left, and return notes about it."""
    notes: list[str] = []
    for path in _marker_paths(folder):
        with contextlib.suppress(OSError):
            fd = os.open(path, _OPEN_FLAGS)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                notes += await _recover(Path(path).read_bytes())
                os.unlink(path)
            finally:
                os.close(fd)
    return notes


def _marker_paths(folder: str) -> list[str]:
    try:
        return sorted(os.path.join(folder, name) for name in os.listdir(folder))
    except OSError:
        return []


async def _recover(data: bytes) -> list[str]:
    try:
        content = msgspec.msgpack.decode(data, type=_MarkerContent)
    except msgspec.MsgspecError:
        return []  # killed before the marker was complete, so before the command started
    roots = tuple(path for path in map(os.fsdecode, content.roots) if os.path.isdir(path))
    guard = GitGuard(roots)
    guard.restore_baseline(_decode_files(content.pieces))
    await guard.check()
    return guard.take_notes()


def _encode(roots: tuple[str, ...], known: GitExecFiles) -> bytes:
    rows = tuple(
        (os.fsencode(path), msgspec.structs.replace(file, points_to=""), os.fsencode(file.points_to))
        for path, file in known.items()
    )
    return msgspec.msgpack.encode(_MarkerContent(tuple(map(os.fsencode, roots)), rows))


def _decode_files(rows: Iterable[_Row]) -> GitExecFiles:
    return {
        os.fsdecode(path): msgspec.structs.replace(file, points_to=os.fsdecode(points_to))
        for path, file, points_to in rows
    }
