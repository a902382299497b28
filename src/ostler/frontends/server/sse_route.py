"""The fallback without WebSocket: server-sent events down, POST up, with the same messages."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from ostler.core.errors import OstlerError
from ostler.frontends.server.connection import ClientConnection
from ostler.frontends.server.frame_handler import FrameHandler, error_code
from ostler.frontends.server.http_errors import HttpError, read_body
from ostler.frontends.server.hub import SessionHub
from ostler.frontends.server.hubs import SessionHubs
from ostler.wire.client_frames import ClientFrame, Hello
from ostler.wire.frames import FrameError, decode_client_frame, encode_frame, without_surrogates
from ostler.wire.frames_shared import PROTOCOL_VERSION, ResumePoint
from ostler.wire.manifest_rules import ManifestError
from ostler.wire.server_frames import ErrorMessage, Heartbeat

STREAM_HEADERS = {"Cache-Control": "no-store, no-transform", "X-Accel-Buffering": "no"}
MAX_BATCH = 100
GOING_AWAY = 1001
_CONNECTION = re.compile(r"[\x21-\x7e]{1,64}")


class SseClient:
    """A client without a WebSocket: its `hello` and the current stream, if any."""

    def __init__(self, hub: SessionHub) -> None:
        self.hub = hub
        self.user = ""
        self.connection: ClientConnection | None = None
        self.handler: FrameHandler | None = None
        self.said_hello = asyncio.Event()
        self.stream_number = 0
        self.is_streaming = False
        self._gap: asyncio.TimerHandle | None = None
        self._attaching = asyncio.Lock()

    @property
    def is_used(self) -> bool:
        """Whether it has sent `hello` or opened a stream."""
        return self.connection is not None or self.stream_number > 0

    async def attach(self, hello: Hello, user: str) -> ErrorMessage | None:
        """Attach a connection for this `hello`, in place of an earlier one. Return why it was refused, if it was."""
        async with self._attaching:  # else a connection that is attached at the same time would never be detached
            if self.connection:
                self.hub.detach(self.connection)
                self.connection = self.handler = None
            connection = ClientConnection(self.hub, hello, user)
            await self.hub.attach(connection)
            if connection.close_code:
                return connection.close_error
            self.user, self.connection, self.handler = user, connection, FrameHandler(self.hub, connection)
            self.said_hello.set()
            return None

    async def resume(self, last_seq: int) -> None:
        """Continue after a record that a former stream has sent."""
        assert self.connection is not None
        point = ResumePoint(self.hub.epoch, last_seq)
        await self.attach(msgspec.structs.replace(self.connection.hello, resume=point), self.user)

    def stay(self, seconds: float) -> None:
        """Detach the client unless a stream is opened again in time."""
        self.cancel_gap()
        self._gap = asyncio.get_running_loop().call_later(seconds, self.end)

    def cancel_gap(self) -> None:
        if self._gap:
            self._gap.cancel()
            self._gap = None

    def end(self) -> None:
        self.cancel_gap()
        if self.connection:
            self.connection.close(GOING_AWAY, "no stream was opened")
            self.hub.detach(self.connection)


class ClosingStream(StreamingResponse):
    """A stream of events that calls `on_end` at its end, also if the client was gone before the first event."""

    def __init__(
        self, content: AsyncIterator[bytes], headers: Mapping[str, str], on_end: Callable[[], Awaitable[None]]
    ) -> None:
        super().__init__(content, media_type="text/event-stream", headers=headers)
        self._on_end = on_end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._on_end()


class SseRoutes:
    """`GET …/stream` and `POST …/messages`.

    A client is known by session, user, the id that it chose, and whether its token may write: a token that can only
    read must not take over the stream of a client that runs tools.
    """

    def __init__(self, hubs: SessionHubs) -> None:
        self._hubs = hubs
        self._config = hubs.parts.config
        self._clients: dict[tuple[str, str, str, bool], SseClient] = {}
        hubs.on_drain.append(self._end_waiting)

    def _end_waiting(self) -> None:
        """End the streams of clients that have not sent `hello`; the others end with their connections."""
        for client in self._clients.values():
            client.said_hello.set()

    async def stream(self, request: Request) -> Response:
        client = await self._client(request)
        client.cancel_gap()
        last_id = request.headers.get("last-event-id", "")
        if client.connection is None and "write" not in request.state.scopes:  # it cannot send a hello, and watches
            await client.attach(Hello(), request.state.user)
        if client.connection and (last_id or client.stream_number):
            await self._resume(client, last_id)
        client.stream_number += 1
        client.is_streaming, number = True, client.stream_number
        return ClosingStream(self._events(client, number), STREAM_HEADERS, lambda: self._end_stream(client, number))

    async def post(self, request: Request) -> Response:
        frames = self._decode(await read_body(request, self._config.max_frame))
        client = await self._client(request)
        replies = [error for frame in frames if (error := await self._handle(client, frame, request.state.user))]
        if not client.is_used:
            self._forget(client)
        body = {"accepted": len(frames) - len(replies), "replies": msgspec.to_builtins(replies)}
        return JSONResponse(body, 202 if len(frames) > len(replies) or not replies else 400)

    async def _client(self, request: Request) -> SseClient:
        if self._hubs.draining:
            raise HttpError(503, "draining", "the server is shutting down")
        name = request.query_params.get("connection", "default")
        if not _CONNECTION.fullmatch(name):
            raise HttpError(400, "bad_message", "connection must have 1 to 64 visible ASCII characters")
        user = request.state.user
        hub = await self._hubs.get(user, request.path_params["id"])
        key = (hub.id, user, name, "write" in request.state.scopes)
        self._clients = {k: c for k, c in self._clients.items() if c.connection is None or not c.connection.close_code}
        client = self._clients.get(key)
        if client is None or client.hub is not hub:
            self._hubs.check_connections(hub)
            if sum(owner == user for _, owner, *_ in self._clients) >= self._config.connections_per_user:
                raise HttpError(429, "rate_limited", f"{user} has too many event streams")
            client = self._clients[key] = SseClient(hub)
        return client

    def _forget(self, client: SseClient) -> None:
        for key in [key for key, other in self._clients.items() if other is client]:
            del self._clients[key]

    def _decode(self, body: bytes) -> list[ClientFrame | FrameError]:
        """Return the messages; a `FrameError` for one of a known type that has wrong fields. Raises `HttpError`."""
        body = without_surrogates(body) or body
        try:
            items = msgspec.json.decode(body, type=msgspec.Raw | list[msgspec.Raw]) if body[:1] == b"[" else [body]
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise HttpError(400, "bad_message", str(error)) from None
        if not isinstance(items, list) or len(items) > MAX_BATCH:
            raise HttpError(400, "bad_message", f"at most {MAX_BATCH} messages can be sent at once")
        frames: list[ClientFrame | FrameError] = []
        for item in items:
            try:
                if frame := decode_client_frame(bytes(item), self._config.max_frame):
                    frames.append(frame)
            except FrameError as error:
                if error.header is None:
                    raise HttpError(400, error.code, str(error)[:500]) from None
                frames.append(error)
        return frames

    async def _handle(self, client: SseClient, frame: ClientFrame | FrameError, user: str) -> ErrorMessage | None:
        hub = client.hub
        if isinstance(frame, Hello):
            return await self._hello(client, frame, user)
        if client.handler is None:
            if isinstance(frame, FrameError):
                return ErrorMessage(hub.id, str(frame)[:500], frame.code)
            return ErrorMessage(hub.id, "the first message must be hello", "hello_expected")
        if isinstance(frame, FrameError):
            assert frame.header is not None
            return client.handler.refuse(frame, frame.header)
        return await client.handler.handle(frame, len(encode_frame(frame)))

    async def _hello(self, client: SseClient, hello: Hello, user: str) -> ErrorMessage | None:
        hub = client.hub
        if hello.protocol != PROTOCOL_VERSION:
            text = f"the client speaks protocol {hello.protocol}, this server {PROTOCOL_VERSION}"
            return ErrorMessage(hub.id, text, "bad_message")
        try:
            if refusal := await client.attach(hello, user):
                return refusal
        except ManifestError as error:
            return ErrorMessage(hub.id, str(error), "bad_manifest")
        except OstlerError as error:
            return ErrorMessage(hub.id, error.fault.message, error_code(error))
        if not client.is_streaming:  # none was opened yet, or it has ended in the meantime
            client.stay(self._config.stream_gap)
        return None

    async def _resume(self, client: SseClient, last_id: str) -> None:
        position = client.connection.position if client.connection else 0
        if last_id and not re.fullmatch(r"[0-9]{1,15}", last_id):
            raise HttpError(400, "bad_message", "Last-Event-ID must be a number")
        await client.resume(int(last_id) if last_id else position)

    async def _events(self, client: SseClient, number: int) -> AsyncIterator[bytes]:
        """Yield the messages of a client as events, until it is replaced by a newer stream."""
        limit = time.monotonic() + self._config.stream_gap
        while not client.said_hello.is_set():
            if time.monotonic() > limit:
                return
            yield b": waiting for hello\n\n"
            with suppress(TimeoutError):
                async with asyncio.timeout(self._config.heartbeat):
                    await client.said_hello.wait()
        while number == client.stream_number:
            connection = client.connection
            if connection is None:
                return
            try:
                async with asyncio.timeout(self._config.heartbeat):
                    message = await connection.outbox.get()
            except TimeoutError:
                yield b": ping\n\n" + _event(encode_frame(Heartbeat(client.hub.id)))
                continue
            if message is None and connection is client.connection:
                return
            if message is not None:
                yield _event(message.data, message.seq)

    async def _end_stream(self, client: SseClient, number: int) -> None:
        """Keep the client for some time, unless it has a newer stream or never sent `hello`."""
        if number != client.stream_number:
            return
        client.is_streaming = False
        if client.connection is None:
            self._forget(client)
        else:
            client.stay(0 if self._hubs.draining else self._config.stream_gap)


def _event(data: bytes, seq: int = 0) -> bytes:
    return (b"id: %d\n" % seq if seq else b"") + b"data: " + data + b"\n\n"
