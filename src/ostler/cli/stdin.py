"""Reads prompts and lines from standard input without blocking the event loop."""

import contextlib
import os
import sys
from collections.abc import AsyncIterator, Iterator

from ostler.core.errors import UsageError

_MAX_LINES_AHEAD = 100
_CHUNK_BYTES = 64 * 1024


def has_piped_input() -> bool:
    """Return whether standard input is a pipe, a file or a socket; a terminal or `/dev/null` is never read."""
    if sys.stdin is None or sys.stdin.isatty():
        return False
    import stat

    mode = os.fstat(sys.stdin.fileno()).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


def wait_for_stdin(seconds: float) -> bool:
    """Wait until standard input has data or ends. Return False on timeout."""
    import select

    return bool(select.select([sys.stdin.buffer], [], [], seconds)[0])


def read_stdin(max_bytes: int = -1, *, errors: str = "replace") -> str:
    """Read standard input to its end and decode it as UTF-8. Raises `UsageError` if it exceeds `max_bytes`."""
    data = sys.stdin.buffer.read(max_bytes + 1 if max_bytes >= 0 else -1)
    if 0 <= max_bytes < len(data):
        raise UsageError(f"more than {max_bytes:,} bytes in standard input", hint="save it to a file and name the file")
    return data.decode("utf-8", errors)


def read_secret(prompt: str) -> str:
    """Read a key or token from the terminal without showing it, or from the first line of standard input."""
    if sys.stdin is not None and sys.stdin.isatty():
        from getpass import getpass

        return getpass(prompt)
    return sys.stdin.readline(64 * 1024) if sys.stdin else ""


async def read_lines(source: int) -> AsyncIterator[str]:
    """Yield the lines that are not blank until the pipe ends; invalid UTF-8 becomes surrogate escapes."""
    import asyncio
    import threading

    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[bytes] = asyncio.Queue()
    slots = threading.Semaphore(_MAX_LINES_AHEAD)

    def read() -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed
            for line in _read_raw_lines(source):
                slots.acquire()
                loop.call_soon_threadsafe(queue.put_nowait, line)
            loop.call_soon_threadsafe(queue.put_nowait, b"")

    threading.Thread(target=read, daemon=True).start()  # a daemon, so that an open pipe does not block the exit
    while line := await queue.get():
        slots.release()
        yield line.decode("utf-8", "surrogateescape")


def _read_raw_lines(source: int) -> Iterator[bytes]:
    """Read from the descriptor: a thread that blocks inside `sys.stdin.buffer` would keep Python from exiting."""
    parts: list[bytes] = []
    with contextlib.suppress(OSError):
        while chunk := os.read(source, _CHUNK_BYTES):
            first, *more = chunk.split(b"\n")
            parts.append(first)
            for rest in more:
                yield from filter(bytes.strip, [b"".join(parts)])
                parts = [rest]
    yield from filter(bytes.strip, [b"".join(parts)])
