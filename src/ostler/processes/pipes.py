"""The pipes between Ostler and a command: read and written by the event loop, and never waited for at the end."""

import asyncio
import contextlib
import fcntl
import os
from collections.abc import Callable

_CHUNK = 64 * 1024
_SIZE = 1024 * 1024  # fewer wake-ups for a command that prints a lot
_DRAIN_LIMIT = 4 * _SIZE


class Pipe:
    """A pipe with an end for each side; `theirs` is the one to hand over and close."""

    theirs = -1
    _ours = -1

    def close_theirs(self) -> None:
        if self.theirs >= 0:
            os.close(self.theirs)
            self.theirs = -1

    def drain(self) -> None:
        """Take what is there, and close."""
        self.close()

    def close(self) -> None:
        self.close_theirs()
        if self._ours >= 0:
            loop = asyncio.get_running_loop()
            loop.remove_reader(self._ours)
            loop.remove_writer(self._ours)
            os.close(self._ours)
            self._ours = -1


class OutPipe(Pipe):
    """Carries what a command prints."""

    def __init__(self, feed: Callable[[bytes], None]) -> None:
        self._ours, self.theirs = os.pipe()
        os.set_blocking(self._ours, False)
        if hasattr(fcntl, "F_SETPIPE_SZ"):
            with contextlib.suppress(OSError):
                fcntl.fcntl(self._ours, fcntl.F_SETPIPE_SZ, _SIZE)
        self._feed = feed
        asyncio.get_running_loop().add_reader(self._ours, self._read)

    def drain(self) -> None:
        """Take what is there and close: when the tree is gone, all it wrote is in the pipe, whoever still holds it."""
        taken = 0
        while self._ours >= 0 and taken < _DRAIN_LIMIT:
            size = self._read()
            if not size:
                break
            taken += size
        self.close()

    def _read(self) -> int:
        try:
            chunk = os.read(self._ours, _CHUNK)
        except BlockingIOError:
            return 0
        except OSError:
            chunk = b""
        if not chunk:
            self.close()
            return 0
        self._feed(chunk)
        return len(chunk)


class InPipe(Pipe):
    """What a command reads: the given bytes and then the end, or nothing at all."""

    def __init__(self, data: bytes | None) -> None:
        if not data:
            self.theirs = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
            return
        self.theirs, self._ours = os.pipe()
        os.set_blocking(self._ours, False)
        self._rest = memoryview(data)
        asyncio.get_running_loop().add_writer(self._ours, self._write)

    def _write(self) -> None:
        try:
            self._rest = self._rest[os.write(self._ours, self._rest[:_CHUNK]) :]
        except BlockingIOError:
            return
        except OSError:  # it does not want to read it
            self._rest = self._rest[:0]
        if not self._rest:
            self.close()
