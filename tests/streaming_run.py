"""A running `ostler run` whose output is read while a scripted server sends its reply step by step."""

import asyncio
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import threading
from contextlib import contextmanager

from tests.process_starter import Started


class Pace:
    """Lets a server send one more chunk each time that `step` is called."""

    def __init__(self):
        self._steps = threading.Semaphore(0)

    def step(self, count=1):
        self._steps.release(count)

    async def wait(self, index):
        if index > 0:
            assert await asyncio.to_thread(self._steps.acquire, timeout=30)


class Screen:
    """The output of a running process, read as it comes."""

    def __init__(self, process, stream):
        self.process = process
        self.text = ""
        self._stream = stream

    def wait_for(self, expected):
        while expected not in self.text:
            assert self._read(), f"{expected!r} is not in {self.text!r}"

    def read_all(self):
        while self._read():
            pass
        self.process.wait(timeout=30)
        return self.text

    def _read(self):
        assert select.select([self._stream], [], [], 30)[0], self.text
        try:
            data = os.read(self._stream, 4096)
        except OSError:  # the terminal is closed
            return False
        self.text += data.decode().replace("\r\n", "\n")
        return bool(data)


@contextmanager
def running(ostler, *args, terminal=False, env=None):
    """Start `ostler run` with its output in a pipe or on a terminal of 80 columns."""
    controller, screen = pty.openpty() if terminal else os.pipe()
    if terminal:
        fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    with Started(
        ["run", *args],
        cwd=ostler.workspace,
        env=ostler.environment({"TERM": "xterm-256color", **(env or {})}),
        stdin=subprocess.DEVNULL,
        stdout=screen,
        stderr=subprocess.PIPE,
    ) as process:
        os.close(screen)
        try:
            yield Screen(process, controller)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            os.close(controller)
