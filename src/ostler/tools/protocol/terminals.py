"""Terminals of an ACP agent: output, exit status, kill and release."""

import codecs
import os
from typing import Any

import msgspec

from ostler.core.commands import BackgroundJob, BackgroundJobs
from ostler.core.errors import ToolError
from ostler.text.secret_masker import SecretMasker

DEFAULT_LIMIT = 1024 * 1024
MAX_LIMIT = 16 * 1024 * 1024
_MASK_MARGIN = 16 * 1024  # read before the limit, so that a secret at the limit is recognised


class _Terminal(msgspec.Struct, frozen=True):
    jobs: BackgroundJobs
    job: str
    limit: int


class Terminals:
    """The terminals by id. Those that are not released end with the workspace. `masker` masks secrets in output."""

    def __init__(self, masker: SecretMasker | None = None) -> None:
        self._masker = masker
        self._terminals: dict[str, _Terminal] = {}
        self._count = 0

    def add(self, jobs: BackgroundJobs, job: str, limit: int | None) -> str:
        """Create a terminal for a running job and return its id."""
        self._count += 1
        terminal_id = f"terminal-{self._count}"
        limit = DEFAULT_LIMIT if limit is None else max(0, min(limit, MAX_LIMIT))
        self._terminals[terminal_id] = _Terminal(jobs, job, limit)
        return terminal_id

    async def output(self, terminal_id: str) -> dict[str, Any]:
        """Return the end of the output, up to the limit, and the exit status if the command ended."""
        terminal = self._find(terminal_id)
        _, job = await terminal.jobs.read(terminal.job, 0)
        is_final = job.state != "running"
        if self._masker:
            text, truncated = read_masked_tail(job.log, terminal.limit, self._masker, is_final=is_final)
        else:
            text, truncated = read_tail(job.log, terminal.limit, is_final=is_final)
        output: dict[str, Any] = {"output": text, "truncated": truncated}
        return output if job.state == "running" else {**output, "exitStatus": _exit_status(job)}

    async def wait(self, terminal_id: str) -> dict[str, Any]:
        """Wait for the command to end and return its exit status."""
        terminal = self._find(terminal_id)
        while True:
            _, job = await terminal.jobs.read(terminal.job, 60)
            if job.state != "running":
                return _exit_status(job)

    async def kill(self, terminal_id: str) -> None:
        """Stop the command; its output can still be read."""
        terminal = self._find(terminal_id)
        await terminal.jobs.stop(terminal.job)

    async def release(self, terminal_id: str) -> None:
        """Stop the command and remove the terminal."""
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


def read_masked_tail(path: str, limit: int, masker: SecretMasker, *, is_final: bool) -> tuple[str, bool]:
    """Return the end of a file with its secrets masked, and whether it was truncated.

    A secret that the limit cuts is masked, too. Unless `is_final`, what may be the start of a secret is omitted.
    """
    text, is_cut = read_tail(path, limit + _MASK_MARGIN, is_final=is_final)
    if not is_final:
        text = text[: len(text) - masker.partial_secret_length(text)]
    data = masker.mask(text).encode()
    if is_cut:
        data = data[_MASK_MARGIN:]  # it may begin with the rest of a secret
    return _last_characters(data, limit).decode(), is_cut or len(data) > limit


def _last_characters(data: bytes, limit: int) -> bytes:
    """Return the last `limit` bytes without an incomplete character at the start."""
    data = data[max(0, len(data) - limit) :]
    while data and data[0] & 0xC0 == 0x80:
        data = data[1:]
    return data


def read_tail(path: str, limit: int, *, is_final: bool) -> tuple[str, bool]:
    """Return the end of a file as text, and whether it was truncated.

    Unless `is_final`, an incomplete character at the end is omitted.
    """
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - limit))
        data = file.read(limit)
    truncated = size > limit
    if truncated:
        data = _last_characters(data, limit)
    return codecs.getincrementaldecoder("utf-8")("replace").decode(data, is_final), truncated
