"""A mark on disk while commands run: should Ostler be killed, whoever comes next sets aside what they made of git."""

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
    """What was there before the first of the commands that run; names that are no UTF-8 come as bytes."""

    roots: tuple[bytes, ...]
    pieces: tuple[_Row, ...]


class GuardMarker:
    """The mark of one guard in a folder that no command can write to. A lock on it says that its session lives."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._path = ""
        self._fd = -1

    def set(self, roots: tuple[str, ...], known: GitExecFiles) -> None:
        with contextlib.suppress(OSError):  # without it all is as before; a command is not refused for that
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
    """Set aside what the commands of killed sessions left, and tell it."""
    told: list[str] = []
    for path in _marker_paths(folder):
        with contextlib.suppress(OSError):
            held = os.open(path, _OPEN_FLAGS)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                told += await _recover(Path(path).read_bytes())
                os.unlink(path)
            finally:
                os.close(held)
    return told


def _marker_paths(folder: str) -> list[str]:
    try:
        return sorted(os.path.join(folder, name) for name in os.listdir(folder))
    except OSError:
        return []


async def _recover(data: bytes) -> list[str]:
    try:
        left = msgspec.msgpack.decode(data, type=_MarkerContent)
    except msgspec.MsgspecError:
        return []  # killed before the mark was whole, so before the command began
    roots = tuple(path for path in map(os.fsdecode, left.roots) if os.path.isdir(path))
    guard = GitGuard(roots)
    guard.restore_baseline(_decode_files(left.pieces))
    await guard.check()
    return guard.take_notes()


def _encode(roots: tuple[str, ...], known: GitExecFiles) -> bytes:
    rows = tuple(
        (os.fsencode(path), msgspec.structs.replace(piece, points_to=""), os.fsencode(piece.points_to))
        for path, piece in known.items()
    )
    return msgspec.msgpack.encode(_MarkerContent(tuple(map(os.fsencode, roots)), rows))


def _decode_files(rows: Iterable[_Row]) -> GitExecFiles:
    return {
        os.fsdecode(path): msgspec.structs.replace(piece, points_to=os.fsdecode(leads_to))
        for path, piece, leads_to in rows
    }
