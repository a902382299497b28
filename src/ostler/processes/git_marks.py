"""A mark on disk while commands run: should Ostler be killed, whoever comes next sets aside what they made of git."""

import contextlib
import fcntl
import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from ostler.processes.git_guard import GitGuard
from ostler.processes.git_pieces import Piece, Pieces

_PLACE = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
_Row = tuple[bytes, Piece, bytes]


class _Written(msgspec.Struct, frozen=True):
    """What was there before the first of the commands that run; names that are no UTF-8 come as bytes."""

    roots: tuple[bytes, ...]
    pieces: tuple[_Row, ...]


class Mark:
    """The mark of one guard in a folder that no command can write to. A lock on it says that its session lives."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._path = ""
        self._held = -1

    def set(self, roots: tuple[str, ...], known: Pieces) -> None:
        with contextlib.suppress(OSError):  # without it all is as before; a command is not refused for that
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            self._path = os.path.join(self._folder, f"{os.getpid()}-{os.urandom(8).hex()}")
            self._held = os.open(self._path, _PLACE | os.O_CREAT | os.O_EXCL, 0o600)
            fcntl.flock(self._held, fcntl.LOCK_EX)
            os.write(self._held, _encoded(roots, known))

    def clear(self) -> None:
        if self._held >= 0:
            with contextlib.suppress(OSError):
                os.unlink(self._path)
            os.close(self._held)
            self._held = -1


async def settle_left(folder: str) -> list[str]:
    """Set aside what the commands of killed sessions left, and tell it."""
    told: list[str] = []
    for path in _marks(folder):
        with contextlib.suppress(OSError):
            held = os.open(path, _PLACE)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                told += await _settled(Path(path).read_bytes())
                os.unlink(path)
            finally:
                os.close(held)
    return told


def _marks(folder: str) -> list[str]:
    try:
        return sorted(os.path.join(folder, name) for name in os.listdir(folder))
    except OSError:
        return []


async def _settled(data: bytes) -> list[str]:
    try:
        left = msgspec.msgpack.decode(data, type=_Written)
    except msgspec.MsgspecError:
        return []  # killed before the mark was whole, so before the command began
    roots = tuple(path for path in map(os.fsdecode, left.roots) if os.path.isdir(path))
    guard = GitGuard(roots)
    guard.begin_from(_known(left.pieces))
    await guard.check()
    return guard.take_notes()


def _encoded(roots: tuple[str, ...], known: Pieces) -> bytes:
    rows = tuple(
        (os.fsencode(path), msgspec.structs.replace(piece, leads_to=""), os.fsencode(piece.leads_to))
        for path, piece in known.items()
    )
    return msgspec.msgpack.encode(_Written(tuple(map(os.fsencode, roots)), rows))


def _known(rows: Iterable[_Row]) -> Pieces:
    return {
        os.fsdecode(path): msgspec.structs.replace(piece, leads_to=os.fsdecode(leads_to))
        for path, piece, leads_to in rows
    }
