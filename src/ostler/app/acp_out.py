"""Standard output as a run writes to it: flushed when there is a moment, and never an error for whoever writes."""

import asyncio
from collections.abc import Callable
from typing import TextIO


class Out:
    """What arrives in one go is flushed in one go. When the reader has gone, that is told once and the rest dropped."""

    def __init__(self, stream: TextIO, reader_gone: Callable[[], None]) -> None:
        self._stream = stream
        self._reader_gone = reader_gone
        self._gone = False
        self._due = False

    def write(self, text: str) -> None:
        if self._gone:
            return
        try:
            self._stream.write(text)
        except OSError:
            self._lost()
            return
        if not self._due:
            self._due = True
            asyncio.get_running_loop().call_soon(self.flush)

    def flush(self) -> None:
        self._due = False
        if self._gone:
            return
        try:
            self._stream.flush()
        except OSError:
            self._lost()

    def _lost(self) -> None:
        self._gone = True
        self._reader_gone()
