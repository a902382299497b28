"""Starts, lists, reads and stops the background commands of a session."""

import asyncio
import time
from typing import Literal

import msgspec

from ostler.core.commands import BackgroundJob
from ostler.core.errors import ToolError
from ostler.processes.output import SpillFile
from ostler.processes.pipes import CommandPipe, InputPipe, OpenInputPipe, OutputPipe
from ostler.processes.running_command import RunningCommand, SpawnerSource, SpawnRequest, launch
from ostler.text.truncate import HeadTail

MAX_RUNNING = 16
_MAX_UNREAD_BYTES = 64 * 1024


class BackgroundOutput(msgspec.Struct, frozen=True):
    """The output of a background command since the last read."""

    text: str
    job: BackgroundJob


class _BackgroundCommand:
    def __init__(self, id: str, text: str, log: SpillFile) -> None:
        self.id = id
        self.text = text
        self.log = log
        self.started_at = time.monotonic()
        self.ended_at: float | None = None
        self.stopped = False
        self.unread = _new_buffer()
        self.pipe = OutputPipe(self.feed)
        self.input: CommandPipe | None = None
        self.command: RunningCommand

    def feed(self, chunk: bytes) -> None:
        self.unread.feed(chunk)
        self.log.feed(chunk)

    def take_unread(self) -> str:
        text, self.unread = self.unread.text(), _new_buffer()
        return text

    def state(self) -> BackgroundJob:
        if self.ended_at is None and self.command.has_ended:
            self.pipe.drain()
            self.close_input()
            self.ended_at = time.monotonic()
        code = self.command.exit_code
        state: Literal["running", "exited", "killed"] = "running" if not self.command.has_ended else "exited"
        if self.stopped or (self.command.has_ended and code is None):
            state = "killed"
        seconds = (self.ended_at or time.monotonic()) - self.started_at
        return BackgroundJob(self.id, self.text, state, code, seconds, self.log.path)

    def close_input(self) -> None:
        if self.input is not None:
            self.input.close()

    async def stop(self, grace: float) -> None:
        if not self.command.has_ended:
            self.stopped = True
            await self.command.stop(grace)
        self.command.close()
        self.close_input()
        self.pipe.drain()
        self.log.close()
        self.state()


class BackgroundCommands:
    """The background commands of one session."""

    def __init__(self, max_running: int = MAX_RUNNING) -> None:
        self._jobs: dict[str, _BackgroundCommand] = {}
        self._max_running = max_running
        self._count = 0

    async def start(
        self, source: SpawnerSource, request: SpawnRequest, text: str, log_dir: str, *, interactive: bool = False
    ) -> str:
        """Start a command and return its id. With `interactive`, `write` can send text to it."""
        if sum(not job.command.has_ended for job in self._jobs.values()) >= self._max_running:
            hint = "stop one first"
            raise ToolError(f"{self._max_running} background commands are already running", code="too_many", hint=hint)
        self._count += 1
        job = _BackgroundCommand(f"bg{self._count}", text, SpillFile(log_dir, f"background-{self._count}.log"))
        job.input = OpenInputPipe() if interactive else InputPipe(None)
        try:
            job.command = await launch(source, request, [job.input.child_end, job.pipe.child_end, job.pipe.child_end])
        except BaseException:
            job.pipe.close()
            job.close_input()
            job.log.close()
            raise
        job.input.close_child_end()
        job.pipe.close_child_end()
        self._jobs[job.id] = job
        return job.id

    def list(self) -> list[BackgroundJob]:
        return [job.state() for job in self._jobs.values()]

    def read(self, id: str) -> BackgroundOutput:
        job = self._find(id)
        state = job.state()
        return BackgroundOutput(job.take_unread(), state)

    def write(self, id: str, data: bytes) -> None:
        """Send data to the input of an interactive command. Raises `ToolError` if it cannot read it."""
        job = self._find(id)
        if not isinstance(job.input, OpenInputPipe) or job.state().state != "running":
            raise ToolError(f"the command {id} reads no input", code="no_input")
        try:
            job.input.write(data)
        except BufferError as error:
            raise ToolError(str(error), code="no_input", hint="wait until it does, or stop it") from None

    async def wait(self, id: str, timeout: float | None = None) -> BackgroundJob:
        """Wait until the command has ended, or for `timeout` seconds."""
        job = self._find(id)
        await job.command.wait(timeout)
        return job.state()

    async def stop(self, id: str, grace: float) -> BackgroundJob:
        job = self._find(id)
        await job.stop(grace)
        return job.state()

    async def aclose(self, grace: float) -> None:
        await asyncio.gather(*(job.stop(grace) for job in self._jobs.values()))
        self._jobs = {}

    def _find(self, id: str) -> _BackgroundCommand:
        if job := self._jobs.get(id):
            return job
        known = ", ".join(self._jobs) or "none"
        raise ToolError(f"there is no background command {id!r}", code="not_found", hint=f"available: {known}")


def _new_buffer() -> HeadTail:
    return HeadTail(_MAX_UNREAD_BYTES // 2, _MAX_UNREAD_BYTES // 2)
