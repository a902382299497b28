"""Runs programs that Ostler itself needs (git, rg, MCP servers, agents), without shell and sandbox.

They are also started by the shared spawner, so that they end when Ostler is killed.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping, Sequence

from ostler.core.commands import CommandResult
from ostler.core.errors import ToolError
from ostler.processes.command_environment import command_environment
from ostler.processes.command_runner import GRACE, run_to_end
from ostler.processes.output import MEMORY_CAP, CommandOutput, SpillFile
from ostler.processes.pipes import OutputPipe
from ostler.processes.running_command import RunningCommand, SpawnerSource, SpawnRequest, launch
from ostler.processes.spawner_client import SpawnerClient, shared_spawner

_LINE_LIMIT = 1024 * 1024


async def run_program(
    argv: Sequence[str],
    *,
    cwd: str,
    timeout: float,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    cap: int = MEMORY_CAP,
    errors: str = "replace",
) -> CommandResult:
    """Run a program to completion; `env` replaces the default environment of commands.

    Output beyond `cap` is dropped. `errors` is the decoding error handler for bytes that are not valid UTF-8. Raises
    `ToolError` if the program cannot be started.
    """
    environment = command_environment(os.environ) if env is None else env
    _check_found(argv[0], environment)
    output = CommandOutput(_no_spill, cap=cap, errors=errors)
    return await run_to_end(
        get_shared_spawner, SpawnRequest(argv, cwd, environment), output, timeout=timeout, stdin=stdin
    )


async def get_shared_spawner() -> SpawnerClient:
    return shared_spawner()


def _check_found(program: str, env: Mapping[str, str]) -> None:
    import shutil

    if not shutil.which(program, path=env.get("PATH", os.defpath)):
        raise ToolError(
            f"the program {program!r} was not found", code="not_started", hint="install it or use its full path"
        )


def _no_spill() -> SpillFile:
    raise FileNotFoundError("output of helper programs is not saved to files")


class HelperProgram:
    """A running program with its standard streams."""

    def __init__(
        self,
        command: RunningCommand,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        stderr: OutputPipe,
        read_transport: asyncio.BaseTransport,
    ) -> None:
        self.stdout = reader
        self.stdin = writer
        self.command = command
        self._stderr = stderr
        self._read_transport = read_transport

    @property
    def is_running(self) -> bool:
        return not self.command.has_ended

    async def wait(self, timeout: float | None = None) -> int | None:
        """Wait until the whole process tree has ended. Return the exit code, or None on timeout or if it was killed."""
        await self.command.wait(timeout)
        return self.command.exit_code

    async def stop(self, grace: float = GRACE) -> None:
        """Stop the whole process tree. Can be called twice."""
        try:
            await self.command.stop(grace)
        finally:
            self.command.close()
            self._stderr.drain()
            self._read_transport.close()
            self.stdin.close()
            with contextlib.suppress(OSError):
                await self.stdin.wait_closed()


async def open_program(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    on_stderr: Callable[[bytes], None],
    spawner: SpawnerSource = get_shared_spawner,
) -> HelperProgram:
    """Start a program with exactly this environment, to communicate over its standard streams. The caller stops it.

    Its input and output are separate pipes: with one socket for both, a Python program that uses asyncio treats it as
    closed when data arrives. `stdin.write_eof()` closes its input; its error output goes to `on_stderr`.
    """
    _check_found(argv[0], env)
    input_pipe, output_pipe, errors = _PipeEnds(), _PipeEnds(), OutputPipe(on_stderr)
    streams: list[asyncio.BaseTransport] = []
    try:
        writer = await _open_writer(input_pipe.take_write_end())
        streams.append(writer.transport)
        reader, read_transport = await _open_reader(output_pipe.take_read_end())
        streams.append(read_transport)
        command = await launch(
            spawner,
            SpawnRequest(argv, cwd, env),
            [input_pipe.read_end, output_pipe.write_end, errors.child_end],
        )
    except BaseException:
        for stream in streams:
            stream.close()
        errors.close()
        raise
    finally:
        input_pipe.close()
        output_pipe.close()
    errors.close_child_end()
    return HelperProgram(command, reader, writer, errors, read_transport)


class _PipeEnds:
    """The two ends of a pipe; `close` closes the ends that were not taken."""

    def __init__(self) -> None:
        self.read_end, self.write_end = os.pipe()

    def take_read_end(self) -> int:
        fd, self.read_end = self.read_end, -1
        return fd

    def take_write_end(self) -> int:
        fd, self.write_end = self.write_end, -1
        return fd

    def close(self) -> None:
        for end in (self.read_end, self.write_end):
            if end >= 0:
                os.close(end)


async def _open_reader(end: int) -> tuple[asyncio.StreamReader, asyncio.BaseTransport]:
    reader = asyncio.StreamReader(limit=_LINE_LIMIT)
    file = os.fdopen(end, "rb", 0)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), file)
    return reader, transport


async def _open_writer(end: int) -> asyncio.StreamWriter:
    file = os.fdopen(end, "wb", 0)
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), file
    )
    return asyncio.StreamWriter(transport, protocol, None, loop)
