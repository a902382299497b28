"""An agent's program and the conversation on its streams: started, spoken to, and ended without anything left."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from ostler.core.errors import BackendError, JournalError, ToolError, UsageError
from ostler.processes.helper_programs import HelperProgram, open_program
from ostler.text.sanitise import sanitise
from ostler.wire.jsonrpc import JsonRpcPeer, Mirror, OutgoingParams, PeerClosed, RequestHandler

MAX_UNSENT_BYTES = 64 * 1024 * 1024
_CHUNK_BYTES = 256 * 1024
_TAIL_BYTES = 4096
_MAX_TAIL_LINES = 12
_EXIT_TIMEOUT = 1.0  # how long an agent that closed its output may take to end, so that its exit code can be told
_STOP_TIMEOUT = 0.5  # how long it may take to leave by itself when its input ends


class Launch(msgspec.Struct, frozen=True):
    """How to start an agent; `env` is its whole environment."""

    command: str
    args: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    name: str = "the agent"

    @property
    def argv(self) -> Sequence[str]:
        return (self.command, *self.args)


class AgentProcess:
    """A running agent. Whatever ends the conversation, what was asked fails with a sentence that says why."""

    def __init__(self, launch: Launch, program: HelperProgram) -> None:
        self.launch = launch
        self.peer: JsonRpcPeer
        self._program = program
        self._stderr = b""
        self._invalid_line = b""
        self._reader_task: asyncio.Task[None]
        self._end_reason = ""
        self._stopping = False

    def add_stderr(self, data: bytes) -> None:
        """What it prints as errors; the end of it is told when it dies."""
        self._stderr = (self._stderr + data)[-_TAIL_BYTES:]

    async def request(self, method: str, params: OutgoingParams, timeout: float | None = None) -> Any:
        """An answer, `RpcError`, or a `BackendError` that says how the agent ended or what it did not answer."""
        try:
            async with asyncio.timeout(timeout):
                return await self.peer.request(method, params)
        except TimeoutError:
            told = f"{self.launch.name} did not answer {method} within {timeout:g} s"
            raise BackendError(f"{told}{self.stderr_tail()}", code="timeout") from None
        except PeerClosed as gone:
            await asyncio.wait({self._reader_task}, timeout=2 * _EXIT_TIMEOUT)
            raise BackendError(self._end_reason or str(gone), code="agent_gone") from None

    async def stop(self) -> None:
        """Let it leave by itself if it does so at once, else end it and everything it started."""
        if self._program.is_running and not self._stopping:
            self._stopping = True
            with contextlib.suppress(OSError):
                self._program.stdin.write_eof()
            await self._program.wait(_STOP_TIMEOUT)
        await self._program.stop()
        self._reader_task.cancel()
        await asyncio.wait({self._reader_task})
        await self.peer.aclose()

    def send(self, line: bytes) -> None:
        writer = self._program.stdin
        if self._stopping or writer.is_closing():
            return
        if writer.transport.get_write_buffer_size() > MAX_UNSENT_BYTES:
            self._end_reason = f"{self.launch.name} no longer reads what it is sent"
            self.peer.end(self._end_reason)
        else:
            writer.write(line)

    def note_invalid_line(self, line: bytes) -> None:
        self._invalid_line = line[:_TAIL_BYTES]

    async def read(self) -> None:
        """Feed the peer until the agent's output ends, then find out why it did; no end of this leaves it waiting."""
        try:
            await self._feed()
        except JournalError as error:
            self._end_reason = self._end_reason or f"what {self.launch.name} said could not be kept: {error}"
        finally:
            self.peer.end(self._end_reason or "the conversation was broken off")

    async def _feed(self) -> None:
        with contextlib.suppress(OSError):
            while not self.peer.closed and (data := await self._program.stdout.read(_CHUNK_BYTES)):
                self.peer.feed(data)
        if self.peer.closed:
            self._end_reason = self._end_reason or f"{self.launch.name} broke the protocol: {self.peer.closed}"
            return
        code = await self._program.wait(_EXIT_TIMEOUT)
        self._end_reason = self._end_reason or self._describe_exit(code)
        self.peer.end(self._end_reason)

    def _describe_exit(self, code: int | None) -> str:
        name = self.launch.name
        if code is None and self._program.is_running:
            return f"{name} closed its output but goes on{self.stderr_tail()}"
        ended = f"{name} ended" if code is None else f"{name} ended with exit code {code}"
        return f"{ended}{self.stderr_tail()}"

    def stderr_tail(self) -> str:
        """The end of what it printed as errors, else a line that was no frame."""
        said = sanitise((self._stderr or self._invalid_line).decode("utf-8", "replace")).strip()
        return "; its last words: " + "\n".join(said.splitlines()[-_MAX_TAIL_LINES:]) if said else ""


async def start_agent(
    launch: Launch,
    handler: RequestHandler,
    *,
    mirror: Mirror | None = None,
    on_invalid_line: Callable[[bytes], None] | None = None,
) -> AgentProcess:
    """Start the program in a tree of its own; `UsageError` when there is no such program."""
    early = bytearray()
    holder: list[AgentProcess] = []

    def errors(data: bytes) -> None:
        if holder:
            holder[0].add_stderr(data)
        else:
            early.extend(data)

    try:
        program = await open_program(launch.argv, cwd=launch.cwd, env=launch.env, on_stderr=errors)
    except ToolError as failure:
        raise UsageError(f"{launch.name} cannot be started: {failure.fault.message}", hint=failure.fault.hint) from None
    process = AgentProcess(launch, program)
    process.add_stderr(bytes(early))
    holder.append(process)

    def junk(line: bytes) -> None:
        process.note_invalid_line(line)
        if on_invalid_line:
            on_invalid_line(line)

    process.peer = JsonRpcPeer(process.send, handler, mirror=mirror, on_invalid_line=junk)
    process._reader_task = asyncio.ensure_future(process.read())
    return process
