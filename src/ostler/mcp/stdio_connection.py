"""A connection to a local server: a child process that speaks JSON-RPC over its pipes."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any

from ostler.core.errors import BackendError
from ostler.mcp.connection import (
    Connection,
    ConnectionHandler,
    OnProgress,
    ResettableTimeout,
    ServerGone,
    ServerTimeout,
    read_progress,
)
from ostler.mcp.server_entry import ServerEntry
from ostler.processes.helper_programs import open_program
from ostler.stdio_rpc.program import Launch, OpenProgram, RpcProgram, start_program
from ostler.wire.jsonrpc import MCP_CANCEL, METHOD_NOT_FOUND, Params, RpcError
from ostler.wire.mcp import CALL_TOOL, META, PROGRESS

MAX_RESPONSE_BYTES = 16 * 1024 * 1024
LEAVE_TIMEOUT = 1.0  # seconds to exit after its input was closed
MAX_INVALID_LINES = 1000  # a program that prints more is not an MCP server


class StdioConnection:
    """A running server process. Its process tree ends with `aclose`, or when Ostler ends.

    Progress is passed on to the request that it belongs to, other messages of the server to the client.
    """

    def __init__(self, handler: ConnectionHandler) -> None:
        self._client = handler
        self._program: RpcProgram
        self._cleanup = AsyncExitStack()  # closes the sandbox, if there is one
        self._progress: dict[int, tuple[ResettableTimeout, OnProgress | None]] = {}
        self._last_token = 0
        self._invalid_lines = 0

    async def start(self, entry: ServerEntry, on_stderr: Callable[[bytes], None]) -> None:
        """Start the process, in a sandbox if the entry asks for one. Raises `UsageError` if it cannot be started."""
        program, *args = entry.command
        async with AsyncExitStack() as cleanup:
            open: OpenProgram = open_program
            if entry.sandbox:
                from ostler.mcp.server_sandbox import ServerSandbox

                sandbox = ServerSandbox(entry)
                cleanup.push_async_callback(sandbox.aclose)
                open = sandbox.open_program
            self._program = await start_program(
                Launch(program, tuple(args), entry.env, entry.cwd, f"MCP server {entry.name}"),
                self,
                cancel_method=MCP_CANCEL,
                accept_batches=True,
                on_stderr=on_stderr,
                on_invalid_line=self._count_invalid_line,
                open=open,
            )
            self._program.add_end_callback(lambda reason: self._client.on_end(reason))
            self._cleanup = cleanup.pop_all()

    def _count_invalid_line(self, line: bytes) -> None:
        self._invalid_lines += 1
        if self._invalid_lines == MAX_INVALID_LINES:
            self._program.peer.end("it prints text that is not JSON-RPC")

    @property
    def closed(self) -> str:
        return str(self._program.peer.closed or "")

    async def request(
        self, method: str, params: Mapping[str, Any], *, timeout: float | None, on_progress: OnProgress | None = None
    ) -> Any:
        limit = ResettableTimeout(timeout)
        self._last_token += 1
        token = self._last_token
        self._progress[token] = (limit, on_progress)
        meta = {**params.get(META, {}), "progressToken": token}
        try:
            async with limit.scope:
                return await self._program.request(
                    method,
                    {**params, META: meta},
                    max_response_bytes=MAX_RESPONSE_BYTES,
                    shorten=method == CALL_TOOL,
                )
        except TimeoutError:
            text = f"{self._program.launch.name} did not answer {method} within {timeout:g} s"
            raise ServerTimeout(f"{text}{self._program.stderr_tail()}") from None
        except BackendError as error:
            raise ServerGone(error.fault.message) from None
        finally:
            del self._progress[token]

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        self._program.peer.notify(method, params)

    async def aclose(self) -> None:
        async with self._cleanup:
            await self._program.stop(LEAVE_TIMEOUT)

    # -- messages from the server ----------------------------------------------------------------------------------

    def handle_request(self, method: str, params: Params) -> Awaitable[Any]:
        if method == "ping":
            return _empty_result()
        if self._client.on_request is None:
            raise RpcError(METHOD_NOT_FOUND, f"{method} is not supported")
        return self._client.on_request(method, params)

    def handle_notification(self, method: str, params: Params) -> None:
        if method != PROGRESS:
            self._client.on_notification(method, params)
            return
        token = params.get("progressToken")
        limit, on_progress = self._progress.get(token, (None, None)) if isinstance(token, int) else (None, None)
        if limit:
            limit.restart()
        if on_progress:
            on_progress(read_progress(params))


async def _empty_result() -> dict[str, Any]:
    return {}


async def connect_stdio(
    entry: ServerEntry, handler: ConnectionHandler, on_stderr: Callable[[bytes], None]
) -> Connection:
    """Start a local server. Raises `UsageError` if it cannot be started."""
    connection = StdioConnection(handler)
    await connection.start(entry, on_stderr)
    return connection
