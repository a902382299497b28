"""What a search program prints, read from memory that it fills by itself: nobody wakes for each of its writes."""

import os
import time
from collections.abc import Callable, Sequence

import msgspec

from ostler.processes.command import Command, Request, launch
from ostler.processes.environment import for_commands
from ostler.processes.pipes import OutPipe
from ostler.processes.programs import shared_keeper

_PIECE = 1024 * 1024
_LOOK = 0.01
_ERRORS_KEPT = 4000
_LIMITS = (("RLIMIT_CORE", 0), ("RLIMIT_FSIZE", 512 * 1024 * 1024))


class Ended(msgspec.Struct):
    """How a program ended: its status (None when it was stopped), its complaints, and whether its time was up."""

    status: int | None = None
    errors: str = ""
    timed_out: bool = False


async def printed(argv: Sequence[str], *, cwd: str, end: bytes, take: Callable[[bytes], bool], seconds: float) -> Ended:
    """Run a program and hand over whole records, many at once, while `take` wants more; it is gone on return."""
    said = bytearray()
    records = _Records(end, take)
    errors = OutPipe(said.extend)
    try:
        request = Request(argv, cwd, for_commands(os.environ), _LIMITS)
        with open(os.devnull, "rb") as nothing:  # noqa: ASYNC230 - it never blocks
            command = await launch(shared_keeper, request, [nothing.fileno(), records.memory, errors.theirs])
        errors.close_theirs()
        try:
            ended = await _attend(command, records, seconds)
        finally:
            await command.stop(0)
            command.close()
        errors.drain()
    finally:
        errors.close()
        records.close()
    command.raise_if_not_started()
    ended.errors = said[:_ERRORS_KEPT].decode("utf-8", "replace")
    return ended


async def _attend(command: Command, records: "_Records", seconds: float) -> Ended:
    until, pause = time.monotonic() + seconds, _LOOK
    while True:
        gone = await command.wait(pause)
        size = records.hand_over()
        if records.enough:
            return Ended()
        if gone and not size:
            records.hand_over_rest()
            return Ended(command.exit_code)
        if time.monotonic() > until:
            return Ended(timed_out=True)
        pause = 0 if size == _PIECE else _LOOK


class _Records:
    """A file in memory, and what of it was handed over."""

    def __init__(self, end: bytes, take: Callable[[bytes], bool]) -> None:
        self.memory = _memory()
        self.enough = False
        self._end = end
        self._take = take
        self._at = 0
        self._rest = b""

    def hand_over(self) -> int:
        """A piece of what is new, up to the end of its last record; how many bytes were looked at."""
        piece = os.pread(self.memory, _PIECE, self._at)
        self._at += len(piece)
        whole, end, rest = (self._rest + piece).rpartition(self._end)
        self._rest = rest
        if end:
            self.enough = not self._take(whole + end)
        return len(piece)

    def hand_over_rest(self) -> None:
        """What stands behind the last end."""
        if self._rest:
            self._take(self._rest + self._end)

    def close(self) -> None:
        os.close(self.memory)


def _memory() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("ostler-search", os.MFD_CLOEXEC)
    import tempfile

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
