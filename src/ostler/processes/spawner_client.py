"""Starts the spawner process, sends it commands and notices its death."""

import asyncio
import atexit
import contextlib
import marshal
import os
import socket
import struct
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from ostler.core.errors import ToolError
from ostler.processes.child_python import python_command

_START_TIMEOUT = 10.0
_END_TIMEOUT = 2.0


class SpawnerLost(ToolError):
    """Raised when the spawner did not start or has died. The next command starts a new one."""

    code = "keeper_lost"


class SpawnerTimeout(SpawnerLost):
    """Raised when the spawner does not answer in time. The command may have started, so it is not retried."""


def encode_block(value: Any) -> bytes:
    """Encode a value for the spawner and its supervisors. They run the same Python, so marshal is safe and fast."""
    data = marshal.dumps(value)
    return struct.pack("<I", len(data)) + data


class SpawnerClient:
    """A running spawner. It is not bound to an event loop: sending a command is one small non-blocking send."""

    def __init__(self, wrapper: Sequence[str], plan: Mapping[str, Any]) -> None:
        self._link, child_end = socket.socketpair()
        with child_end:
            try:
                self._process = _start(wrapper, child_end.fileno())
            except OSError as error:
                self._link.close()
                raise SpawnerLost(f"the spawner process cannot be started ({error})") from error
        self._owner = os.getpid()
        # The process in front of a sandbox ends it when the link is closed. It must not be killed, because it then
        # removes the placeholders.
        self._ends_with_link = bool(wrapper)
        self._plan_block = encode_block(dict(plan))
        self._link.setblocking(False)

    async def wait_ready(self) -> None:
        """Wait until the spawner is inside its sandbox and ready. Raises `SpawnerLost` with the reason if not."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_START_TIMEOUT):
                plan_block, self._plan_block = self._plan_block, b""
                await loop.sock_sendall(self._link, plan_block)
                answer = await loop.sock_recv(self._link, 16)
        except (OSError, TimeoutError):
            answer = b""
        if answer != b"ready":
            raise SpawnerLost(self._last_error_line() or "the spawner process did not start")

    def start_unsandboxed(self) -> None:
        """Start without waiting for readiness; only entering a sandbox can fail."""
        self._link.send(self._plan_block)
        self._plan_block = b""

    @property
    def is_alive(self) -> bool:
        return self._owner == os.getpid() and self._link.fileno() >= 0 and self._process.poll() is None

    def send_descriptors(self, fds: Sequence[int]) -> None:
        """Send four descriptors (control, stdin, stdout, stderr) to a new supervisor."""
        self._send(b"+", 0, fds)

    def kill_supervisor(self, number: int) -> None:
        """Kill a supervisor that no longer answers."""
        with contextlib.suppress(SpawnerLost):
            self._send(b"-", number, ())

    def _send(self, kind: bytes, number: int, fds: Sequence[int]) -> None:
        try:
            socket.send_fds(self._link, [struct.pack("<cI", kind, number)], list(fds))
        except OSError as error:
            raise SpawnerLost(f"the spawner process ended ({error})") from error

    async def aclose(self) -> None:
        if self._link.fileno() < 0:
            return
        loop = asyncio.get_running_loop()
        # Its end of the socket closes when it exits, so reading until then waits for it.
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(_END_TIMEOUT):
                self._link.shutdown(socket.SHUT_WR)
                while await loop.sock_recv(self._link, 64):
                    pass
        self.close()

    def kill(self) -> None:
        """Kill a spawner that does not answer, and close the connection."""
        if self._owner == os.getpid() and not self._ends_with_link and self._process.poll() is None:
            self._process.kill()
        self.close()

    def close(self) -> None:
        self._link.close()
        if self._owner != os.getpid():
            return
        try:
            self._process.wait(_END_TIMEOUT)
        except subprocess.TimeoutExpired:
            if not self._ends_with_link:
                self._process.kill()
                self._process.wait()
        if self._process.stderr:
            self._process.stderr.close()

    def _last_error_line(self) -> str:
        """Stop the spawner and return the last line of its error output: why it could not start."""
        self._link.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_TIMEOUT)
        stderr = self._process.stderr
        assert stderr is not None
        os.set_blocking(stderr.fileno(), False)
        lines = (stderr.read() or b"").decode("utf-8", "replace").strip().splitlines()
        self.close()
        return lines[-1] if lines else ""


def _start(wrapper: Sequence[str], link: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*wrapper, *python_command("ostler.processes.spawner:main", str(link))],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd="/",
        env={"PATH": os.defpath},
        pass_fds=(link,),
        start_new_session=True,
    )


_shared_spawner: SpawnerClient | None = None


def shared_spawner() -> SpawnerClient:
    """Return the spawner for everything outside a sandbox. It ends with this process, even if that is killed."""
    global _shared_spawner
    if _shared_spawner is None or not _shared_spawner.is_alive:
        if _shared_spawner is None:
            atexit.register(_close_shared)
        else:
            _shared_spawner.close()
        _shared_spawner = SpawnerClient((), {})
        _shared_spawner.start_unsandboxed()
    return _shared_spawner


def _close_shared() -> None:
    if _shared_spawner is not None:
        _shared_spawner.close()
