"""One end of a JSON-RPC conversation in lines: requests and notifications both ways, over any stream of bytes.

Both sides of ACP are made of this. It knows no pipe: it is fed bytes and calls `send` with lines.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, Protocol

import msgspec

from ostler.wire.jsonrpc_lines import MAX_LINE_BYTES, InvalidJsonLine, LineSplitter, LineTooLong, decode, encode

FrameDirection = Literal["out", "in"]
Mirror = Callable[[FrameDirection, bytes], None]
Params = Mapping[str, Any]
OutgoingParams = Mapping[str, Any] | msgspec.Struct

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
CANCELLED = -32800
MAX_OPEN_REQUESTS = 1000


class RpcError(Exception):
    """An answer that is an error, from the other side or to it; `data` may hold what it is really about."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    @property
    def details(self) -> str:
        """The message, and the real one where the other side put it beside."""
        more = self.data.get("details") if isinstance(self.data, dict) else self.data
        return f"{self.message}: {more}" if isinstance(more, str) and more not in self.message else self.message


class PeerClosed(Exception):
    """The other side is gone, so no answer will come."""


class RequestHandler(Protocol):
    """What the other side may ask for. Both are called in the order of the frames and must not wait.

    What `requested` returns is awaited in a task of its own; an `RpcError` from it is the answer.
    """

    def handle_request(self, method: str, params: Params) -> Awaitable[Any]: ...

    def handle_notification(self, method: str, params: Params) -> None: ...


