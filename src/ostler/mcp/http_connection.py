"""A connection to a remote server over streamable HTTP: one POST per message, answered with JSON or an event stream."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from ostler.core.errors import BackendError, UsageError
from ostler.http.client import HttpClient, HttpResponse
from ostler.http.dialer import Dialer
from ostler.http.proxy import proxy_for
from ostler.http.sse import EventTooLongError, SseSplitter
from ostler.http.url import match_url, origin_from_match, request_target
from ostler.mcp.connection import (
    Challenge,
    Connection,
    ConnectionHandler,
    LoginNeeded,
    OnProgress,
    ResettableTimeout,
    ServerGone,
    ServerTimeout,
    login_needed,
    read_progress,
)
from ostler.mcp.oauth_discovery import read_challenge
from ostler.mcp.parameter_headers import Path, header_value, parameter_headers, read_header_paths
from ostler.mcp.server_entry import ServerEntry
from ostler.text.sanitise import sanitise
from ostler.text.secret_masker import MASK_MARKER
from ostler.wire.jsonrpc import INTERNAL_ERROR, MCP_CANCEL, METHOD_NOT_FOUND, RpcError, parse_error
from ostler.wire.jsonrpc_lines import InvalidJsonLine, decode, encode
from ostler.wire.mcp import (
    CALL_TOOL,
    GET_PROMPT,
    INITIALIZE,
    INITIALIZED,
    LIST_TOOLS,
    META,
    PROGRESS,
    READ_RESOURCE,
    VERSION_META,
)

if TYPE_CHECKING:
    from ostler.mcp.oauth_access import RemoteAccess

CLOSE_SECONDS = 2.0
MAX_RESUMES = 1000  # of one answer; the time limit of the request applies to all of them
MIN_PAUSE = 0.1  # seconds between two attempts to read the rest of an answer
MAX_EVENT_ID = 1000
MAX_LISTEN_PAUSE = 60.0  # seconds between two attempts to open the stream of messages
_RESERVED_HEADERS = frozenset({"host", "content-length", "content-type", "accept", "transfer-encoding", "connection"})
MAX_BODY_BYTES = 16 * 1024 * 1024
MIN_SECRET = 8  # shorter texts are masked nowhere


async def iter_frames(
    response: HttpResponse, splitter: SseSplitter, secret: bytes = b""
) -> AsyncIterator[dict[str, Any]]:
    """Yield the frames of an event stream. Raises `BackendError`."""
    try:
        async for data in response.iter_data():
            for event in splitter.feed(data):
                if event.strip():
                    for frame in decode_frames(_masked(event, secret)):
                        yield frame
    except EventTooLongError:
        raise BackendError("the server sent an oversized event", code="protocol") from None


async def read_frames(response: HttpResponse, secret: bytes) -> list[dict[str, Any]]:
    """Return the messages of a JSON body. Raises `BackendError`."""
    parts: list[bytes] = []
    size = 0
    async for data in response.iter_data():
        parts.append(data)
        size += len(data)
        if size > MAX_BODY_BYTES:
            raise BackendError("the server's answer is too large", code="protocol")
    return decode_frames(_masked(b"".join(parts), secret))


def _masked(data: bytes, secret: bytes) -> bytes:
    """Return an answer without the token that was sent: a server may repeat it, and models must not see it."""
    return data.replace(secret, MASK_MARKER.encode()) if len(secret) >= MIN_SECRET else data


def decode_frames(data: bytes) -> list[dict[str, Any]]:
    """Return the messages in a body or an event; version 2025-03-26 allows several. Raises `BackendError`."""
    try:
        value = decode(data)
    except InvalidJsonLine:
        raise BackendError("the server's answer is not JSON", code="protocol") from None
    frames = value if isinstance(value, list) else [value]
    if not all(isinstance(frame, dict) for frame in frames):
        raise BackendError("the server's answer is not an object", code="protocol")
    return frames


class HttpConnection:
    """A remote server. Each request has its own connection, so that none is sent twice by itself."""

    def __init__(
        self, dialer: Dialer, target: str, entry: ServerEntry, handler: ConnectionHandler, access: "RemoteAccess | None"
    ) -> None:
        """`access` has the Authorization header; without it, that of the entry is used."""
        self.closed = ""
        self._dialer = dialer
        self._target = target
        headers = ((key.lower(), value) for key, value in entry.headers.items())
        self._headers = [(key, value) for key, value in headers if key not in _RESERVED_HEADERS]
        self._entry = entry
        self._access = access
        self._name = f"MCP server {entry.name}"
        self._handler = handler
        self._last_id = 0
        self._session_id = ""
        self._legacy_version = ""
        self._tasks: set[asyncio.Task[None]] = set()
        self._header_paths: dict[str, dict[str, Path]] = {}  # by tool

    async def request(
        self, method: str, params: Mapping[str, Any], *, timeout: float | None, on_progress: OnProgress | None = None
    ) -> Any:
        self._last_id += 1
        request_id = self._last_id
        meta = {**params.get(META, {}), "progressToken": request_id}
        frame = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": {**params, META: meta}}
        limit = ResettableTimeout(timeout)
        exchange = _Exchange(request_id, limit, on_progress)
        try:
            async with limit.scope:
                result = await self._post(frame, method, params, exchange)
        except asyncio.CancelledError:
            self._cancel(request_id)
            raise
        except TimeoutError:
            self._cancel(request_id)
            raise ServerTimeout(f"{self._name} did not answer {method} within {timeout:g} s") from None
        if method == INITIALIZE and isinstance(result, dict):
            self._legacy_version = str(result.get("protocolVersion", ""))[:40]
        if method == LIST_TOOLS and META in params:
            self._keep_header_paths(result)
        return result

    def _cancel(self, request_id: int) -> None:
        """Tell a legacy server that a request was cancelled; for a modern one the closed connection is enough."""
        if self._legacy_version and not self.closed:
            params = {"requestId": request_id, "reason": "cancelled by the client"}
            self._run(self._send_message({"jsonrpc": "2.0", "method": MCP_CANCEL, "params": params}))

    def _keep_header_paths(self, result: Any) -> None:
        """Keep which arguments are repeated in headers, and remove tools that declare this in an invalid way."""
        tools = result.get("tools") if isinstance(result, dict) else None
        if not isinstance(tools, list):
            return
        for tool in [*tools]:
            paths = read_header_paths(tool.get("inputSchema")) if isinstance(tool, dict) else {}
            if paths is None:
                tools.remove(tool)
            elif paths:
                self._header_paths[str(tool.get("name"))] = paths

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        await self._send_message({"jsonrpc": "2.0", "method": method, "params": dict(params)})
        if method == INITIALIZED:
            self._run(self._listen())

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name=self._name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send_message(self, frame: Mapping[str, Any]) -> None:
        """Send a message that has no answer; a failure shows in the next request."""
        await self._send("POST", encode(frame))

    async def _send(self, method: str, body: bytes = b"") -> None:
        with contextlib.suppress(BackendError, TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS), self._open(method, body, []) as response:
                await response.read_document(MAX_BODY_BYTES)

    async def aclose(self) -> None:
        """End the session of a legacy server."""
        self.closed = self.closed or "the connection was closed"
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self._session_id:
            await self._send("DELETE")

    # -- exchange ------------------------------------------------------------------------------------------------

    async def _post(
        self, frame: Mapping[str, Any], method: str, params: Mapping[str, Any], exchange: "_Exchange"
    ) -> Any:
        headers = _metadata_headers(method, params)
        if headers and method == CALL_TOOL:
            headers += parameter_headers(self._header_paths.get(params["name"], {}), params.get("arguments"))
        for is_last in (False, True):
            authorization = await self._access.header() if self._access else ""
            exchange.secret = authorization.removeprefix("Bearer ").encode()
            async with self._open("POST", encode(frame), headers, authorization) as response:
                try:
                    await response.read_head()
                    challenge = _read_challenge(response)
                    if challenge is None:
                        return await self._receive(response, method, exchange)
                except BackendError as error:
                    if error.fault.code in ("closed", "malformed"):
                        raise ServerGone(error.fault.message) from None
                    raise
            await self._renew_access(authorization, challenge, is_last=is_last)
        raise AssertionError("unreachable")

    async def _renew_access(self, refused: str, challenge: Challenge, *, is_last: bool) -> None:
        """Get another access after a refused request, which had no effect. Raises `LoginNeeded`."""
        try:
            if self._access is None or is_last:
                raise login_needed(self._entry, challenge)
            await self._access.renew(refused, challenge)
        except LoginNeeded as error:
            self.closed = error.fault.message
            raise

    async def _receive(self, response: HttpResponse, method: str, exchange: "_Exchange") -> Any:
        if response.status != 200:
            raise await self._status_error(response)
        if method == INITIALIZE:
            self._session_id = response.headers.get("mcp-session-id", "")[:500]
        if not _is_event_stream(response):
            frames = await read_frames(response, exchange.secret)
            if (answer := self._find_answer(frames, exchange)) is None:
                raise BackendError(f"{self._name} answered another request", code="protocol")
            return exchange.take_response(answer)
        frame = await self._read_events(response, exchange)
        for _ in range(MAX_RESUMES if self._legacy_version else 0):
            if frame is not None or not exchange.last_event_id:
                break
            frame = await self._read_rest(exchange)
        if frame is None:
            raise ServerGone(f"{self._name} ended its answer without a result")
        return exchange.take_response(frame)

    @asynccontextmanager
    async def _open(
        self, method: str, body: bytes, headers: list[tuple[str, str]], authorization: str | None = None
    ) -> AsyncIterator[HttpResponse]:
        """Send a request on a connection of its own. Raises `BackendError` if there is none."""
        if authorization is None:
            authorization = await self._access.header() if self._access else ""
        fixed = [("accept", "application/json, text/event-stream")]
        if body:
            fixed.append(("content-type", "application/json"))
        if self._session_id:
            fixed.append(("mcp-session-id", self._session_id))
        if self._legacy_version:
            fixed.append(("mcp-protocol-version", self._legacy_version))
        if authorization:
            fixed.append(("authorization", authorization))
        client = HttpClient(self._dialer)
        response = await client.send(method, self._target, [*fixed, *headers, *self._headers], body)
        try:
            yield response
        finally:
            response.close()
            await client.aclose()

    async def _read_events(self, response: HttpResponse, exchange: "_Exchange") -> dict[str, Any] | None:
        """Return the response to a request, or None if the stream ends before it."""
        splitter = SseSplitter(MAX_BODY_BYTES)
        try:
            async for frame in iter_frames(response, splitter, exchange.secret):
                if answer := self._find_answer([frame], exchange):
                    return answer
        except BackendError as error:
            if error.fault.code not in ("closed", "malformed"):
                raise
        finally:
            exchange.note_position(splitter)
        return None

    def _find_answer(self, frames: Iterable[dict[str, Any]], exchange: "_Exchange") -> dict[str, Any] | None:
        """Return the response to a request; other messages before it are handled. An error may have no id."""
        for frame in frames:
            if "method" in frame:
                self._handle_message(frame, exchange)
            elif frame.get("id") == exchange.request_id or (frame.get("id") is None and "error" in frame):
                return frame
        return None

    async def _read_rest(self, exchange: "_Exchange") -> dict[str, Any] | None:
        """Continue to read an answer that a legacy server interrupted; the request is not sent again."""
        await asyncio.sleep(exchange.pause)
        async with self._open("GET", b"", [("last-event-id", exchange.last_event_id)]) as response:
            await response.read_head()
            if response.status != 200 or not _is_event_stream(response):
                raise ServerGone(f"{self._name} ended its answer without a result")
            return await self._read_events(response, exchange)

    async def _listen(self) -> None:
        """Read the messages that a legacy server sends outside of an answer; many servers have no such stream."""
        pause = 1.0
        while True:
            with contextlib.suppress(BackendError):
                async with self._open("GET", b"", []) as response:
                    await response.read_head()
                    if response.status != 200 or not _is_event_stream(response):
                        return
                    async for frame in iter_frames(response, SseSplitter(MAX_BODY_BYTES)):
                        if "method" in frame:
                            self._handle_message(frame, None)
            await asyncio.sleep(pause)
            pause = min(2 * pause, MAX_LISTEN_PAUSE)

    def _handle_message(self, frame: dict[str, Any], exchange: "_Exchange | None") -> None:
        method, params = str(frame["method"]), frame.get("params")
        params = params if isinstance(params, dict) else {}
        if "id" in frame:
            self._run(self._answer(frame["id"], method, params))
        elif method == PROGRESS:
            if exchange:
                exchange.report(params)
        else:
            self._handler.on_notification(method, params)

    async def _answer(self, request_id: Any, method: str, params: Mapping[str, Any]) -> None:
        """Answer a request that a legacy server sent on an event stream."""
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": request_id}
        try:
            if method == "ping":
                answer["result"] = {}
            elif self._handler.on_request is None:
                raise RpcError(METHOD_NOT_FOUND, f"{method} is not supported")
            else:
                answer["result"] = await self._handler.on_request(method, params)
        except RpcError as error:
            answer["error"] = {"code": error.code, "message": error.message}
        await self._send_message(answer)

    async def _status_error(self, response: HttpResponse) -> Exception:
        """Return the error for a status other than 200; a JSON-RPC error in the body is returned as such."""
        status = response.status
        body = await response.read_rest(MAX_BODY_BYTES, CLOSE_SECONDS)
        if status == 403:
            return BackendError(f"{self._name} refused the request (HTTP 403)", code="unauthorized")
        if status == 404 and self._session_id:
            self.closed = "its session has expired"
            return ServerGone(f"{self._name}: {self.closed}")
        frames: list[dict[str, Any]] = []
        with contextlib.suppress(BackendError):
            frames = decode_frames(body)
        frame = frames[0] if frames else {}
        if isinstance(frame.get("error"), dict):
            return parse_error(frame["error"])
        if 400 <= status < 500:
            return RpcError(INTERNAL_ERROR, f"HTTP {status} {sanitise(body[:200].decode('utf-8', 'replace')).strip()}")
        return BackendError(f"{self._name} answered with HTTP {status}", code="http")


class _Exchange:
    """One request: its id, time limit and progress."""

    def __init__(self, request_id: int, limit: ResettableTimeout, on_progress: OnProgress | None) -> None:
        self.request_id = request_id
        self.secret = b""
        self.last_event_id = ""
        self.pause = 1.0
        self._limit = limit
        self._on_progress = on_progress

    def note_position(self, splitter: SseSplitter) -> None:
        """Remember the last event of the answer, and how long to wait before the rest is read."""
        if splitter.last_id:
            text = splitter.last_id.decode("utf-8", "replace")
            self.last_event_id = text if text.isascii() and text.isprintable() and len(text) <= MAX_EVENT_ID else ""
        if splitter.retry_ms is not None:
            self.pause = min(max(splitter.retry_ms / 1000, MIN_PAUSE), MAX_LISTEN_PAUSE)

    def report(self, params: Mapping[str, Any]) -> None:
        if params.get("progressToken") == self.request_id:
            self._limit.restart()
            if self._on_progress:
                self._on_progress(read_progress(params))

    def take_response(self, frame: Mapping[str, Any]) -> Any:
        """Return the result. Raises `RpcError` for an error response."""
        error = frame.get("error")
        if error is None:
            return frame.get("result")
        raise parse_error(error)


def _metadata_headers(method: str, params: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the headers that repeat parts of a modern request; none for a legacy one."""
    version = params.get(META, {}).get(VERSION_META)
    if version is None:
        return []
    headers = [("mcp-protocol-version", version), ("mcp-method", method)]
    named = params.get({CALL_TOOL: "name", GET_PROMPT: "name", READ_RESOURCE: "uri"}.get(method, ""))
    return [*headers, ("mcp-name", header_value(named))] if isinstance(named, str) else headers


def _read_challenge(response: HttpResponse) -> Challenge | None:
    """Return what the server asks for if it refused the request because of a missing or insufficient login."""
    challenge = read_challenge(response.headers.get("www-authenticate", ""))
    insufficient = response.status == 403 and challenge.error == "insufficient_scope"
    return challenge if response.status == 401 or insufficient else None


def _is_event_stream(response: HttpResponse) -> bool:
    return response.headers.get("content-type", "").startswith("text/event-stream")


async def connect_http(
    entry: ServerEntry, handler: ConnectionHandler, environ: Mapping[str, str], access: "RemoteAccess | None" = None
) -> Connection:
    """Return a connection to a remote server; it is first used by the first request. Raises `UsageError`."""
    parts = match_url(entry.url)
    if parts is None or parts["user"]:
        raise UsageError(f"the url of the MCP server {entry.name} is not a valid URL")
    origin = origin_from_match(parts)
    dialer = Dialer(origin, proxy=proxy_for(origin, environ), setting=f"the url of the MCP server {entry.name}")
    return HttpConnection(dialer, request_target(parts), entry, handler, access)
