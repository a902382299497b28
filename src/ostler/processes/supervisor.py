"""Supervises one command inside the spawner: starts it, reports how it ended, kills all its descendants.

Runs in the spawner's process: standard library only, and no `typing` (see `spawner`).
"""

from __future__ import annotations

import _socket
import marshal
import os
import resource
import select
import struct
import time

from ostler.processes.sandbox_entry import CHILD_SUBREAPER, NAME, PDEATHSIG, prctl

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from typing import Any, NoReturn
else:
    import _signal

# Signals from the user, a terminal or `pkill` are ignored; closed sockets end the spawner and supervisors.
IGNORED_SIGNALS = (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGQUIT, _signal.SIGUSR1, _signal.SIGUSR2)
_RESTORED_SIGNALS = (*IGNORED_SIGNALS, _signal.SIGPIPE, _signal.SIGXFSZ, _signal.SIGCHLD)

_KILL_INTERVAL = 0.02
_STUCK_AFTER = 2.0


class CommandSupervisor:
    """Starts one command, reports how it ended and kills all its descendants."""

    def __init__(self, control: _socket.socket) -> None:
        self.control = control
        self.main_pid = 0
        self.linger = False
        self.leftover_grace = 0.0
        self.deadline: float | None = None
        self.killing_since: float | None = None
        self.reported = False

    def run(self, streams: list[int]) -> None:
        prctl(NAME, b"ostler-warden")
        prctl(CHILD_SUBREAPER, 1)
        wake = child_wakeup_fd()
        request = marshal.loads(receive_block(self.control))
        self.linger = request["linger"]
        self.leftover_grace = request["leftover_grace"]
        own_pid = os.getpid()
        # Sent before the fork: a caller that does not receive it can safely retry.
        if not self.send(f"started {own_pid}"):
            return
        try:
            self.main_pid = os.fork()
        except OSError as error:
            self.send(f"failed {error}")
            return
        if self.main_pid == 0:
            _exec_command(request, streams, self.control, own_pid)
        for fd in streams:
            os.close(fd)
        self.watch(wake)

    def watch(self, wake: int) -> None:
        poll = select.poll()
        poll.register(wake, select.POLLIN)
        poll.register(self.control.fileno(), select.POLLIN)
        while self.reap():
            for fd, _ in poll.poll(self.poll_timeout_ms()):
                if fd == wake:
                    os.read(wake, 4096)
                elif not self.read_control():
                    poll.unregister(fd)
            if self.deadline is not None and time.monotonic() >= self.deadline:
                self.kill()
        if not self.reported:
            self.send("gone 0")

    def poll_timeout_ms(self) -> int | None:
        return None if self.deadline is None else max(0, int((self.deadline - time.monotonic()) * 1000) + 1)

    def reap(self) -> bool:
        """Reap ended children and return whether any are left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                break
            if pid == self.main_pid:
                self.main_pid = 0
                self.send(f"exit {os.waitstatus_to_exitcode(status)}")
        if not self.main_pid and not self.linger and self.deadline is None:
            self.stop(self.leftover_grace)
        return True

    def read_control(self) -> bool:
        try:
            data = self.control.recv(64)
        except OSError:
            data = b""
        if not data:
            self.kill()
            return False
        self.stop(float(data.split()[-1]))
        return True

    def stop(self, grace: float) -> None:
        if grace <= 0:
            self.kill()
            return
        found = self.signal(_signal.SIGTERM)
        signal_all(found, _signal.SIGCONT)
        self.deadline = time.monotonic() + grace

    def kill(self) -> None:
        now = time.monotonic()
        if self.killing_since is None:
            self.killing_since = now
        found = self.signal(_signal.SIGKILL)
        stuck = now - self.killing_since > _STUCK_AFTER
        if stuck and not self.reported:
            self.reported = True
            self.send(f"gone {len(found)}")
        self.deadline = now + (_STUCK_AFTER if stuck else _KILL_INTERVAL)

    def signal(self, number: int) -> list[int]:
        if self.main_pid:
            # Signal the whole group at once, so that a fast forker cannot escape. The main process is not reaped yet,
            # so its process id is still valid.
            signal_all([-self.main_pid], number)
        found = descendants(os.getpid())
        signal_all(found, number)
        return found

    def send(self, line: str) -> bool:
        """Send a line. Return False if the other side has closed the socket."""
        try:
            self.control.send(line.encode() + b"\n")
        except OSError:
            return False
        return True


def _exec_command(request: dict[str, Any], streams: list[int], control: _socket.socket, parent: int) -> NoReturn:
    """In the forked child: replace the process by the command."""
    try:
        os.setsid()
        prctl(PDEATHSIG, _signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        _signal.set_wakeup_fd(-1)
        for number in _RESTORED_SIGNALS:
            _signal.signal(number, _signal.SIG_DFL)
        _apply_limits(request["limits"])
        os.chdir(request["cwd"])
        for target, fd in enumerate(streams):
            os.dup2(fd, target)
        os.execvpe(request["argv"][0], request["argv"], request["env"])
    except BaseException as error:
        control.send(f"failed {type(error).__name__}: {error}".replace("\n", " ").encode() + b"\n")
    finally:
        os._exit(127)


def _apply_limits(limits: list[tuple[str, int]]) -> None:
    for name, value in limits:
        kind = getattr(resource, name)
        _, hard = resource.getrlimit(kind)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))


def descendants(root: int, exclude: set[int] | None = None) -> list[int]:
    """Return all descendants of `root`, without the subtrees of the processes in `exclude`."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                stat = file.read()
        except OSError:
            continue
        # The state is not reliable: a process whose first thread has ended is shown as a zombie and may still run.
        parent = stat[stat.rindex(b")") + 2 :].split()[1]
        children.setdefault(int(parent), []).append(int(name))
    found: list[int] = []
    pending = [root]
    while pending:
        for child in children.get(pending.pop(), ()):
            if not exclude or child not in exclude:
                found.append(child)
                pending.append(child)
    return found


def signal_all(pids: list[int], number: int) -> None:
    for pid in pids:
        try:  # noqa: SIM105 (avoids importing contextlib)
            os.kill(pid, number)
        except OSError:
            pass  # already gone


def child_wakeup_fd() -> int:
    """Return a descriptor that becomes readable when a child ends."""
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC) if hasattr(os, "pipe2") else os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    _signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    _signal.signal(_signal.SIGCHLD, lambda *_: None)
    return reader


def receive_block(source: _socket.socket) -> bytes:
    (size,) = struct.unpack("<I", _receive_exactly(source, 4))
    return _receive_exactly(source, size)


def _receive_exactly(source: _socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = source.recv(size - len(data))
        if not chunk:
            os._exit(0)
        data += chunk
    return data
