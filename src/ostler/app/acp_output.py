"""Standard output as a run writes to it: flushed when there is a moment, and never an error for whoever writes."""

import asyncio
from collections.abc import Callable
from typing import TextIO


class OutputStream:
    """What arrives in one go is flushed in one go. When no more can be written, `lost` hears why, once, and the rest is
    dropped."""

    def __init__(self, stream: TextIO, on_error: Callable[[OSError], None]) -> None:
        self._stream = stream
        self._on_error = on_error
        self._failed = False
        self._flush_scheduled = False

    def write(self, text: str) -> None:
        if self._failed:
            return
        try:
            self._stream.write(text)
        except OSError as error:
            self._fail(error)
            return
        if not self._flush_scheduled:
            self._flush_scheduled = True
            asyncio.get_running_loop().call_soon(self.flush)

    def flush(self) -> None:
        self._flush_scheduled = False
        if self._failed:
            return
        try:
            self._stream.flush()
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        self._failed = True
        self._on_error(error)
