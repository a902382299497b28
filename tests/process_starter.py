"""Start the command line by forking a process that has already imported it; much faster than a new interpreter."""

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
MAX_MESSAGE = 100_000  # bytes in one message on the socket
LANG = "C.UTF-8"
INTERPRETER_VARIABLES = ("PYTHON", "LC_", "LANG")  # read by the interpreter itself when it starts
PIPES = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
SIGNATURE = inspect.signature(subprocess.Popen._execute_child)


class Started(subprocess.Popen):
    """A `Popen` of `ostler` in a new session; with `terminal`, standard input becomes its controlling terminal."""

    def __init__(
        self, args: list[str], *, cwd: Path, env: dict[str, str], terminal: bool = False, **streams: Any
    ) -> None:
        self._terminal = terminal
        self._report: Any = None
        super().__init__([*OSTLER, *args], cwd=cwd, env=env, start_new_session=True, **streams)

    def _execute_child(self, *args: Any) -> None:
        arguments = SIGNATURE.bind(self, *args).arguments
        env: dict[str, str] = arguments["env"]
        command = {
            "args": arguments["args"][len(OSTLER) :],
            "cwd": str(arguments["cwd"]),
            "env": env,
            "terminal": self._terminal,
        }
        message = json.dumps(command).encode()
        if len(message) > MAX_MESSAGE or _changes_the_interpreter(env):
            arguments["preexec_fn"] = take_terminal if self._terminal else None
            super()._execute_child(*list(arguments.values())[1:])
            return
        streams = [arguments["p2cread"], arguments["c2pwrite"], arguments["errwrite"]]
        self._report = _request_fork(message, streams)
        self.pid = int(self._report.readline())
        self._child_created = True
        self._close_pipe_fds(*(arguments[name] for name in PIPES))

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
    return any(
        name.startswith(INTERPRETER_VARIABLES) and (name, value) != ("LANG", LANG) for name, value in env.items()
    )


def take_terminal() -> None:
    """Make standard input the controlling terminal of this session."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _request_fork(message: bytes, streams: list[int]) -> Any:
    ours, theirs = socket.socketpair()
    channel, _ = _warm_process(os.getpid())
    with ours, theirs:
        socket.send_fds(channel, [message], [theirs.fileno(), *streams])
        return ours.makefile("rb")


@cache
def _warm_process(worker: int) -> tuple[socket.socket, "subprocess.Popen[bytes]"]:
    """Start one such process for each pytest worker; it ends when the socket is closed."""
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
