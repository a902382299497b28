"""One command under way, as Ostler holds it: by the control socket of its warden."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec

from ostler.processes.keeping import Keeper, KeeperLost, KeeperSilent, block
from ostler.vocabulary.errors import ToolFailure

_START_LIMIT = 10.0
_ANSWER_LIMIT = 3.0
_ARGUMENT_LIMIT = 128 * 1024 - 1

KeeperSource = Callable[[], Awaitable[Keeper]]


class Request(msgspec.Struct, frozen=True):
    """What to start and how.

    When the main process has ended, what it left behind gets `leftover_grace` seconds between SIGTERM and SIGKILL;
    with `linger` it may stay, and the command is over when the last of it has ended.
    """

    argv: Sequence[str]
    cwd: str
    env: Mapping[str, str]
    limits: Sequence[tuple[str, int]] = (("RLIMIT_CORE", 0),)
    linger: bool = False
    leftover_grace: float = 0.2


class Command:
    """A started command. Closing it kills whatever is left of it."""

    def __init__(self, keeper: Keeper, control: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        self.exit_status: int | None = None  # negative: the signal that ended the main process
        self.failure = ""
        self.survivors = 0
        self._keeper = keeper
        self._control = control
        self._loop = loop
        self._warden = 0
        self._buffer = b""
        self._started: asyncio.Future[bool] = loop.create_future()
        self._gone: asyncio.Future[bool] = loop.create_future()

    @property
    def gone(self) -> bool:
        """Whether the whole tree has ended."""
        return self._gone.done()

    @property
    def lost(self) -> bool:
        """Whether the warden died before it could tell how the command ended."""
        return self.gone and not self._gone.result()

    @property
    def exit_code(self) -> int | None:
        """As a shell would tell it: 128 and the signal when one ended the main process."""
        status = self.exit_status
        return None if status is None else status if status >= 0 else 128 - status

    async def wait(self, timeout: float | None = None) -> bool:
        """Until the whole tree has ended; False when that took too long."""
        await asyncio.wait([self._gone], timeout=timeout)
        return self.gone

    async def stop(self, grace: float) -> None:
        """SIGTERM, after `grace` seconds SIGKILL, to every process of the tree; returns when it is gone."""
        if self.gone:
            return
        with contextlib.suppress(OSError):
            self._control.send(f"{grace}\n".encode())
        if not await self.wait(grace + _ANSWER_LIMIT):
            self._keeper.kill_warden(self._warden)
            await self.wait(_ANSWER_LIMIT)

    def close(self) -> None:
        if self._control.fileno() >= 0:
            self._loop.remove_reader(self._control)
            self._control.close()
        self._settle(False)

    def raise_if_not_started(self) -> None:
        if self.failure:
            raise ToolFailure(self.failure, code="not_started")

    async def _begin(self, request: Request) -> None:
        try:
            async with asyncio.timeout(_START_LIMIT):
                await self._loop.sock_sendall(self._control, block(_plain(request)))
                self._loop.add_reader(self._control, self._listen)
                began = await self._started
        except TimeoutError as error:
            raise KeeperSilent("the helper process that starts commands does not answer; run it again") from error
        except OSError:
            began = False
        if not began:
            raise KeeperLost("the helper process that starts commands was killed")

    def _listen(self) -> None:
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
            self._hear(*line.decode("utf-8", "replace").partition(" "))

    def _hear(self, word: str, _: str, rest: str) -> None:
        if word == "started":
            self._warden = int(rest)
            self._started.set_result(True)
        elif word == "failed":
            self.failure = f"the command could not be started: {rest}"
            if not self._started.done():
                self._started.set_result(True)
                self._settle(True)
        elif word == "exit":
            self.exit_status = int(rest)
        elif word == "gone":
            self.survivors = int(rest)
            self._settle(True)

    def _settle(self, told: bool) -> None:
        if not self._started.done():
            self._started.set_result(False)
        if not self._gone.done():
            self._gone.set_result(told)


async def launch(source: KeeperSource, request: Request, streams: Sequence[int]) -> Command:
    """Start a command on three descriptors; once more, with a new keeper, if the first was dead and nothing began."""
    _check(request)
    for last in (False, True):
        keeper = await source()
        try:
            ours, theirs = socket.socketpair()
        except OSError as error:
            raise ToolFailure(f"the command could not be started: {error.strerror}", code="not_started") from error
        ours.setblocking(False)
        command = Command(keeper, ours)
        try:
            with theirs:
                keeper.hand_over([theirs.fileno(), *streams])
            await command._begin(request)
            return command
        except KeeperLost as error:
            command.close()
            keeper.abandon()
            if last or isinstance(error, KeeperSilent):
                raise
        except BaseException:
            command.close()
            raise
    raise AssertionError("not reached")


def _plain(request: Request) -> dict[str, object]:
    fields = msgspec.structs.asdict(request)
    return {**fields, "argv": list(request.argv), "env": dict(request.env), "limits": list(request.limits)}


def _check(request: Request) -> None:
    for text in (*request.argv, request.cwd, *request.env, *request.env.values()):
        if "\0" in text:
            raise ToolFailure("a command cannot contain a zero byte; remove it", code="not_started")
    if max((len(os.fsencode(text)) for text in request.argv), default=0) > _ARGUMENT_LIMIT:
        hint = "write it to a file first and run that"
        raise ToolFailure("the command is longer than the 128 KiB the system takes", code="not_started", hint=hint)
