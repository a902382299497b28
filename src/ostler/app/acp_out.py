"""Standard output as a run writes to it: flushed when there is a moment, and never an error for whoever writes."""

import asyncio
from collections.abc import Callable
from typing import TextIO


class Out:
    """What arrives in one go is flushed in one go. When no more can be written, `lost` hears why, once, and the rest is
    dropped."""

    def __init__(self, stream: TextIO, lost: Callable[[OSError], None]) -> None:
        self._stream = stream
        self._tell_lost = lost
        self._gone = False
        self._due = False

    def write(self, text: str) -> None:
        if self._gone:
            return
        try:
            self._stream.write(text)
        except OSError as error:
            self._lost(error)
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
        except OSError as error:
            self._lost(error)

    def _lost(self, error: OSError) -> None:
        self._gone = True
        self._tell_lost(error)
