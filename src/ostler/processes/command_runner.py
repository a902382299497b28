"""Runs a command to completion and returns its result."""

import asyncio
import time

from ostler.core.commands import CommandResult
from ostler.core.errors import ToolError
from ostler.processes.output import CommandOutput
from ostler.processes.pipes import CommandPipe, InputPipe, OutputPipe
from ostler.processes.running_command import RunningCommand, SpawnerSource, SpawnRequest, launch

GRACE = 2.0
# Short, because the user waits; most programs need only a few milliseconds to remove their lock files.
CANCEL_GRACE = 0.15


async def run_to_end(
    source: SpawnerSource,
    request: SpawnRequest,
    output: CommandOutput,
    *,
    timeout: float,
    stdin: bytes | None = None,
    grace: float = GRACE,
    running_commands: set[RunningCommand] | None = None,
) -> CommandResult:
    """Run a command and return its result. While it runs it is in `running_commands`, so that it can be stopped."""
    started = time.monotonic()
    running = set() if running_commands is None else running_commands
    pipes = _CommandPipes()
    try:
        command = await launch(source, request, pipes.open(output, stdin))
        pipes.close_child_ends()
        running.add(command)
        try:
            timed_out = await _wait_or_stop(command, timeout, grace)
        finally:
            running.discard(command)
        pipes.drain()
    finally:
        pipes.close()
        output.close()
    command.raise_if_not_started()
    return _make_result(command, output, timed_out, time.monotonic() - started)


class _CommandPipes:
    """The three pipes of one command."""

    def __init__(self) -> None:
        self._all: list[CommandPipe] = []

    def open(self, output: CommandOutput, stdin: bytes | None) -> list[int]:
        """Open the pipes and return the ends for the command."""
        try:
            self._all.append(InputPipe(stdin))
            self._all.append(OutputPipe(lambda chunk: output.feed("stdout", chunk)))
            self._all.append(OutputPipe(lambda chunk: output.feed("stderr", chunk)))
        except OSError as error:
            raise ToolError(f"the command could not be started: {error.strerror}", code="not_started") from error
        return [pipe.child_end for pipe in self._all]

    def close_child_ends(self) -> None:
        for pipe in self._all:
            pipe.close_child_end()

    def drain(self) -> None:
        for pipe in self._all:
            pipe.drain()

    def close(self) -> None:
        for pipe in self._all:
            pipe.close()


async def _wait_or_stop(command: RunningCommand, timeout: float, grace: float) -> bool:
    """Wait for the command, and stop it after the timeout. Return whether it timed out."""
    try:
        await command.wait(timeout)
        timed_out = command.exit_status is None and not command.has_ended
        await command.stop(grace)
        return timed_out
    except asyncio.CancelledError:
        await command.stop(min(grace, CANCEL_GRACE))
        raise
    finally:
        command.close()


def add_note(stderr: str, text: str) -> str:
    """Append a note in brackets to the error output of a command."""
    return f"{stderr}{'' if not stderr or stderr.endswith(chr(10)) else chr(10)}[{text}]\n"


def _make_result(command: RunningCommand, output: CommandOutput, timed_out: bool, seconds: float) -> CommandResult:
    stderr = output.streams["stderr"].text()
    if note := _abnormal_end(command, timed_out):
        stderr = add_note(stderr, note)
    return CommandResult(
        stdout=output.streams["stdout"].text(),
        stderr=stderr,
        exit_code=None if timed_out else command.exit_code,
        seconds=seconds,
        timed_out=timed_out,
        truncated=output.truncated,
        output_file=output.spill_path,
    )


def _abnormal_end(command: RunningCommand, timed_out: bool) -> str:
    if command.survivors:
        return f"{command.survivors} processes of this command could not be killed"
    if command.is_lost and not timed_out:
        return "the supervisor of this command was killed; its exit status is unknown"
    return ""
