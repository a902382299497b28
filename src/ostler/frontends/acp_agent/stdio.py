"""Non-blocking transport on stdin and stdout; redirects everything else that is printed to standard error."""

import asyncio
import os
import queue
import threading
from collections.abc import Callable

from ostler.core.errors import UsageError

CHUNK_SIZE = 65536
MAX_QUEUED_BYTES = 256 * 1024 * 1024


class StdioTransport:
    """Takes over descriptors 0 and 1. Other output to stdout then goes to standard error."""

    def __init__(self) -> None:
        try:
            self._source, self._sink = os.dup(0), os.dup(1)
        except OSError:
            raise UsageError("standard input or output is closed; start this command from an editor") from None
        for descriptor in (self._source, self._sink):
            os.set_inheritable(descriptor, False)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        os.dup2(2, 1)
        self._outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._queued_bytes = 0
        self._writer = threading.Thread(target=self._write_all, name="frames out", daemon=True)
        self._on_broken: Callable[[], None] = lambda: None

    def start(self, feed: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        """Call `feed` in the running loop for all input, and `on_end` when the input ends or output fails."""
        loop = asyncio.get_running_loop()

        def read_all() -> None:
            while data := _read(self._source):
                loop.call_soon_threadsafe(feed, data)
            loop.call_soon_threadsafe(on_end)

        self._on_broken = lambda: _call_in_loop(loop, on_end)
        self._writer.start()
        threading.Thread(target=_ignore_closed_loop, args=(read_all,), name="frames in", daemon=True).start()

    def send(self, line: bytes) -> None:
        """Queue a line without blocking. If the editor does not read, the connection ends at a size limit."""
        self._queued_bytes += len(line)
        if self._queued_bytes > MAX_QUEUED_BYTES:
            self._on_broken()
            return
        self._outbox.put(line)

    def finish(self, timeout: float) -> None:
        """Write the queued lines, for at most `timeout` seconds."""
        self._outbox.put(None)
        if self._writer.is_alive():
            self._writer.join(timeout)

    def _write_all(self) -> None:
        try:
            while (line := self._outbox.get()) is not None:
                rest = memoryview(line)
                while rest:
                    rest = rest[os.write(self._sink, rest) :]
                self._queued_bytes -= len(line)
        except OSError:
            self._on_broken()


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, CHUNK_SIZE)
    except OSError:
        return b""


def _ignore_closed_loop(callback: Callable[[], object]) -> None:
    """Call a function and ignore that the loop is already closed."""
    try:
        callback()
    except RuntimeError:
        return


def _call_in_loop(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    _ignore_closed_loop(lambda: loop.call_soon_threadsafe(callback))
