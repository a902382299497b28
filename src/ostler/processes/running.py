"""Run a command to its end and say what it did."""

import asyncio
import contextlib
import time
from collections.abc import Iterator

from ostler.processes.command import Command, KeeperSource, Request, launch
from ostler.processes.output import Output
from ostler.processes.pipes import InPipe, OutPipe, Pipe
from ostler.vocabulary.errors import ToolFailure
from ostler.vocabulary.seams import Ran

GRACE = 2.0
# A person who cancels waits for the answer; most programs need a few milliseconds to remove their lock files.
CANCEL_GRACE = 0.15


async def run_to_end(
    source: KeeperSource,
    request: Request,
    output: Output,
    *,
    timeout: float,
    stdin: bytes | None = None,
    grace: float = GRACE,
    running: set[Command] | None = None,
) -> Ran:
    """Start it, attend to it, and tell; while it runs it is in `running`, for whoever must end everything."""
    began = time.monotonic()
    pipes = _Pipes()
    try:
        command = await launch(source, request, pipes.open(output, stdin))
        pipes.close_theirs()
        with _listed(command, running):
            timed_out = await _attend(command, timeout, grace)
        pipes.drain()
    finally:
        pipes.close()
        output.close()
    command.raise_if_not_started()
    return _ran(command, output, timed_out, time.monotonic() - began)


class _Pipes:
    """The three of one command, as many of them as could be opened."""

    def __init__(self) -> None:
        self._all: list[Pipe] = []

    def open(self, output: Output, stdin: bytes | None) -> list[int]:
        """The ends to hand over."""
        try:
            self._all.append(InPipe(stdin))
            self._all.append(OutPipe(lambda chunk: output.feed("stdout", chunk)))
            self._all.append(OutPipe(lambda chunk: output.feed("stderr", chunk)))
        except OSError as error:
            raise ToolFailure(f"the command could not be started: {error.strerror}", code="not_started") from error
        return [pipe.theirs for pipe in self._all]

    def close_theirs(self) -> None:
        for pipe in self._all:
            pipe.close_theirs()

    def drain(self) -> None:
        for pipe in self._all:
            pipe.drain()

    def close(self) -> None:
        for pipe in self._all:
            pipe.close()


@contextlib.contextmanager
def _listed(command: Command, running: set[Command] | None) -> Iterator[None]:
    if running is not None:
        running.add(command)
    try:
        yield
    finally:
        if running is not None:
            running.discard(command)


async def _attend(command: Command, timeout: float, grace: float) -> bool:
    """Wait for the end or bring it about; whether it had to be brought about."""
    try:
        await command.wait(timeout)
        timed_out = command.exit_status is None and not command.gone
        await command.stop(grace)
        return timed_out
    except asyncio.CancelledError:
        await command.stop(min(grace, CANCEL_GRACE))
        raise
    finally:
        command.close()


def note(stderr: str, told: str) -> str:
    """What a command printed as errors, and a line of ours after it."""
    return f"{stderr}{'' if not stderr or stderr.endswith(chr(10)) else chr(10)}[{told}]\n"


def _ran(command: Command, output: Output, timed_out: bool, seconds: float) -> Ran:
    stderr = output.streams["stderr"].text()
    if told := _strange_end(command, timed_out):
        stderr = note(stderr, told)
    return Ran(
        stdout=output.streams["stdout"].text(),
        stderr=stderr,
        exit_code=None if timed_out else command.exit_code,
        seconds=seconds,
        timed_out=timed_out,
        cut=output.cut,
        spill=output.spilled,
    )


def _strange_end(command: Command, timed_out: bool) -> str:
    if command.survivors:
        return f"{command.survivors} processes of this command could not be killed; the system holds them"
    if command.lost and not timed_out:
        return "the process that watched this command was killed, so how it ended is unknown"
    return ""
