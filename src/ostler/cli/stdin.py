"""Lines from a pipe, as they come, without keeping the event loop from its other work."""

import asyncio
import contextlib
import os
import threading
from collections.abc import AsyncIterator, Iterator

_MAX_LINES_AHEAD = 100
_CHUNK_BYTES = 64 * 1024


async def read_lines(source: int) -> AsyncIterator[str]:
    """Each line that is not blank, until the pipe ends; bytes that are no text stay as halves of characters."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[bytes] = asyncio.Queue()
    room = threading.Semaphore(_MAX_LINES_AHEAD)

    def read() -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens any more
            for line in _read_raw_lines(source):
                room.acquire()
                loop.call_soon_threadsafe(queue.put_nowait, line)
            loop.call_soon_threadsafe(queue.put_nowait, b"")

    threading.Thread(target=read, daemon=True).start()  # a daemon: a pipe that never ends must not hold up our end
    while line := await queue.get():
        room.release()
        yield line.decode("utf-8", "surrogateescape")


def _read_raw_lines(source: int) -> Iterator[bytes]:
    """By the descriptor: a thread that waits inside Python's own buffer would keep Python from ending."""
    pieces: list[bytes] = []
    with contextlib.suppress(OSError):
        while piece := os.read(source, _CHUNK_BYTES):
            first, *more = piece.split(b"\n")
            pieces.append(first)
            for rest in more:
                yield from filter(bytes.strip, [b"".join(pieces)])
                pieces = [rest]
    yield from filter(bytes.strip, [b"".join(pieces)])
