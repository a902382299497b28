"""Standard streams as a wire: nothing but frames goes out, and nobody else reads what comes in."""

import asyncio
import os
import queue
import threading
from collections.abc import Callable

from ostler.vocabulary.errors import UsageError

CHUNK = 65536
MOST_WAITING = 256 * 1024 * 1024


class StandardStreams:
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
        self._waiting = 0
        self._writer = threading.Thread(target=self._write_all, name="frames out", daemon=True)
        self._broken: Callable[[], None] = lambda: None

    def start(self, feed: Callable[[bytes], None], ended: Callable[[], None]) -> None:
        """Hear what arrives, in the running loop; `ended` when no more will, or nobody takes what is said."""
        loop = asyncio.get_running_loop()

        def hear() -> None:
            while data := _read(self._source):
                loop.call_soon_threadsafe(feed, data)
            loop.call_soon_threadsafe(ended)

        self._broken = lambda: _tell(loop, ended)
        self._writer.start()
        threading.Thread(target=_until_closed, args=(hear,), name="frames in", daemon=True).start()

    def send(self, line: bytes) -> None:
        """Never waits; where the other side takes nothing, the connection ends before memory does."""
        self._waiting += len(line)
        if self._waiting > MOST_WAITING:
            self._broken()
            return
        self._outbox.put(line)

    def finish(self, seconds: float) -> None:
        """Write what waits, as far as the other side takes it in that time."""
        self._outbox.put(None)
        if self._writer.is_alive():
            self._writer.join(seconds)

    def _write_all(self) -> None:
        try:
            while (line := self._outbox.get()) is not None:
                rest = memoryview(line)
                while rest:
                    rest = rest[os.write(self._sink, rest) :]
                self._waiting -= len(line)
        except OSError:
            self._broken()


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, CHUNK)
    except OSError:
        return b""


def _until_closed(hear: Callable[[], object]) -> None:
    """The loop may end first."""
    try:
        hear()
    except RuntimeError:
        return


def _tell(loop: asyncio.AbstractEventLoop, ended: Callable[[], None]) -> None:
    _until_closed(lambda: loop.call_soon_threadsafe(ended))
