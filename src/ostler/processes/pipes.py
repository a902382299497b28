"""Non-blocking pipes between Ostler and a command."""

import asyncio
import contextlib
import fcntl
import os
from collections.abc import Callable

_CHUNK_BYTES = 64 * 1024
_PIPE_BYTES = 1024 * 1024  # fewer wake-ups for a command that prints a lot
_DRAIN_LIMIT = 4 * _PIPE_BYTES
_MAX_UNWRITTEN_BYTES = 1024 * 1024


class CommandPipe:
    """A pipe to a command; `child_end` is passed to the command and then closed here."""

    child_end = -1
    _own_end = -1

    def close_child_end(self) -> None:
        if self.child_end >= 0:
            os.close(self.child_end)
            self.child_end = -1

    def drain(self) -> None:
        """Read the remaining data, then close."""
        self.close()

    def close(self) -> None:
        self.close_child_end()
        if self._own_end >= 0:
            loop = asyncio.get_running_loop()
            loop.remove_reader(self._own_end)
            loop.remove_writer(self._own_end)
            os.close(self._own_end)
            self._own_end = -1


class OutputPipe(CommandPipe):
    """A pipe for the output of a command."""

    def __init__(self, feed: Callable[[bytes], None]) -> None:
        self._own_end, self.child_end = os.pipe()
        os.set_blocking(self._own_end, False)
        if hasattr(fcntl, "F_SETPIPE_SZ"):
            with contextlib.suppress(OSError):
                fcntl.fcntl(self._own_end, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        self._feed = feed
        asyncio.get_running_loop().add_reader(self._own_end, self._read)

    def drain(self) -> None:
        """Read the remaining data, then close. Once the process tree has ended, all its output is in the pipe."""
        total = 0
        while self._own_end >= 0 and total < _DRAIN_LIMIT:
            size = self._read()
            if not size:
                break
            total += size
        self.close()

    def _read(self) -> int:
        try:
            chunk = os.read(self._own_end, _CHUNK_BYTES)
        except BlockingIOError:
            return 0
        except OSError:
            chunk = b""
        if not chunk:
            self.close()
            return 0
        self._feed(chunk)
        return len(chunk)


class OpenInputPipe(CommandPipe):
    """The standard input of a command that stays open, so that text can be written while the command runs."""

    def __init__(self) -> None:
        self.child_end, self._own_end = os.pipe()
        os.set_blocking(self._own_end, False)
        self._unwritten = b""

    def write(self, data: bytes) -> None:
        """Write without waiting. Raises `BufferError` if the command does not read what it already got."""
        if self._own_end < 0 or len(self._unwritten) + len(data) > _MAX_UNWRITTEN_BYTES:
            raise BufferError("the command does not read its input")
        self._unwritten += data
        asyncio.get_running_loop().add_writer(self._own_end, self._flush)

    def _flush(self) -> None:
        try:
            self._unwritten = self._unwritten[os.write(self._own_end, self._unwritten[:_CHUNK_BYTES]) :]
        except BlockingIOError:
            return
        except OSError:  # the command closed its input
            self.close()
            return
        if not self._unwritten:
            asyncio.get_running_loop().remove_writer(self._own_end)


class InputPipe(CommandPipe):
    """The standard input of a command: the given bytes, or empty."""

    def __init__(self, data: bytes | None) -> None:
        if not data:
            self.child_end = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
            return
        self.child_end, self._own_end = os.pipe()
        os.set_blocking(self._own_end, False)
        self._unwritten = memoryview(data)
        asyncio.get_running_loop().add_writer(self._own_end, self._write)

    def _write(self) -> None:
        try:
            self._unwritten = self._unwritten[os.write(self._own_end, self._unwritten[:_CHUNK_BYTES]) :]
        except BlockingIOError:
            return
        except OSError:  # the command closed its input
            self._unwritten = self._unwritten[:0]
        if not self._unwritten:
            self.close()
