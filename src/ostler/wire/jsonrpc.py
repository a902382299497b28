"""One peer of a line-based JSON-RPC connection; transport-independent.

ACP and MCP use it. It is fed with bytes and calls `send` with lines.
"""

import asyncio
import contextlib
import re
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
ACP_CANCEL = "$/cancel_request"  # the notification that cancels a request; its parameter is `requestId`
MCP_CANCEL = "notifications/cancelled"
_RESPONSE_ID = re.compile(rb'"id"\s*:\s*([0-9]{1,15})\b')


class RpcError(Exception):
    """An error response, received or to be sent; `data` may contain details."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    @property
    def details(self) -> str:
        """The message, with the text from `data` appended if there is one."""
        detail = self.data.get("details") if isinstance(self.data, dict) else self.data
        return f"{self.message}: {detail}" if isinstance(detail, str) and detail not in self.message else self.message


class PeerClosed(Exception):
    """The connection is closed, so no response will arrive."""


class RequestHandler(Protocol):
    """Handles incoming requests and notifications. The methods are called in frame order and must not block.

    The awaitable that `handle_request` returns runs in its own task; an `RpcError` it raises is sent as the response.
    """

    def handle_request(self, method: str, params: Params) -> Awaitable[Any]: ...

    def handle_notification(self, method: str, params: Params) -> None: ...


class JsonRpcPeer:
    """One peer. `mirror` receives every line as sent or received, `on_invalid_line` the lines that are not frames.

    With `is_server`, invalid lines are answered with an error, as JSON-RPC requires; otherwise they are ignored.
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
        cancel_method: str = ACP_CANCEL,
        accept_batches: bool = False,
    ) -> None:
        """With `accept_batches`, a line may be an array of frames; each of its requests is answered on its own."""
        self._send = send
        self._handler = handler
        self._mirror = mirror
        self._on_invalid_line = on_invalid_line
        self._is_server = is_server
        self._lines = LineSplitter(max_line_bytes, self._line_limit)
        self._max_open_requests = max_open_requests
        self._cancel_method = cancel_method
        self._accept_batches = accept_batches
        self._last_id = 0
        self._pending: dict[Any, asyncio.Future[Any]] = {}
        self._response_limits: dict[int, tuple[int, bool]] = {}
        self._limited_request: int | None = None  # whose response the current line is
        self._open_requests: dict[Any, asyncio.Task[None]] = {}
        self.closed: PeerClosed | None = None

    # -- outgoing --------------------------------------------------------------------------------------------------

    async def request(
        self, method: str, params: OutgoingParams, *, max_response_bytes: int | None = None, shorten: bool = False
    ) -> Any:
        """Send a request and return the result. Raises `RpcError` for an error response, `PeerClosed` if none can come.

        A response with more than `max_response_bytes` is an error, or with `shorten` the middle of its longest string
        is left out. Cancelling the call sends the cancel notification.
        """
        if self.closed:
            raise self.closed
        self._last_id += 1
        request_id = self._last_id
        answer = self._pending[request_id] = asyncio.get_running_loop().create_future()
        if max_response_bytes is not None:
            self._response_limits[request_id] = (max_response_bytes, shorten)
        try:
            self._write({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})
            return await answer
        except asyncio.CancelledError:
            if not answer.done() or answer.cancelled():
                self.notify(self._cancel_method, {"requestId": request_id})
            raise
        finally:
            self._pending.pop(request_id, None)
            self._response_limits.pop(request_id, None)

    def notify(self, method: str, params: OutgoingParams) -> None:
        """Send a notification. Does nothing if the connection is closed."""
        self._write({"jsonrpc": "2.0", "method": method, "params": params})

    def _send_result(self, request_id: Any, result: Any) -> None:
        self._write({"jsonrpc": "2.0", "id": request_id, "result": result})

    def _send_error(self, request_id: Any, error: RpcError) -> None:
        body = {"code": error.code, "message": error.message}
        if error.data is not None:
            body["data"] = error.data
        self._write({"jsonrpc": "2.0", "id": request_id, "error": body})

    def _write(self, frame: Params) -> None:
        if self.closed:
            return
        line = encode(frame)
        if self._mirror:
            self._mirror("out", line)
        self._send(line + b"\n")

    # -- incoming --------------------------------------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        """Process received bytes, in chunks of any size."""
        if self.closed:
            return
        try:
            for line in self._lines.feed(data):
                self._handle_line(line)
        except LineTooLong as error:
            self.end(f"the other side sent {error}")

    def end(self, reason: str) -> None:
        """Close the connection: pending requests fail, and requests being handled are cancelled."""
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
        """Close the connection and wait for the requests being handled."""
        self.end("the connection was closed")
        if self._open_requests:
            await asyncio.wait(set(self._open_requests.values()))

    def _line_limit(self, head: bytes) -> int | None:
        """Return the size limit of a line that begins with `head`, if it is the response to a limited request."""
        found = _RESPONSE_ID.search(head)
        self._limited_request = int(found[1]) if found else None
        limit = self._response_limits.get(self._limited_request or 0)
        return limit[0] if limit else None

    def _handle_line(self, line: bytes) -> None:
        if self._mirror:
            self._mirror("in", line)
        try:
            frame = self._decode_line(line)
        except InvalidJsonLine:
            return self._reject_line(line, PARSE_ERROR, "the line is not valid JSON")
        if self._accept_batches and isinstance(frame, list) and frame:
            for part in frame:
                self._handle_frame(part, line)
            return None
        return self._handle_frame(frame, line)

    def _handle_frame(self, frame: Any, line: bytes) -> None:
        if not isinstance(frame, dict):
            return self._reject_line(line, INVALID_REQUEST, "a frame must be a JSON object")
        method = frame.get("method")
        if isinstance(method, str):
            params = frame.get("params")
            params = params if isinstance(params, dict) else {}
            if "id" in frame:
                return self._handle_request(frame["id"], method, params)
            return self._handle_notification(method, params)
        if isinstance(frame.get("id"), (int, str)) and "method" not in frame:
            return self._handle_response(frame)
        return self._reject_line(line, INVALID_REQUEST, "a frame must have a method or a request id")

    def _decode_line(self, line: bytes) -> Any:
        """Return the frame; for a response that is too large, one with an error."""
        if not self._lines.was_shortened:
            return decode(line)
        request_id = self._limited_request or 0
        if self._response_limits.get(request_id, (0, False))[1]:
            with contextlib.suppress(InvalidJsonLine):  # the middle was not inside of one string
                return decode(line)
        return {"id": request_id, "error": {"code": INTERNAL_ERROR, "message": "the response is too large"}}

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
            answer.set_exception(parse_error(error))

    def _handle_notification(self, method: str, params: Params) -> None:
        if method != self._cancel_method:
            self._handler.handle_notification(method, params)
            return
        request_id = params.get("requestId")
        if isinstance(request_id, (int, str)) and (task := self._open_requests.get(request_id)):
            _cancel_soon(task)

    def _handle_request(self, request_id: Any, method: str, params: Params) -> None:
        if request_id is not None and not isinstance(request_id, (int, str, float)):
            return self._send_error(None, RpcError(INVALID_REQUEST, "a request id must be a number or a string"))
        if len(self._open_requests) >= self._max_open_requests:
            return self._send_error(
                request_id, RpcError(INTERNAL_ERROR, f"{self._max_open_requests} requests are already open")
            )
        if request_id in self._open_requests:
            return self._send_error(request_id, RpcError(INVALID_REQUEST, "this request id is already in use"))
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
            if self._cancel_method != MCP_CANCEL:  # MCP wants no answer to a cancelled request
                self._send_error(request_id, RpcError(CANCELLED, "cancelled"))
        except Exception as bug:
            self._send_error(request_id, RpcError(INTERNAL_ERROR, f"{type(bug).__name__}: {bug}"))
            raise


def _cancel_soon(task: asyncio.Task[None]) -> None:
    """Cancel a task after it had a chance to start; a task that never ran could not respond."""
    asyncio.get_running_loop().call_soon(task.cancel)


def parse_error(error: Any) -> RpcError:
    """Build an `RpcError` from an error response, which may also be a plain text or malformed."""
    if not isinstance(error, dict):
        return RpcError(INTERNAL_ERROR, error if isinstance(error, str) else str(error))
    code, message = error.get("code"), error.get("message")
    return RpcError(
        code if isinstance(code, int) else INTERNAL_ERROR,
        message if isinstance(message, str) and message else "error without a message",
        error.get("data"),
    )
