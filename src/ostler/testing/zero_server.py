"""A loopback Agent Zero server that plays scripted answers in any format."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from ostler.http.server_closing import close_server
from ostler.testing.model_server import RecordedRequest, ScriptMismatchError, read_request, serve_requests

Part = bytes | Callable[[], Awaitable[None]]


@dataclass(frozen=True)
class ZeroAnswer:
    """One answer. A part that is a function is awaited before the next part is sent; `cuts` ends without the rest."""

    parts: Sequence[Part] = ()
    content_type: str = "application/json"
    status: int = 200
    cuts: bool = False


def zero_json(value: Any, status: int = 200) -> ZeroAnswer:
    """Return an answer as the real server sends it: one JSON document."""
    return ZeroAnswer([json.dumps(value).encode()], status=status)


def zero_reply(text: str, context_id: str = "ctx00001") -> ZeroAnswer:
    return zero_json({"context_id": context_id, "response": text})


def zero_sse(*events: Any, cuts: bool = False) -> ZeroAnswer:
    """Return a stream of server-sent events; functions are awaited between them."""
    parts = [event if callable(event) else f"data: {json.dumps(event)}\n\n".encode() for event in events]
    return ZeroAnswer(parts, "text/event-stream", cuts=cuts)


def zero_lines(*events: Any) -> ZeroAnswer:
    parts = [event if callable(event) else f"{json.dumps(event)}\n".encode() for event in events]
    return ZeroAnswer(parts, "application/x-ndjson")


@dataclass
class ScriptedZeroServer:
    """Answers each message with the next answer of the script.

    Like current servers it has its routes below `prefix` and answers 405 with HTML elsewhere. `log` is the answer of
    the log route. Leaving the context raises `ScriptMismatchError` if answers are left or missing.
    """

    answers: list[ZeroAnswer]
    prefix: str = "/api"
    api_key: str = ""
    log: dict[str, Any] = field(default_factory=dict)
    requests: list[RecordedRequest] = field(default_factory=list)
    port: int = 0

    def __post_init__(self) -> None:
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._unexpected = 0
        self._changed = asyncio.Condition()

    @property
    def api_url(self) -> str:
        return f"http://127.0.0.1:{self.port}{self.prefix}/api_message"

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The bodies of the messages, in order."""
        return [request.json for request in self.requests if request.path.endswith("/api_message")]

    async def wait_for_messages(self, count: int) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.messages) >= count)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        await close_server(self._server, self._tasks)
        if error is None and (self.answers or self._unexpected):
            raise ScriptMismatchError(
                f"{len(self.answers)} answers left, {self._unexpected} messages without an answer"
            )

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await serve_requests(lambda: self._exchange(reader, writer), writer, self._tasks)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        request = await read_request(reader)
        async with self._changed:
            if request.path.startswith(f"{self.prefix}/api_"):
                self.requests.append(request)
            self._changed.notify_all()
        return await self._send(self._answer(request), writer)

    def _answer(self, request: RecordedRequest) -> ZeroAnswer:
        route = request.path.removeprefix(f"{self.prefix}/")
        if not request.path.startswith(f"{self.prefix}/api_"):
            return ZeroAnswer([b"<!doctype html><title>405 Method Not Allowed</title>"], "text/html", 405)
        if self.api_key and request.headers.get("x-api-key") != self.api_key:
            text = b"Invalid API key" if "x-api-key" in request.headers else b"API key required"
            return ZeroAnswer([text], "text/plain", 401)
        if route == "api_log_get":
            return zero_json({"context_id": request.json["context_id"], "log": self.log})
        if route in ("api_reset_chat", "api_terminate_chat"):
            return zero_json({"success": True, "context_id": request.json["context_id"]})
        if not self.answers:
            self._unexpected += 1
            return zero_json({"error": "the script has no more answers"}, 500)
        return self.answers.pop(0)

    async def _send(self, answer: ZeroAnswer, writer: asyncio.StreamWriter) -> bool:
        streams = "json" not in answer.content_type or "ndjson" in answer.content_type
        framing = "transfer-encoding: chunked" if streams else f"content-length: {_size(answer)}"
        head = f"HTTP/1.1 {answer.status} Scripted\r\ncontent-type: {answer.content_type}\r\n{framing}\r\n\r\n"
        if streams:
            writer.write(head.encode())
        for number, part in enumerate(answer.parts):
            if callable(part):
                await writer.drain()
                await part()
                continue
            prefix = (
                head.encode() if not streams and not any(isinstance(p, bytes) for p in answer.parts[:number]) else b""
            )
            writer.write(prefix + (f"{len(part):x}\r\n".encode() + part + b"\r\n" if streams else part))
        if answer.cuts:
            await writer.drain()
            return False
        if streams:
            writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True


def _size(answer: ZeroAnswer) -> int:
    return sum(len(part) for part in answer.parts if isinstance(part, bytes))
