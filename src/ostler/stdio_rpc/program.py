"""Starts and stops a program and runs JSON-RPC over its streams: an ACP agent or an MCP server."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from ostler.core.errors import BackendError, JournalError, ToolError, UsageError
from ostler.processes.helper_programs import HelperProgram, open_program
from ostler.text.sanitise import sanitise
from ostler.wire.jsonrpc import ACP_CANCEL, JsonRpcPeer, Mirror, OutgoingParams, PeerClosed, RequestHandler

MAX_UNSENT_BYTES = 64 * 1024 * 1024
_CHUNK_BYTES = 256 * 1024
_TAIL_BYTES = 4096
_MAX_TAIL_LINES = 12
_EXIT_TIMEOUT = 1.0  # seconds to wait for the exit code after the agent closed its output
LEAVE_TIMEOUT = 4.0  # seconds to exit by itself after its input was closed; some agents take two


class OpenProgram(Protocol):
    """Starts a program, such as `open_program`. Raises `ToolError`."""

    def __call__(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], on_stderr: Callable[[bytes], None]
    ) -> Awaitable[HelperProgram]: ...


class Launch(msgspec.Struct, frozen=True):
    """How to start a program; `env` is its complete environment."""

    command: str
    args: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    name: str

    @property
    def argv(self) -> Sequence[str]:
        return (self.command, *self.args)


class RpcProgram:
    """A running program. When it ends, open requests fail with the reason."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.peer: JsonRpcPeer
        self._program: HelperProgram
        self._stderr = b""
        self._invalid_line = b""
        self._reader_task: asyncio.Task[None]
        self._end_reason = ""
        self._stopping = False

    def add_stderr(self, data: bytes) -> None:
        """Store the end of its standard error for error messages."""
        self._stderr = (self._stderr + data)[-_TAIL_BYTES:]

    async def request(
        self,
        method: str,
        params: OutgoingParams,
        timeout: float | None = None,
        *,
        max_response_bytes: int | None = None,
        shorten: bool = False,
    ) -> Any:
        """Send a request and return the result, limited as in `JsonRpcPeer.request`.

        Raises `RpcError` for an error response, and `BackendError` if the program ended or did not answer in time.
        """
        try:
            async with asyncio.timeout(timeout):
                return await self.peer.request(method, params, max_response_bytes=max_response_bytes, shorten=shorten)
        except TimeoutError:
            message = f"{self.launch.name} did not answer {method} within {timeout:g} s"
            raise BackendError(f"{message}{self.stderr_tail()}", code="timeout") from None
        except PeerClosed as closed:
            await asyncio.wait({self._reader_task}, timeout=2 * _EXIT_TIMEOUT)
            raise BackendError(self._end_reason or str(closed), code="agent_gone") from None

    async def stop(self, leave_timeout: float = LEAVE_TIMEOUT) -> None:
        """Stop the process and everything it started, after it had `leave_timeout` seconds to exit by itself.

        A second call, or a cancellation, ends this time.
        """
        try:
            if self._program.is_running and not self._stopping:
                self._stopping = True
                with contextlib.suppress(OSError):
                    self._program.stdin.write_eof()
                await self._program.wait(leave_timeout)
        finally:
            await self._program.stop()
            self._reader_task.cancel()
            await asyncio.wait({self._reader_task})
            await self.peer.aclose()

    def send(self, line: bytes) -> None:
        writer = self._program.stdin
        if self._stopping or writer.is_closing():
            return
        if writer.transport.get_write_buffer_size() > MAX_UNSENT_BYTES:
            self._end_reason = f"{self.launch.name} stopped reading its input"
            self.peer.end(self._end_reason)
        else:
            writer.write(line)

    def add_end_callback(self, callback: Callable[[str], None]) -> None:
        """Call `callback` with the reason when the program ends without being stopped."""

        def report(task: asyncio.Task[None]) -> None:
            if not self._stopping and not task.cancelled():
                callback(self._end_reason)

        self._reader_task.add_done_callback(report)

    def note_invalid_line(self, line: bytes) -> None:
        self._invalid_line = line[:_TAIL_BYTES]

    async def read(self) -> None:
        """Feed the peer until the program's output ends, then close the peer with the reason."""
        try:
            await self._feed()
        except JournalError as error:
            self._end_reason = self._end_reason or f"output of {self.launch.name} could not be saved: {error}"
        finally:
            self.peer.end(self._end_reason or "the connection was interrupted")

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
            return f"{name} closed its output but is still running{self.stderr_tail()}"
        message = f"{name} ended" if code is None else f"{name} ended with exit code {code}"
        return f"{message}{self.stderr_tail()}"

    def stderr_tail(self) -> str:
        """Return the end of its standard error, or else its last invalid line, as a message suffix."""
        output = sanitise((self._stderr or self._invalid_line).decode("utf-8", "replace")).strip()
        return "; last output: " + "\n".join(output.splitlines()[-_MAX_TAIL_LINES:]) if output else ""


async def start_program(
    launch: Launch,
    handler: RequestHandler,
    *,
    mirror: Mirror | None = None,
    on_invalid_line: Callable[[bytes], None] | None = None,
    cancel_method: str = ACP_CANCEL,
    accept_batches: bool = False,
    on_stderr: Callable[[bytes], None] = lambda data: None,
    open: OpenProgram = open_program,
) -> RpcProgram:
    """Start the program in its own process tree. Raises `UsageError` if the program cannot be started."""
    process = RpcProgram(launch)

    def handle_stderr(data: bytes) -> None:
        on_stderr(data)
        process.add_stderr(data)

    def handle_invalid_line(line: bytes) -> None:
        process.note_invalid_line(line)
        if on_invalid_line:
            on_invalid_line(line)

    try:
        process._program = await open(launch.argv, cwd=launch.cwd, env=launch.env, on_stderr=handle_stderr)
    except ToolError as failure:
        raise UsageError(f"cannot start {launch.name}: {failure.fault.message}", hint=failure.fault.hint) from None
    process.peer = JsonRpcPeer(
        process.send,
        handler,
        mirror=mirror,
        on_invalid_line=handle_invalid_line,
        cancel_method=cancel_method,
        accept_batches=accept_batches,
    )
    process._reader_task = asyncio.ensure_future(process.read())
    return process
