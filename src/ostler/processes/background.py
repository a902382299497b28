"""Commands that go on while the session does other things: started, listed, read, stopped, all ended at its end."""

import asyncio
import time
from typing import Literal

import msgspec

from ostler.processes.command import Command, KeeperSource, Request, launch
from ostler.processes.output import Spill
from ostler.processes.pipes import InPipe, OutPipe
from ostler.text.cut import HeadTail
from ostler.vocabulary.errors import ToolFailure
from ostler.vocabulary.seams import Job

MOST = 16
_UNREAD_KEPT = 64 * 1024


class BackgroundOutput(msgspec.Struct, frozen=True):
    """What a background command printed since it was last read."""

    text: str
    state: Job


class _Job:
    def __init__(self, id: str, text: str, log: Spill) -> None:
        self.id = id
        self.text = text
        self.log = log
        self.began = time.monotonic()
        self.ended: float | None = None
        self.stopped = False
        self.unread = _ring()
        self.pipe = OutPipe(self.feed)
        self.command: Command

    def feed(self, chunk: bytes) -> None:
        self.unread.feed(chunk)
        self.log.feed(chunk)

    def take(self) -> str:
        text, self.unread = self.unread.text(), _ring()
        return text

    def state(self) -> Job:
        if self.ended is None and self.command.gone:
            self.pipe.drain()
            self.ended = time.monotonic()
        code = self.command.exit_code
        state: Literal["running", "exited", "killed"] = "running" if not self.command.gone else "exited"
        if self.stopped or (self.command.gone and code is None):
            state = "killed"
        seconds = (self.ended or time.monotonic()) - self.began
        return Job(self.id, self.text, state, code, seconds, self.log.path)

    async def stop(self, grace: float) -> None:
        if not self.command.gone:
            self.stopped = True
            await self.command.stop(grace)
        self.command.close()
        self.pipe.drain()
        self.log.close()
        self.state()


class Background:
    """The background commands of one session."""

    def __init__(self, most: int = MOST) -> None:
        self._jobs: dict[str, _Job] = {}
        self._most = most
        self._count = 0

    async def start(self, source: KeeperSource, request: Request, text: str, log_dir: str) -> str:
        if sum(not job.command.gone for job in self._jobs.values()) >= self._most:
            hint = "stop one of them first"
            raise ToolFailure(f"{self._most} background commands are running already", code="too_many", hint=hint)
        self._count += 1
        job = _Job(f"bg{self._count}", text, Spill(log_dir, f"background-{self._count}.log"))
        into = InPipe(None)
        try:
            job.command = await launch(source, request, [into.theirs, job.pipe.theirs, job.pipe.theirs])
        except BaseException:
            job.pipe.close()
            job.log.close()
            raise
        finally:
            into.close()
        job.pipe.close_theirs()
        self._jobs[job.id] = job
        return job.id

    def list(self) -> list[Job]:
        return [job.state() for job in self._jobs.values()]

    def read(self, id: str) -> BackgroundOutput:
        job = self._find(id)
        state = job.state()
        return BackgroundOutput(job.take(), state)

    async def wait(self, id: str, timeout: float | None = None) -> Job:
        """Until it has ended, or for so many seconds."""
        job = self._find(id)
        await job.command.wait(timeout)
        return job.state()

    async def stop(self, id: str, grace: float) -> Job:
        job = self._find(id)
        await job.stop(grace)
        return job.state()

    async def aclose(self, grace: float) -> None:
        await asyncio.gather(*(job.stop(grace) for job in self._jobs.values()))
        self._jobs = {}

    def _find(self, id: str) -> _Job:
        if job := self._jobs.get(id):
            return job
        known = ", ".join(self._jobs) or "none"
        raise ToolFailure(f"there is no background command {id!r}", code="not_found", hint=f"there are: {known}")


def _ring() -> HeadTail:
    return HeadTail(_UNREAD_KEPT // 2, _UNREAD_KEPT // 2)
