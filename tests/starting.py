"""Starts the command line as a fork of a process that has read it already; quite anew only where that would differ."""

import fcntl
import inspect
import json
import os
import select
import socket
import subprocess
import sys
import termios
from functools import cache
from pathlib import Path
from typing import Any

OSTLER = [sys.executable, "-P", "-m", "ostler"]
WARM = Path(__file__).with_name("warm_start.py")
LONGEST = 100_000  # of one message on the socket
LANG = "C.UTF-8"
READ_AT_START = ("PYTHON", "LC_", "LANG")  # what the interpreter itself looks at, before any program
PIPES = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
SIGNATURE = inspect.signature(subprocess.Popen._execute_child)


class Started(subprocess.Popen):
    """A `Popen` of `ostler` in a session of its own; `terminal`: standard input becomes its terminal."""

    def __init__(
        self, args: list[str], *, cwd: Path, env: dict[str, str], terminal: bool = False, **streams: Any
    ) -> None:
        self._terminal = terminal
        self._report: Any = None
        super().__init__([*OSTLER, *args], cwd=cwd, env=env, start_new_session=True, **streams)

    def _execute_child(self, *args: Any) -> None:
        told = SIGNATURE.bind(self, *args).arguments
        env: dict[str, str] = told["env"]
        command = {"args": told["args"][len(OSTLER) :], "cwd": str(told["cwd"]), "env": env, "terminal": self._terminal}
        message = json.dumps(command).encode()
        if len(message) > LONGEST or _changes_the_interpreter(env):
            told["preexec_fn"] = take_terminal if self._terminal else None
            super()._execute_child(*list(told.values())[1:])
            return
        streams = [told["p2cread"], told["c2pwrite"], told["errwrite"]]
        self._report = _ask(message, streams)
        self.pid = int(self._report.readline())
        self._child_created = True
        self._close_pipe_fds(*(told[name] for name in PIPES))

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        if self._report is None:
            return super()._try_wait(wait_flags)
        if wait_flags & os.WNOHANG and not select.select([self._report], [], [], 0)[0]:
            return 0, 0
        with self._report:
            return self.pid, int(self._report.readline())

    def _internal_poll(self, *args: Any, **kwargs: Any) -> int | None:
        if self._report is None:
            return super()._internal_poll(*args, **kwargs)
        if self.returncode is None and self._waitpid_lock.acquire(False):
            try:
                pid, status = self._try_wait(os.WNOHANG)
                if pid:
                    self._handle_exitstatus(status)
            finally:
                self._waitpid_lock.release()
        return self.returncode


def _changes_the_interpreter(env: dict[str, str]) -> bool:
    return any(name.startswith(READ_AT_START) and (name, value) != ("LANG", LANG) for name, value in env.items())


def take_terminal() -> None:
    """Standard input becomes the terminal of this session."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _ask(message: bytes, streams: list[int]) -> Any:
    ours, theirs = socket.socketpair()
    channel, _ = _warm(os.getpid())
    with ours, theirs:
        socket.send_fds(channel, [message], [theirs.fileno(), *streams])
        return ours.makefile("rb")


@cache
def _warm(worker: int) -> tuple[socket.socket, "subprocess.Popen[bytes]"]:
    """One for each process that runs tests; it ends with the socket."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-P", str(WARM), str(theirs.fileno())],
            cwd="/",
            env={"PATH": os.environ["PATH"], "LANG": LANG},
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    return ours, process
