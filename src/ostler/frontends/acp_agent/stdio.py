"""Standard streams as a wire: nothing but frames goes out, and nobody else reads what comes in."""

import asyncio
import os
import queue
import threading
from collections.abc import Callable

from ostler.core.errors import UsageError

CHUNK_SIZE = 65536
MAX_QUEUED_BYTES = 256 * 1024 * 1024


class StdioTransport:
    """Takes descriptors 0 and 1 for itself; what anybody prints from then on goes to standard error."""

    def __init__(self) -> None:
        try:
            self._source, self._sink = os.dup(0), os.dup(1)
        except OSError:
            raise UsageError("there is no editor: standard input or output is closed") from None
        for descriptor in (self._source, self._sink):
            os.set_inheritable(descriptor, False)
        nowhere = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nowhere, 0)
        os.close(nowhere)
        os.dup2(2, 1)
        self._outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._queued_bytes = 0
        self._writer = threading.Thread(target=self._write_all, name="frames out", daemon=True)
        self._on_broken: Callable[[], None] = lambda: None

    def start(self, feed: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        """Hear what arrives, in the running loop; `ended` when no more will, or nobody takes what is said."""
        loop = asyncio.get_running_loop()

        def hear() -> None:
            while data := _read(self._source):
                loop.call_soon_threadsafe(feed, data)
            loop.call_soon_threadsafe(on_end)

        self._on_broken = lambda: _call_in_loop(loop, on_end)
        self._writer.start()
        threading.Thread(target=_ignore_closed_loop, args=(hear,), name="frames in", daemon=True).start()

    def send(self, line: bytes) -> None:
        """Never waits; where the other side takes nothing, the connection ends before memory does."""
        self._queued_bytes += len(line)
        if self._queued_bytes > MAX_QUEUED_BYTES:
            self._on_broken()
            return
        self._outbox.put(line)

    def finish(self, timeout: float) -> None:
        """Write what waits, as far as the other side takes it in that time."""
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
    """The loop may end first."""
    try:
        callback()
    except RuntimeError:
        return


def _call_in_loop(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    _ignore_closed_loop(lambda: loop.call_soon_threadsafe(callback))
