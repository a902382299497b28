"""Programs Ostler itself needs (git, rg, MCP servers, agents): no shell, no sandbox, the same hold on their trees.

They go through the shared keeper too: it is quicker than a fork of Ostler would be safe, and only with it do they end
when Ostler is killed.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping, Sequence

from ostler.processes.command import Command, Request, launch
from ostler.processes.environment import for_commands
from ostler.processes.keeping import Keeper, shared
from ostler.processes.output import MEMORY_CAP, Output, Spill
from ostler.processes.pipes import OutPipe
from ostler.processes.running import GRACE, run_to_end
from ostler.vocabulary.errors import ToolFailure
from ostler.vocabulary.seams import Ran

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
) -> Ran:
    """Run a short-lived program of ours; `env` replaces the scrubbed environment of commands.

    Output beyond `cap` is left out, not saved; `errors` is what becomes of bytes that are no UTF-8, in Python's words.
    ToolFailure when the program cannot be started.
    """
    environment = for_commands(os.environ) if env is None else env
    _find(argv[0], environment)
    output = Output(_no_spill, cap=cap, errors=errors)
    return await run_to_end(shared_keeper, Request(argv, cwd, environment), output, timeout=timeout, stdin=stdin)


async def shared_keeper() -> Keeper:
    return shared()


def _find(program: str, env: Mapping[str, str]) -> None:
    import shutil

    if not shutil.which(program, path=env.get("PATH", os.defpath)):
        raise ToolFailure(
            f"the program {program!r} was not found", code="not_started", hint="install it or give its path"
        )


def _no_spill() -> Spill:
    raise FileNotFoundError("what our own programs print is not kept in files")


class Program:
    """A long-running program and its streams."""

    def __init__(
        self,
        command: Command,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        errors: OutPipe,
        reading: asyncio.BaseTransport,
    ) -> None:
        self.stdout = reader
        self.stdin = writer
        self._command = command
        self._errors = errors
        self._reading = reading

    @property
    def running(self) -> bool:
        return not self._command.gone

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
            self._errors.drain()
            self._reading.close()
            self.stdin.close()
            with contextlib.suppress(OSError):
                await self.stdin.wait_closed()


async def open_program(
    argv: Sequence[str], *, cwd: str, env: Mapping[str, str], on_errors: Callable[[bytes], None]
) -> Program:
    """Start a program to talk to over its standard streams, with exactly this environment. The caller stops it.

    Its input and its output are pipes of their own: to a Python program that writes by asyncio, a socket for both looks
    closed as soon as something comes in. `stdin.write_eof()` ends its input; what it prints as errors is `on_errors`'.
    """
    _find(argv[0], env)
    into, out, errors = _Ends(), _Ends(), OutPipe(on_errors)
    streams: list[asyncio.BaseTransport] = []
    try:
        writer = await _writer(into.take_writing())
        streams.append(writer.transport)
        reader, reading = await _reader(out.take_reading())
        streams.append(reading)
        command = await launch(shared_keeper, Request(argv, cwd, env), [into.reading, out.writing, errors.theirs])
    except BaseException:
        for stream in streams:
            stream.close()
        errors.close()
        raise
    finally:
        into.close()
        out.close()
    errors.close_theirs()
    return Program(command, reader, writer, errors, reading)


class _Ends:
    """The two ends of a pipe; what nobody took is closed."""

    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()

    def take_reading(self) -> int:
        taken, self.reading = self.reading, -1
        return taken

    def take_writing(self) -> int:
        taken, self.writing = self.writing, -1
        return taken

    def close(self) -> None:
        for end in (self.reading, self.writing):
            if end >= 0:
                os.close(end)


async def _reader(end: int) -> tuple[asyncio.StreamReader, asyncio.BaseTransport]:
    reader = asyncio.StreamReader(limit=_LINE_LIMIT)
    file = os.fdopen(end, "rb", 0)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), file)
    return reader, transport


async def _writer(end: int) -> asyncio.StreamWriter:
    file = os.fdopen(end, "wb", 0)
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), file
    )
    return asyncio.StreamWriter(transport, protocol, None, loop)
