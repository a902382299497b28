"""Restores the terminal if the client is killed, which the client itself cannot do."""

import subprocess
import sys

# What Textual switches on: paste and focus reports, no line wrap, mouse, keyboard protocol, second screen, no cursor.
RESTORE = (
    "\x1b[?2004l\x1b[?2048l\x1b[?1004l\x1b[?7h\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l"
    "\x1b[r\x1b[0m\x1b[<u\x1b[?1049l\x1b[?25h"
)
MESSAGE = "ostler: the client was killed; `ostler tui --continue` continues the session"
# It waits until the other end of its standard input is closed. A line before that means that all is well.
SCRIPT = 'read -r line && exit 0; stty sane <&1; printf "%s\\n" "$1$2"'


class TerminalGuard:
    """A small process that outlives the client. Standard error is the terminal, as for Textual."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        if sys.__stderr__ is None or not sys.__stderr__.isatty():
            return
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", SCRIPT, "sh", RESTORE, MESSAGE],
            stdin=subprocess.PIPE,
            stdout=sys.__stderr__.fileno(),
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,  # signals for the client, also those of the terminal, are not for it
        )

    def close(self) -> None:
        """End it: the client restores the terminal itself."""
        if self._process is not None:
            self._process.communicate(b"done\n")
            self._process = None