class JsonRpcPeer:
    """One end. `mirror` sees every line as it is on the wire, `junk` the lines that are no frames.

    Whoever serves (`serves`) answers junk with an error, as JSON-RPC wants; a client just goes on.
    """

    def __init__(
        self,
        send: Callable[[bytes], None],
        handler: RequestHandler,
        *,
        mirror: Mirror | None = None,
        on_invalid_line: Callable[[bytes], None] | None = None,
        is_server: bool = False,
        max_line_bytes: int = MAX_LINE_BYTES,
        max_open_requests: int = MAX_OPEN_REQUESTS,
    ) -> None:
        self._send = send
        self._handler = handler
        self._mirror = mirror
        self._on_invalid_line = on_invalid_line
        self._is_server = is_server
        self._lines = LineSplitter(max_line_bytes)
        self._max_open_requests = max_open_requests
        self._last_id = 0
        self._pending: dict[Any, asyncio.Future[Any]] = {}
        self._open_requests: dict[Any, asyncio.Task[None]] = {}
        self.closed: PeerClosed | None = None

    # -- what this side says ---------------------------------------------------------------------------------------

    async def request(self, method: str, params: OutgoingParams) -> Any:
        """The other side's answer as it is. `RpcError` if that is an error, `PeerGone` if none can come.

        Cancelling tells the other side that the answer is not wanted any more.
        """
        if self.closed:
            raise self.closed
        self._last_id += 1
        number = self._last_id
        answer = self._pending[number] = asyncio.get_running_loop().create_future()
        try:
            self._write({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
            return await answer
        except asyncio.CancelledError:
            if not answer.done() or answer.cancelled():
                self.notify("$/cancel_request", {"requestId": number})
            raise
        finally:
            self._pending.pop(number, None)

    def notify(self, method: str, params: OutgoingParams) -> None:
        """Say something that has no answer; to nobody, when the other side is gone."""
        self._write({"jsonrpc": "2.0", "method": method, "params": params})

    def _send_result(self, request_id: Any, result: Any) -> None:
        self._write({"jsonrpc": "2.0", "id": request_id, "result": result})

    def _send_error(self, request_id: Any, error: RpcError) -> None:
        told = {"code": error.code, "message": error.message}
        if error.data is not None:
            told["data"] = error.data
        self._write({"jsonrpc": "2.0", "id": request_id, "error": told})

    def _write(self, frame: Params) -> None:
        if self.closed:
            return
        line = encode(frame)
        if self._mirror:
            self._mirror("out", line)
        self._send(line + b"\n")

    # -- what the other side says ----------------------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        """Bytes as they arrive, cut anywhere."""
        if self.closed:
            return
        try:
            for line in self._lines.feed(data):
                self._handle_line(line)
        except LineTooLong as error:
            self.end(f"the other side sent {error}")

    def end(self, reason: str) -> None:
        """Nothing more will come: what was asked for fails, and what is being answered stops."""
        if self.closed:
            return
        try:
            if last := self._lines.take_rest():
                self._handle_line(last)
        finally:
            self._close(reason)

    def _close(self, reason: str) -> None:
        self.closed = PeerClosed(reason)
        for answer in self._pending.values():
            if not answer.done():
                answer.set_exception(self.closed)
        for task in self._open_requests.values():
            _cancel_soon(task)

    async def aclose(self) -> None:
        """End, and see out what was being answered."""
        self.end("the connection was closed")
        if self._open_requests:
            await asyncio.wait(set(self._open_requests.values()))

    def _handle_line(self, line: bytes) -> None:
        if self._mirror:
            self._mirror("in", line)
        try:
            frame = decode(line)
        except InvalidJsonLine:
            return self._reject_line(line, PARSE_ERROR, "this line is no JSON")
        if not isinstance(frame, dict):
            return self._reject_line(line, INVALID_REQUEST, "a frame is a JSON object")
        method = frame.get("method")
        if isinstance(method, str):
            params = frame.get("params")
            params = params if isinstance(params, dict) else {}
            if "id" in frame:
                return self._handle_request(frame["id"], method, params)
            return self._handle_notification(method, params)
        if isinstance(frame.get("id"), (int, str)) and "method" not in frame:
            return self._handle_response(frame)
        return self._reject_line(line, INVALID_REQUEST, "a frame has a method, or the id of a request")

    def _reject_line(self, line: bytes, code: int, message: str) -> None:
        if self._on_invalid_line:
            self._on_invalid_line(line)
        if self._is_server:
            self._send_error(None, RpcError(code, message))

    def _handle_response(self, frame: dict[str, Any]) -> None:
        answer = self._pending.get(frame["id"])
        if answer is None or answer.done():
            return
        error = frame.get("error")
        if error is None:
            answer.set_result(frame.get("result"))
        else:
            answer.set_exception(_parse_error(error))

    def _handle_notification(self, method: str, params: Params) -> None:
        if method != "$/cancel_request":
            self._handler.handle_notification(method, params)
            return
        request_id = params.get("requestId")
        if isinstance(request_id, (int, str)) and (task := self._open_requests.get(request_id)):
            _cancel_soon(task)

    def _handle_request(self, request_id: Any, method: str, params: Params) -> None:
        if request_id is not None and not isinstance(request_id, (int, str, float)):
            return self._send_error(None, RpcError(INVALID_REQUEST, "the id of a request is a number or a string"))
        if len(self._open_requests) >= self._max_open_requests:
            return self._send_error(
                request_id, RpcError(INTERNAL_ERROR, f"{self._max_open_requests} requests are open already")
            )
        if request_id in self._open_requests:
            return self._send_error(request_id, RpcError(INVALID_REQUEST, "this id is in use"))
        try:
            work = self._handler.handle_request(method, params)
        except RpcError as error:
            return self._send_error(request_id, error)
        task = asyncio.ensure_future(self._respond(request_id, work))
        self._open_requests[request_id] = task
        task.add_done_callback(lambda _: self._open_requests.pop(request_id, None))
        return None

    async def _respond(self, request_id: Any, work: Awaitable[Any]) -> None:
        try:
            self._send_result(request_id, await work)
        except RpcError as error:
            self._send_error(request_id, error)
        except asyncio.CancelledError:
            self._send_error(request_id, RpcError(CANCELLED, "cancelled"))
        except Exception as bug:
            self._send_error(request_id, RpcError(INTERNAL_ERROR, f"{type(bug).__name__}: {bug}"))
            raise


def _cancel_soon(task: asyncio.Task[None]) -> None:
    """Not before it has begun: a task that never began could not answer."""
    asyncio.get_running_loop().call_soon(task.cancel)


def _parse_error(error: Any) -> RpcError:
    """An error as other people write it: a proper one, a bare text, or anything."""
    if not isinstance(error, dict):
        return RpcError(INTERNAL_ERROR, error if isinstance(error, str) else str(error))
    code, message = error.get("code"), error.get("message")
    return RpcError(
        code if isinstance(code, int) else INTERNAL_ERROR,
        message if isinstance(message, str) and message else "an error without a message",
        error.get("data"),
    )
