"""Ends the client when its terminal disappears: the window was closed, or the terminal multiplexer was killed.

Textual's own threads do not: the one that writes ends with an error, after which the event loop waits for ever for room
in its queue, and the one that reads tries again without a pause.
"""

import codecs
import os
import select
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import IO, Any

from textual.drivers import linux_driver

from ostler.frontends.tui.key_parser import KeyParser

STATUS = 128 + signal.SIGHUP
RESPONSE_SECONDS = 1.0  # for the event loop to notice; it may be blocked
CLOSE_SECONDS = 10.0  # for the sessions to stop their commands


class TerminalDriver(linux_driver.LinuxDriver):
    """Calls `end_without_terminal` of a `PaintedApp` when the terminal is gone, and limits the time to exit."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._lock = threading.Lock()
        self._is_lost = False
        self._device = os.fstat(self.fileno).st_rdev
        self._file: Any = TerminalFile(self._file, self._lose_terminal)
        if self.input_tty:
            threading.Thread(target=self._watch, name="terminal-watch", daemon=True).start()

    def run_input_thread(self) -> None:
        module: Any = linux_driver  # Textual offers no other way to choose these
        module.XTermParser = KeyParser
        module.getincrementaldecoder = lambda encoding: partial(codecs.getincrementaldecoder(encoding), "replace")
        super().run_input_thread()

    def _watch(self) -> None:
        """Wait until the terminal is closed."""
        poll = select.poll()
        poll.register(self.fileno, 0)  # only hangups and errors
        if any(events & (select.POLLHUP | select.POLLERR) for _, events in poll.poll()):
            self._lose_terminal()

    def _lose_terminal(self) -> None:
        """Stop using the terminal and end the app, from any thread."""
        with self._lock:
            if self._is_lost:
                return
            self._is_lost = True
        self.exit_event.set()  # ends the thread that reads
        self._replace_terminal()
        timer = _exit_after(RESPONSE_SECONDS)
        with suppress(RuntimeError):  # the loop is closed: the process is about to exit
            self._loop.call_soon_threadsafe(self._end, timer)

    def _replace_terminal(self) -> None:
        """Connect the standard streams to nothing, so that what is written later neither blocks nor fails."""
        null = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            with suppress(OSError):
                if os.fstat(number).st_rdev == self._device:
                    os.dup2(null, number)
        os.close(null)

    def _end(self, timer: threading.Timer) -> None:
        timer.cancel()
        _exit_after(CLOSE_SECONDS)
        app: Any = self._app
        app.end_without_terminal(STATUS)


class TerminalFile:
    """The file of the terminal. An error calls a function and is not raised, because it would end Textual's thread."""

    def __init__(self, file: IO[str], on_error: Callable[[], None]) -> None:
        self._file = file
        self._on_error = on_error

    def write(self, text: str) -> None:
        try:
            self._file.write(text)
        except OSError:
            self._on_error()

    def flush(self) -> None:
        try:
            self._file.flush()
        except OSError:
            self._on_error()

    def fileno(self) -> int:
        return self._file.fileno()


def _exit_after(seconds: float) -> threading.Timer:
    """Exit after this time without closing anything; the journal is complete at any time."""
    timer = threading.Timer(seconds, os._exit, [STATUS])
    timer.daemon = True
    timer.start()
    return timer
