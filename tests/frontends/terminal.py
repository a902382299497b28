"""The command line on a pseudo-terminal, with an emulated screen and scrollback."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Mapping

import pyte
from tests.process_starter import OSTLER, Started, take_terminal

TIMEOUT_SECONDS = 90
POLL_SECONDS = 0.25
SCROLLBACK = 20_000
NOT_YET = "working, Ctrl-C|opening the session"
SHELL = """
import os, signal, sys
pid = os.fork()
if pid == 0:
    os.setpgid(0, 0)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.argv[2], sys.argv[2:])
while True:
    _, status = os.waitpid(pid, os.WUNTRACED)
    if os.WIFSTOPPED(status):
        with open(sys.argv[1], "w") as pid_file:
            pid_file.write(str(pid))
    else:
        sys.exit(os.waitstatus_to_exitcode(status))
"""


def _below_a_shell(pid_file, words, **options) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", SHELL, str(pid_file), *OSTLER, *words]
    return subprocess.Popen(command, start_new_session=True, preexec_fn=take_terminal, **options)


def _running(code, words, **options) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-c", code, *words]
    return subprocess.Popen(command, start_new_session=True, preexec_fn=take_terminal, **options)


class Terminal:
    """A process on a pseudo-terminal; `wait_for` checks the visible text including scrollback."""

    def __init__(
        self,
        ostler,
        *args,
        env: Mapping[str, str] | None = None,
        rows: int = 24,
        columns: int = 80,
        below_a_shell: bool = False,
        blind: bool = False,
        code: str = "",
    ) -> None:
        """`below_a_shell` adds a parent process that can continue a stopped process, as a shell does.

        `code` is Python code to run instead of the command line.

        `blind` does not emulate the screen, which is slow for much text; only the raw bytes are available.
        """
        self._blind = blind
        self._raw = bytearray()
        self.screen = pyte.HistoryScreen(columns, rows, history=SCROLLBACK)
        self.workspace = ostler.workspace
        self._stream = pyte.ByteStream(self.screen)
        self._changed = threading.Condition()
        self._ended = False
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self._told = ostler.home / "stopped"
        env = ostler.environment({"TERM": "xterm-256color", **(env or {})})
        streams = {"stdin": slave, "stdout": slave, "stderr": slave}
        words = [*map(str, args)]
        self.process = (
            _running(code, words, cwd=ostler.workspace, env=env, **streams)
            if code
            else _below_a_shell(self._told, words, cwd=ostler.workspace, env=env, **streams)
            if below_a_shell
            else Started(words, cwd=ostler.workspace, env=env, terminal=True, **streams)
        )
        self._stop = os.pipe()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                ready, _, _ = select.select([self._master, self._stop[0]], [], [])
                data = os.read(self._master, 65536) if self._stop[0] not in ready else b""
            except OSError:
                data = b""
            with self._changed:
                if data:
                    self._raw += data
                    if not self._blind:
                        self._stream.feed(data)
                self._ended = not data
                self._changed.notify_all()
            if not data:
                return

    def type(self, keys: str | bytes) -> None:
        data = keys.encode() if isinstance(keys, str) else keys
        while data:
            data = data[os.write(self._master, data[:4096]) :]

    def lines(self) -> list[str]:
        """Return scrollback and screen from top to bottom."""
        scrollback = [_text(line, self.screen.columns) for line in self.screen.history.top]
        return [line.rstrip() for line in (*scrollback, *self.screen.display)]

    @property
    def raw(self) -> bytes:
        return bytes(self._raw)

    @property
    def text(self) -> str:
        if self._blind:
            return self._raw.decode(errors="replace")
        return "\n".join(self.lines())

    def wait_for(self, wanted, timeout: float = TIMEOUT_SECONDS) -> str:
        """Wait until a text is visible or a condition on the text is true.

        The condition is also tested without new output, because it may depend on files.
        """
        so = wanted if callable(wanted) else lambda text: wanted in text
        until = time.monotonic() + timeout
        with self._changed:
            while not so(self.text):
                left = until - time.monotonic()
                if left <= 0 or (self._ended and not so(self.text)):
                    raise AssertionError(f"never saw {wanted!r} in:\n{self.text}")
                self._changed.wait(min(left, POLL_SECONDS))
            return self.text

    def ready(self) -> str:
        """Wait for an empty prompt while nothing is running."""
        return self.prompted("")

    def prompted(self, typed: str) -> str:
        """Wait until nothing is running and the prompt contains exactly this text."""
        prompt = re.compile(rf"^>{re.escape(f' {typed}'.rstrip())}\n\S.*\s*\Z", re.MULTILINE)
        return self.wait_for(lambda text: prompt.search(text) and not re.search(NOT_YET, text))

    def settle(self) -> None:
        """Wait briefly for more output."""
        with self._changed:
            self._changed.wait(0.1)

    def resize(self, columns: int, rows: int = 0) -> None:
        """Change the size of the window."""
        rows = rows or self.screen.lines
        with self._changed:
            self.screen.resize(rows, columns)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def stopped(self) -> int:
        """Wait until the process below the shell is stopped, and return its id."""
        until = time.monotonic() + TIMEOUT_SECONDS
        while not (self._told.exists() and self._told.read_text()):
            assert time.monotonic() < until, self.text
            self.settle()
        return int(self._told.read_text())

    def leave(self, status: int = 0) -> None:
        """Wait until the process exits with this status."""
        ended = self.process.wait(TIMEOUT_SECONDS)
        os.close(self.slave)
        self.slave = -1
        self._reader.join(TIMEOUT_SECONDS)
        assert ended == status, self.text

    def restored(self) -> bool:
        """Return whether the terminal settings are restored."""
        return termios.tcgetattr(self.slave) == self.before

    def line_by_line(self) -> bool:
        """Return whether the terminal echoes and delivers whole lines."""
        wanted = termios.ECHO | termios.ICANON | termios.ISIG
        return termios.tcgetattr(self.slave)[3] & wanted == wanted

    def hang_up(self) -> None:
        """Close the terminal, as when its window is closed."""
        if self.slave >= 0:
            os.close(self.slave)
            self.slave = -1
        if self._master >= 0:
            os.write(self._stop[1], b".")
            self._reader.join(TIMEOUT_SECONDS)
            os.close(self._master)
            self._master = -1
            for end in self._stop:
                os.close(end)

    def close(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.hang_up()


def _text(line, columns: int) -> str:
    return "".join(line[x].data for x in range(columns))
