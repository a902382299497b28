"""Reads the output of a search program from a memory file in batches."""

import os
import time
from collections.abc import Callable, Sequence

import msgspec

from ostler.processes.command_environment import command_environment
from ostler.processes.helper_programs import get_shared_spawner
from ostler.processes.pipes import OutputPipe
from ostler.processes.running_command import RunningCommand, SpawnRequest, launch

_CHUNK_BYTES = 1024 * 1024
_POLL_SECONDS = 0.01
_MAX_STDERR_BYTES = 4000
_RESOURCE_LIMITS = (("RLIMIT_CORE", 0), ("RLIMIT_FSIZE", 512 * 1024 * 1024))


class ProcessExit(msgspec.Struct):
    """How a program ended. `status` is None if it was stopped."""

    status: int | None = None
    stderr: str = ""
    timed_out: bool = False


async def run_and_read(
    argv: Sequence[str], *, cwd: str, separator: bytes, on_records: Callable[[bytes], bool], timeout_seconds: float
) -> ProcessExit:
    """Run a program and pass complete records to `on_records` in batches, until it returns False.

    The program has exited when this returns.
    """
    stderr = bytearray()
    records = _RecordBuffer(separator, on_records)
    errors = OutputPipe(stderr.extend)
    try:
        request = SpawnRequest(argv, cwd, command_environment(os.environ), _RESOURCE_LIMITS)
        with open(os.devnull, "rb") as stdin:  # noqa: ASYNC230 - it never blocks
            command = await launch(get_shared_spawner, request, [stdin.fileno(), records.memory_fd, errors.child_end])
        errors.close_child_end()
        try:
            result = await _poll(command, records, timeout_seconds)
        finally:
            await command.stop(0)
            command.close()
        errors.drain()
    finally:
        errors.close()
        records.close()
    command.raise_if_not_started()
    result.stderr = stderr[:_MAX_STDERR_BYTES].decode("utf-8", "replace")
    return result


async def _poll(command: RunningCommand, records: "_RecordBuffer", timeout_seconds: float) -> ProcessExit:
    deadline, pause = time.monotonic() + timeout_seconds, _POLL_SECONDS
    while True:
        exited = await command.wait(pause)
        size = records.deliver()
        if records.is_done:
            return ProcessExit()
        if exited and not size:
            records.deliver_rest()
            return ProcessExit(command.exit_code)
        if time.monotonic() > deadline:
            return ProcessExit(timed_out=True)
        pause = 0 if size == _CHUNK_BYTES else _POLL_SECONDS


class _RecordBuffer:
    """A memory file that the program writes to, and the position up to which it was read."""

    def __init__(self, separator: bytes, on_records: Callable[[bytes], bool]) -> None:
        self.memory_fd = _create_memory_file()
        self.is_done = False
        self._separator = separator
        self._on_records = on_records
        self._offset = 0
        self._incomplete = b""

    def deliver(self) -> int:
        """Deliver the complete records of the next chunk, and return the size of the chunk."""
        chunk = os.pread(self.memory_fd, _CHUNK_BYTES, self._offset)
        self._offset += len(chunk)
        complete, end, rest = (self._incomplete + chunk).rpartition(self._separator)
        self._incomplete = rest
        if end:
            self.is_done = not self._on_records(complete + end)
        return len(chunk)

    def deliver_rest(self) -> None:
        """Deliver the last record if it has no separator."""
        if self._incomplete:
            self._on_records(self._incomplete + self._separator)

    def close(self) -> None:
        os.close(self.memory_fd)


def _create_memory_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("ostler-search", os.MFD_CLOEXEC)
    import tempfile

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
