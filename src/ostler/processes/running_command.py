"""Handle of a running command, connected to its supervisor by a control socket."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec

from ostler.core.errors import ToolError
from ostler.processes.spawner_client import SpawnerClient, SpawnerLost, SpawnerTimeout, encode_block

_START_TIMEOUT = 10.0
_ANSWER_TIMEOUT = 3.0
_MAX_ARGUMENT_BYTES = 128 * 1024 - 1

SpawnerSource = Callable[[], Awaitable[SpawnerClient]]


class SpawnRequest(msgspec.Struct, frozen=True):
    """A command to start.

    When the main process has ended, its remaining child processes get SIGTERM and, after `leftover_grace` seconds,
    SIGKILL. With `linger` they keep running, and the command ends with the last of them.
    """

    argv: Sequence[str]
    cwd: str
    env: Mapping[str, str]
    limits: Sequence[tuple[str, int]] = (("RLIMIT_CORE", 0),)
    linger: bool = False
    leftover_grace: float = 0.2


class RunningCommand:
    """A started command. Closing it kills its remaining processes."""

    def __init__(self, spawner: SpawnerClient, control: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        self.exit_status: int | None = None  # negative: the signal that killed the main process
        self.failure = ""
        self.survivors = 0
        self._spawner = spawner
        self._control = control
        self._loop = loop
        self._supervisor_pid = 0
        self._buffer = b""
        self._started: asyncio.Future[bool] = loop.create_future()
        self._ended: asyncio.Future[bool] = loop.create_future()

    @property
    def has_ended(self) -> bool:
        """Whether the whole process tree has ended."""
        return self._ended.done()

    @property
    def is_lost(self) -> bool:
        """Whether the supervisor died before it reported how the command ended."""
        return self.has_ended and not self._ended.result()

    @property
    def exit_code(self) -> int | None:
        """The exit code like a shell reports it: 128 plus the signal number if a signal killed the main process."""
        status = self.exit_status
        return None if status is None else status if status >= 0 else 128 - status

    async def wait(self, timeout: float | None = None) -> bool:
        """Wait until the whole process tree has ended. Return False on timeout."""
        await asyncio.wait([self._ended], timeout=timeout)
        return self.has_ended

    async def stop(self, grace: float) -> None:
        """Send SIGTERM to the whole process tree, SIGKILL after `grace` seconds, and wait for its end."""
        if self.has_ended:
            return
        with contextlib.suppress(OSError):
            self._control.send(f"{grace}\n".encode())
        if not await self.wait(grace + _ANSWER_TIMEOUT):
            self._spawner.kill_supervisor(self._supervisor_pid)
            await self.wait(_ANSWER_TIMEOUT)

    def close(self) -> None:
        if self._control.fileno() >= 0:
            self._loop.remove_reader(self._control)
            self._control.close()
        self._finish(False)

    def raise_if_not_started(self) -> None:
        if self.failure:
            raise ToolError(self.failure, code="not_started")

    async def _start(self, request: SpawnRequest) -> None:
        try:
            async with asyncio.timeout(_START_TIMEOUT):
                await self._loop.sock_sendall(self._control, encode_block(_to_plain(request)))
                self._loop.add_reader(self._control, self._on_readable)
                started = await self._started
        except TimeoutError as error:
            raise SpawnerTimeout("the spawner process does not answer; run the command again") from error
        except OSError:
            started = False
        if not started:
            raise SpawnerLost("the spawner process was killed; run the command again")

    def _on_readable(self) -> None:
        try:
            data = self._control.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close()
            return
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            self._on_message(*line.decode("utf-8", "replace").partition(" "))

    def _on_message(self, kind: str, _: str, rest: str) -> None:
        if kind == "started":
            self._supervisor_pid = int(rest)
            self._started.set_result(True)
        elif kind == "failed":
            self.failure = f"the command could not be started: {rest}"
            if not self._started.done():
                self._started.set_result(True)
                self._finish(True)
        elif kind == "exit":
            self.exit_status = int(rest)
        elif kind == "gone":
            self.survivors = int(rest)
            self._finish(True)

    def _finish(self, reported: bool) -> None:
        if not self._started.done():
            self._started.set_result(False)
        if not self._ended.done():
            self._ended.set_result(reported)


async def launch(source: SpawnerSource, request: SpawnRequest, streams: Sequence[int]) -> RunningCommand:
    """Start a command with three descriptors as its streams. Retry with a new spawner if the first one was dead."""
    _check_request(request)
    for is_last_attempt in (False, True):
        spawner = await source()
        try:
            own_end, child_end = socket.socketpair()
        except OSError as error:
            raise ToolError(f"the command could not be started: {error.strerror}", code="not_started") from error
        own_end.setblocking(False)
        command = RunningCommand(spawner, own_end)
        try:
            with child_end:
                spawner.send_descriptors([child_end.fileno(), *streams])
            await command._start(request)
            return command
        except SpawnerLost as error:
            command.close()
            spawner.kill()
            if is_last_attempt or isinstance(error, SpawnerTimeout):
                raise
        except BaseException:
            command.close()
            raise
    raise AssertionError("not reached")


def _to_plain(request: SpawnRequest) -> dict[str, object]:
    fields = msgspec.structs.asdict(request)
    return {**fields, "argv": list(request.argv), "env": dict(request.env), "limits": list(request.limits)}


def _check_request(request: SpawnRequest) -> None:
    for text in (*request.argv, request.cwd, *request.env, *request.env.values()):
        if "\0" in text:
            raise ToolError("a command cannot contain a zero byte; remove it", code="not_started")
    if max((len(os.fsencode(text)) for text in request.argv), default=0) > _MAX_ARGUMENT_BYTES:
        hint = "write it to a file and run the file"
        raise ToolError("the command is longer than the system limit of 128 KiB", code="not_started", hint=hint)
