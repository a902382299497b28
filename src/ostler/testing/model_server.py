"""A loopback model server that plays scripted replies."""

import asyncio
import json
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from ostler.http.server_closing import close_server
from ostler.testing.model_replies import (
    Api,
    ScriptedReply,
    ScriptedToolCall,
    calls,
    drop,
    html,
    keep_alive_only,
    raw,
    sse_event,
    sse_reply,
    stall,
    status,
    text,
)

__all__ = [
    "RecordedRequest",
    "ScriptMismatchError",
    "ScriptedModelServer",
    "ScriptedReply",
    "ScriptedToolCall",
    "calls",
    "drop",
    "html",
    "keep_alive_only",
    "raw",
    "sse_event",
    "sse_reply",
    "stall",
    "status",
    "text",
]

_HTTP_REASON = "Scripted"


class ScriptMismatchError(AssertionError):
    """The requests did not match the script."""


@dataclass(frozen=True)
class RecordedRequest:
    """A received request. `connection` is the number of its connection."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int

    @property
    def json(self) -> Any:
        """The body parsed as JSON."""
        return json.loads(self.body)


class ScriptedModelServer:
    """Plays one reply for each model request, in the wire format of OpenAI or Anthropic.

    `pages` are JSON documents for other paths; `models` is the model list. Leaving the context raises
    `ScriptMismatchError` if replies are left, or if there were more requests than replies.
    """

    def __init__(
        self,
        *replies: ScriptedReply,
        models: Sequence[str | dict[str, Any]] = ("scripted",),
        pages: dict[str, Any] | None = None,
        tls: ssl.SSLContext | None = None,
        comment_every: float = 0.01,
    ) -> None:
        self.requests: list[RecordedRequest] = []
        self.disconnects = 0
        self.connections = 0
        self._script = list(replies)
        self._unexpected: list[str] = []
        self._models = [{"id": model, "object": "model"} if isinstance(model, str) else model for model in models]
        self._pages = pages or {}
        self._tls = tls
        self._comment_every = comment_every
        self._changed = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.port = 0

    @property
    def base_url(self) -> str:
        """Base URL of both APIs."""
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}/v1"

    def add_replies(self, *replies: ScriptedReply) -> None:
        """Add replies to the script."""
        self._script.extend(replies)

    async def wait_for_requests(self, count: int) -> None:
        """Wait until `count` requests have arrived."""
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.requests) >= count)

    async def wait_for_disconnects(self, count: int = 1) -> None:
        """Wait until `count` clients have disconnected during a reply."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.disconnects >= count)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        await close_server(self._server, self._tasks)
        if error is None:
            self._check_script()

    def _check_script(self) -> None:
        if self._unexpected:
            raise ScriptMismatchError(f"requests without a scripted reply: {', '.join(self._unexpected)}")
        if self._script:
            raise ScriptMismatchError(
                f"{len(self._script)} scripted replies were not requested; the next is {self._script[0]}"
            )

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        await serve_requests(lambda: self._exchange(reader, writer, number), writer, self._tasks)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> bool:
        """Read a request and answer it. Return whether the connection stays open."""
        recorded = await read_request(reader, number)
        api = _detect_api(recorded)
        if api is None:
            return await self._send_page(recorded, writer)
        reply = self._script.pop(0) if self._script else None
        if reply is None:
            self._unexpected.append(f"{recorded.method} {recorded.path}")
            reply = status(500, {"error": {"message": "the script has no more replies"}})
        await self._record(recorded)
        request = recorded.json if recorded.body else {}
        parts = reply.body_parts(api, request, len(self.requests))
        return await self._deliver(reply, parts, reader, writer)

    async def _record(self, recorded: RecordedRequest) -> None:
        async with self._changed:
            self.requests.append(recorded)
            self._changed.notify_all()

    async def _send_page(self, recorded: RecordedRequest, writer: asyncio.StreamWriter) -> bool:
        path = recorded.path.partition("?")[0]
        page = {"object": "list", "data": self._models} if path.endswith("/models") else None
        page = self._pages.get(path, page)
        body = json.dumps(page if page is not None else {"error": "no such page"}).encode()
        head = f"HTTP/1.1 {404 if page is None else 200} {_HTTP_REASON}\r\ncontent-length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        return True

    async def _deliver(
        self, reply: ScriptedReply, parts: list[bytes], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        if reply.silent:
            if reply.cut_at is None:
                await self._wait_for_disconnect(reader, writer, comments=False)
            return _close_connection(writer, reset=reply.reset)
        writer.write(_encode_head(reply, sum(map(len, parts))))
        sent = 0
        for index, part in enumerate(parts):
            if index == reply.stall_at:
                break
            if reply.hold_at and index == reply.hold_at[0]:
                await reply.hold_at[1]()
            if reply.before_part:
                await reply.before_part(index)
            if reply.cut_at is not None and sent + len(part) >= reply.cut_at:
                await _write_part(reply, writer, part[: reply.cut_at - sent])
                return _close_connection(writer, reset=reply.reset)
            await _write_part(reply, writer, part)
            sent += len(part)
        if reply.stall_at is not None:
            await self._wait_for_disconnect(reader, writer, comments=reply.comments)
            return False
        if reply.framing == "chunked":
            writer.write(b"0\r\n\r\n")
        await writer.drain()
        return reply.framing != "close" and not reply.closes_after

    async def _wait_for_disconnect(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, comments: bool
    ) -> None:
        """Wait until the client disconnects, sending comments meanwhile if requested."""
        disconnect = asyncio.ensure_future(reader.read(1))
        try:
            while not disconnect.done():
                if comments:
                    writer.write(_encode_chunk(b": keep-alive\n\n"))
                await asyncio.wait({disconnect}, timeout=self._comment_every if comments else None)
        finally:
            disconnect.cancel()
        async with self._changed:
            self.disconnects += 1
            self._changed.notify_all()


def _detect_api(recorded: RecordedRequest) -> Api | None:
    path = recorded.path.partition("?")[0]
    if recorded.method != "POST":
        return None
    return "openai" if path.endswith("/chat/completions") else "anthropic" if path.endswith("/messages") else None


async def serve_requests(
    exchange: Callable[[], Awaitable[bool]], writer: asyncio.StreamWriter, tasks: set[asyncio.Task[None]]
) -> None:
    """Serve a connection until `exchange` returns False or the client disconnects; `tasks` has the current task."""
    task = asyncio.current_task()
    assert task is not None
    tasks.add(task)
    try:
        while await exchange():
            pass
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    except asyncio.CancelledError:
        writer.transport.abort()  # on exit; swallowed, so that asyncio's server callback logs nothing
    finally:
        tasks.discard(task)
        writer.close()


async def read_request(reader: asyncio.StreamReader, connection: int = 0) -> RecordedRequest:
    """Read one request of a connection, which has this number."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return RecordedRequest(method, path, headers, body, connection)


def _encode_head(reply: ScriptedReply, size: int) -> bytes:
    defaults = {"content-type": "application/json" if reply.plain_json or reply.status != 200 else "text/event-stream"}
    framing = {"chunked": {"transfer-encoding": "chunked"}, "length": {"content-length": str(size)}, "close": {}}
    headers = defaults | framing[reply.framing] | reply.headers
    lines = [f"HTTP/1.1 {reply.status} {_HTTP_REASON}", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _encode_chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


async def _write_part(reply: ScriptedReply, writer: asyncio.StreamWriter, part: bytes) -> None:
    if not part:
        return
    data = _encode_chunk(part) if reply.framing == "chunked" else part
    size = reply.write_size or len(data)
    for start in range(0, len(data), size):
        writer.write(data[start : start + size])
        await writer.drain()
        await asyncio.sleep(0)
    if reply.pause:
        await asyncio.sleep(reply.pause)


def _close_connection(writer: asyncio.StreamWriter, *, reset: bool) -> bool:
    """Close or reset the connection. Return False: it does not stay open."""
    if reset:
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
    return False
