"""Output of ACP runs: standard output with batched flushes, and status lines on standard error."""

import asyncio
import sys
from collections.abc import Callable
from typing import TextIO

from ostler.text.sanitise import sanitise


class OutputStream:
    """A text stream that flushes once per loop iteration.

    On a write error `on_error` is called once and further output is dropped.
    """

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


def print_status(line: str, program: str = "ostler") -> None:
    """Print a line about the run on standard error, after the name of the program."""
    sys.stderr.write(f"{program}: {sanitise(line)}\n")
