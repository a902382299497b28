"""Keeps what waits to be sent on disk, so that it outlives a process that is killed."""

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec


class QueueFile:
    """One file per process in the workspace's folder; whoever comes later takes what a dead one left."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / f"queued-{os.getpid()}.json"
        self._kept: Sequence[str] = ()

    def keep(self, texts: Sequence[str]) -> None:
        """These wait now; the old file stands until the new one is whole."""
        if list(texts) == list(self._kept):
            return
        self._kept = list(texts)
        try:
            if not texts:
                self._file.unlink(missing_ok=True)
                return
            draft = self._file.with_suffix(".new")
            with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
                file.write(msgspec.json.encode(self._kept))
                file.flush()
                os.fdatasync(file.fileno())
            draft.rename(self._file)
        except OSError:
            return  # it still waits in memory; only a crash would lose it

    def left_behind(self) -> str:
        """What processes that are no more had waiting; it is taken, so nobody else gets it."""
        texts: list[str] = []
        for file in sorted(self._folder.glob("queued-*.json")):
            pid = file.stem.removeprefix("queued-")
            if file == self._file or not pid.isdecimal() or _alive(int(pid)):
                continue
            try:
                texts += msgspec.json.decode(file.read_bytes(), type=list[str])
                file.unlink()
            except (OSError, msgspec.DecodeError):
                continue
        return "\n".join(texts)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
