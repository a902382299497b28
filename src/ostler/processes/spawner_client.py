"""Ostler's side of a keeper: start it, hand it what a command needs, notice its death, see it out."""

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
    """The keeper did not start or is gone; a new one is started with the next command."""

    code = "keeper_lost"


class SpawnerTimeout(SpawnerLost):
    """The keeper did not answer in time. What it was asked for may have begun, so it is not asked again."""


def encode_block(value: Any) -> bytes:
    """A value as the keeper and its wardens read it; both run the same Python, so marshal is safe and quick."""
    data = marshal.dumps(value)
    return struct.pack("<I", len(data)) + data


class SpawnerClient:
    """A running keeper. It belongs to no event loop: handing over is a single small send that does not wait."""

    def __init__(self, wrapper: Sequence[str], plan: Mapping[str, Any]) -> None:
        self._link, theirs = socket.socketpair()
        with theirs:
            try:
                self._process = _start(wrapper, theirs.fileno())
            except OSError as error:
                self._link.close()
                raise SpawnerLost(f"the helper process that starts commands cannot be started ({error})") from error
        self._owner = os.getpid()
        self._plan_block = encode_block(dict(plan))
        self._link.setblocking(False)

    async def wait_ready(self) -> None:
        """It is inside its sandbox and serves; KeeperLost says why it could not get there."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_START_TIMEOUT):
                first, self._plan_block = self._plan_block, b""
                await loop.sock_sendall(self._link, first)
                answer = await loop.sock_recv(self._link, 16)
        except (OSError, TimeoutError):
            answer = b""
        if answer != b"ready":
            raise SpawnerLost(self._last_error_line() or "the helper process did not start")

    def start_unsandboxed(self) -> None:
        """Go on without waiting: a keeper outside any sandbox has nothing to prove."""
        self._link.send(self._plan_block)
        self._plan_block = b""

    @property
    def is_alive(self) -> bool:
        return self._owner == os.getpid() and self._link.fileno() >= 0 and self._process.poll() is None

    def send_descriptors(self, fds: Sequence[int]) -> None:
        """Four descriptors: control, stdin, stdout, stderr. A new warden takes them."""
        self._send(b"+", 0, fds)

    def kill_supervisor(self, number: int) -> None:
        """For a warden that does not answer any more."""
        with contextlib.suppress(SpawnerLost):
            self._send(b"-", number, ())

    def _send(self, kind: bytes, number: int, fds: Sequence[int]) -> None:
        try:
            socket.send_fds(self._link, [struct.pack("<cI", kind, number)], list(fds))
        except OSError as error:
            raise SpawnerLost(f"the helper process that starts commands is gone ({error})") from error

    async def aclose(self) -> None:
        if self._link.fileno() < 0:
            return
        loop = asyncio.get_running_loop()
        # Its end of the link closes when it ends, so reading until then is waiting for it.
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(_END_TIMEOUT):
                self._link.shutdown(socket.SHUT_WR)
                while await loop.sock_recv(self._link, 64):
                    pass
        self.close()

    def kill(self) -> None:
        """It does not answer: let it go by force."""
        if self._owner == os.getpid() and self._process.poll() is None:
            self._process.kill()
        self.close()

    def close(self) -> None:
        self._link.close()
        if self._owner != os.getpid():
            return
        try:
            self._process.wait(_END_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stderr:
            self._process.stderr.close()

    def _last_error_line(self) -> str:
        """End it and return the last line it printed: why it could not start."""
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
    """The one keeper for whatever runs outside a sandbox; it ends with this process, however that ends."""
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
