"""Programs Ostler itself needs (git, rg, MCP servers, agents): no shell, no sandbox, the same hold on their trees.

They go through the shared keeper too: it is quicker than a fork of Ostler would be safe, and only with it do they end
when Ostler is killed.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping, Sequence

from ostler.core.errors import ToolError
from ostler.core.protocols import CommandResult
from ostler.processes.command_environment import command_environment
from ostler.processes.command_runner import GRACE, run_to_end
from ostler.processes.output import MEMORY_CAP, CommandOutput, SpillFile
from ostler.processes.pipes import OutputPipe
from ostler.processes.running_command import RunningCommand, SpawnRequest, launch
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
    """Run a short-lived program of ours; `env` replaces the scrubbed environment of commands.

    Output beyond `cap` is left out, not saved; `errors` is what becomes of bytes that are no UTF-8, in Python's words.
    ToolFailure when the program cannot be started.
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
            f"the program {program!r} was not found", code="not_started", hint="install it or give its path"
        )


def _no_spill() -> SpillFile:
    raise FileNotFoundError("what our own programs print is not kept in files")


class HelperProgram:
    """A long-running program and its streams."""

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
        self._command = command
        self._stderr = stderr
        self._read_transport = read_transport

    @property
    def is_running(self) -> bool:
        return not self._command.has_ended

    async def wait(self, timeout: float | None = None) -> int | None:
        """The exit code once its whole tree has ended; None while it runs, or when it was killed."""
        await self._command.wait(timeout)
        return self._command.exit_code

    async def stop(self, grace: float = GRACE) -> None:
        """End it and everything it started; safe to call twice."""
        try:
            await self._command.stop(grace)
        finally:
            self._command.close()
            self._stderr.drain()
            self._read_transport.close()
            self.stdin.close()
            with contextlib.suppress(OSError):
                await self.stdin.wait_closed()


async def open_program(
    argv: Sequence[str], *, cwd: str, env: Mapping[str, str], on_stderr: Callable[[bytes], None]
) -> HelperProgram:
    """Start a program to talk to over its standard streams, with exactly this environment. The caller stops it.

    Its input and its output are pipes of their own: to a Python program that writes by asyncio, a socket for both looks
    closed as soon as something comes in. `stdin.write_eof()` ends its input; what it prints as errors is `on_errors`'.
    """
    _check_found(argv[0], env)
    into, out, errors = _PipeEnds(), _PipeEnds(), OutputPipe(on_stderr)
    streams: list[asyncio.BaseTransport] = []
    try:
        writer = await _open_writer(into.take_write_end())
        streams.append(writer.transport)
        reader, reading = await _open_reader(out.take_read_end())
        streams.append(reading)
        command = await launch(
            get_shared_spawner, SpawnRequest(argv, cwd, env), [into.read_end, out.write_end, errors.child_end]
        )
    except BaseException:
        for stream in streams:
            stream.close()
        errors.close()
        raise
    finally:
        into.close()
        out.close()
    errors.close_child_end()
    return HelperProgram(command, reader, writer, errors, reading)


class _PipeEnds:
    """The two ends of a pipe; what nobody took is closed."""

    def __init__(self) -> None:
        self.read_end, self.write_end = os.pipe()

    def take_read_end(self) -> int:
        taken, self.read_end = self.read_end, -1
        return taken

    def take_write_end(self) -> int:
        taken, self.write_end = self.write_end, -1
        return taken

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
