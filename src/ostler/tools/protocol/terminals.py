"""The terminals an agent was given: what they printed last, how they ended, and their end."""

import codecs
import os
from typing import Any

import msgspec

from ostler.core.errors import ToolError
from ostler.core.protocols import BackgroundJob, BackgroundJobs

DEFAULT_LIMIT = 1024 * 1024
MAX_LIMIT = 16 * 1024 * 1024


class _Terminal(msgspec.Struct, frozen=True):
    jobs: BackgroundJobs
    job: str
    limit: int


class Terminals:
    """By id; whatever is not released ends with the ground it runs on."""

    def __init__(self) -> None:
        self._terminals: dict[str, _Terminal] = {}
        self._count = 0

    def add(self, jobs: BackgroundJobs, job: str, limit: int | None) -> str:
        """A terminal for a job that runs."""
        self._count += 1
        terminal_id = f"terminal-{self._count}"
        kept = DEFAULT_LIMIT if limit is None else max(0, min(limit, MAX_LIMIT))
        self._terminals[terminal_id] = _Terminal(jobs, job, kept)
        return terminal_id

    async def output(self, terminal_id: str) -> dict[str, Any]:
        """The end of what it printed, as much as its limit holds, and how it ended if it did."""
        terminal = self._find(terminal_id)
        _, job = await terminal.jobs.read(terminal.job, 0)
        text, cut = read_tail(job.log, terminal.limit, is_final=job.state != "running")
        told: dict[str, Any] = {"output": text, "truncated": cut}
        return told if job.state == "running" else {**told, "exitStatus": _exit_status(job)}

    async def wait(self, terminal_id: str) -> dict[str, Any]:
        """How it ended, once it has."""
        terminal = self._find(terminal_id)
        while True:
            _, job = await terminal.jobs.read(terminal.job, 60)
            if job.state != "running":
                return _exit_status(job)

    async def kill(self, terminal_id: str) -> None:
        """End it; what it printed can still be read."""
        terminal = self._find(terminal_id)
        await terminal.jobs.stop(terminal.job)

    async def release(self, terminal_id: str) -> None:
        """End it, and forget it."""
        terminal = self._find(terminal_id)
        del self._terminals[terminal_id]
        await terminal.jobs.stop(terminal.job)

    def _find(self, terminal_id: str) -> _Terminal:
        if terminal := self._terminals.get(terminal_id):
            return terminal
        raise ToolError(f"there is no terminal {terminal_id!r:.60}", code="not_found")


def _exit_status(job: BackgroundJob) -> dict[str, Any]:
    if job.state == "killed":
        return {"exitCode": None, "signal": "SIGTERM"}
    return {"exitCode": job.exit_code, "signal": None}


def read_tail(path: str, limit: int, *, is_final: bool) -> tuple[str, bool]:
    """The last bytes of a file as text, begun at a character, and whether there was more before them.

    Unless it is `whole`, a character at the end of which only a part has come is left for later.
    """
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - limit))
        data = file.read(limit)
    cut = size > limit
    if cut:
        while data and data[0] & 0xC0 == 0x80:
            data = data[1:]
    return codecs.getincrementaldecoder("utf-8")("replace").decode(data, is_final), cut
