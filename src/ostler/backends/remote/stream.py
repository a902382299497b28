"""The connection to one session of a server: connects again after a cut, for ever, and continues where it was."""

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

import msgspec

from ostler.backends.remote.server import TOKEN_HINT, RemoteServer
from ostler.core.errors import BackendError, OstlerError
from ostler.text.sanitise import sanitise
from ostler.wire.client_frames import ClientFrame, Hello
from ostler.wire.frames import MAX_FRAME_BYTES, FrameError, decode_server_frame, encode_frame
from ostler.wire.frames_shared import CloseCode
from ostler.wire.server_frames import (
    AssistantDelta,
    AssistantDone,
    ErrorMessage,
    EventMessage,
    Heartbeat,
    MessageAccepted,
    Resync,
    ServerFrame,
    SessionCreated,
    ToolCallMessage,
)

if TYPE_CHECKING:
    from ostler.backends.remote.event_channel import EventChannel
    from ostler.http.websocket import WebSocket, WebSocketClosed

MESSAGE_SECONDS = 120.0  # a message must be complete after this time
GREETING_SECONDS = 15.0
DEFAULT_HEARTBEAT = 10.0
MAX_QUEUED_BYTES = 16 * 1024 * 1024
MAX_UNSENT_BYTES = 32 * 1024 * 1024
MAX_BAD_FRAMES = 100
STABLE_SECONDS = 10.0  # a connection that lasted this long begins with the shortest delay again
_LOG_FRAMES = (EventMessage, ToolCallMessage, Resync, AssistantDone, AssistantDelta, MessageAccepted)
_FINAL_STATUSES = (400, 401, 403, 404)
_RESUMING_CODES = (CloseCode.NO_HELLO, CloseCode.RATE_LIMITED)
log = logging.getLogger("ostler.remote")
MAX_BYTES = 256 * 1024 * 1024
REFILL_SECONDS = 300.0  # after which all of it is available again
MIN_COST = 512  # of a message, because each may become a record
MAX_REPLY = 16 * 1024 * 1024  # characters of one message of the model


class ProtocolViolation(BackendError):
    """The server does what the protocol forbids; the client ends the connection."""

    code = "protocol"


class RetryDelays(msgspec.Struct, frozen=True):
    """The delays before the next attempt to connect, in seconds; they grow, with a random part."""

    first: float = 0.5
    longest: float = 30.0

    def after(self, attempt: int) -> float:
        return float(min(self.longest, self.first * 2 ** min(attempt - 1, 20)) * random.uniform(0.5, 1.0))


class StreamListener(Protocol):
    """Receives what the server sends. No method may wait for another message, except `handle_log`."""

    def make_hello(self) -> Hello: ...

    def on_connected(self, created: SessionCreated) -> None:
        """Called after each `session.created`, before anything else of the connection."""

    def on_disconnected(self, attempt: int, seconds: float, reason: str) -> None:
        """Called after a cut; the next attempt is made after some seconds."""

    def on_host_taken(self) -> bool:
        """Called when another client runs the tools of the session. Return whether to connect again, without tools."""

    def on_stopped(self, error: OstlerError) -> None:
        """Called when the connection has ended for good."""

    def count_bytes(self, size: int) -> None:
        """Count a received message. Raises `ProtocolViolation` if there were too many."""

    def on_message(self, frame: ServerFrame) -> None:
        """Handle a message that is not part of the log."""

    async def handle_log(self, frame: ServerFrame) -> None:
        """Handle the next message of the log. It may wait; the messages after it wait too."""


class ServerStream:
    """Reads and sends messages. What is sent while there is no connection is lost; the listener repeats it."""

    def __init__(self, server: RemoteServer, session_id: str, listener: StreamListener, delays: RetryDelays) -> None:
        self._server = server
        self._session_id = session_id
        self._listener = listener
        self._delays = delays
        self._websocket: WebSocket | EventChannel | None = None
        self._heartbeat = DEFAULT_HEARTBEAT
        self._last_error: ErrorMessage | None = None
        self._bad_frames = 0
        self._queue: deque[tuple[ServerFrame, int]] = deque()
        self._queued_bytes = 0
        self._changed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._reconnects = False
        self.error: OstlerError | None = None

    @property
    def is_connected(self) -> bool:
        return self._websocket is not None

    async def start(self) -> None:
        """Connect for the first time. Raises `BackendError` if that fails; nothing is tried again."""
        try:
            await self._connect()
        except BaseException as error:
            self._drop_connection()  # there is one if it was opened and its greeting could not be used
            if not isinstance(error, OstlerError):
                raise
            raise self._final_error(error, is_first=True) or error from None
        loops = (self._run(), self._process())
        self._tasks = [asyncio.create_task(loop, name="server stream") for loop in loops]

    def send(self, frame: ClientFrame) -> bool:
        """Send a message. Return False if there is no connection now."""
        from ostler.http.websocket import WebSocketClosed

        websocket = self._websocket
        if websocket is None:
            return False
        if websocket.unsent_bytes > MAX_UNSENT_BYTES:
            websocket.abort()  # the server does not read; the next connection continues
            return False
        try:
            websocket.send(encode_frame(frame).decode())
        except WebSocketClosed:
            return False
        return True

    def reconnect(self) -> None:
        """Connect again at once, because the next `hello` says something else."""
        if self._websocket is not None:
            self._reconnects = True
            self._websocket.abort()

    async def aclose(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._websocket is not None:
            await self._websocket.aclose()
            self._websocket = None

    # -- the connection --------------------------------------------------------------------------------------------

    async def _connect(self) -> None:
        try:
            await self._open_connection()
        except OstlerError as error:
            if not self._continues_without_tools(error):
                raise
            await self._open_connection()

    def _continues_without_tools(self, error: OstlerError) -> bool:
        return getattr(error, "close_code", 0) == CloseCode.REPLACED and self._listener.on_host_taken()

    async def _open_connection(self) -> None:
        """Open the WebSocket and exchange greetings."""
        websocket = await self._server.open_stream(self._session_id)
        try:
            websocket.send(encode_frame(self._listener.make_hello()).decode())
            async with asyncio.timeout(GREETING_SECONDS):
                created = await self._greeting(websocket)
        except TimeoutError:
            websocket.abort()
            raise BackendError("the server did not answer the hello", code="timeout") from None
        except BaseException:
            websocket.abort()
            raise
        self._heartbeat = min(max(created.limits.heartbeat, 1.0), 60.0) if created.limits.heartbeat else 10.0
        self._websocket, self._last_error = websocket, None
        self._listener.on_connected(created)

    async def _greeting(self, websocket: "WebSocket | EventChannel") -> SessionCreated:
        while True:
            frame = self._decode(await websocket.receive())
            match frame:
                case SessionCreated():
                    if frame.session_id != self._session_id:
                        raise ProtocolViolation("the server answered for another session")
                    return frame
                case ErrorMessage():
                    self._last_error = frame
                case _:
                    pass

    async def _run(self) -> None:
        """Receive until the connection ends for good."""
        attempt, clock = 0, asyncio.get_running_loop().time
        began = clock()
        while True:
            try:
                if self._websocket is None:
                    await self._connect()
                    began = clock()
                await self._receive()
            except OstlerError as error:
                attempt = 1 if self._websocket is not None and clock() - began > STABLE_SECONDS else attempt + 1
                self._drop_connection()
                if self._reconnects or self._continues_without_tools(error):
                    self._reconnects = False
                    continue
                if final := self._final_error(error):
                    self._stop(final)
                    return
                seconds = self._delay(attempt, error)
                self._listener.on_disconnected(attempt, seconds, sanitise(str(error))[:300])
                await asyncio.sleep(seconds)
            except Exception as error:
                self.stop(_unusable(error))
                return

    async def _receive(self) -> None:
        websocket = self._websocket
        assert websocket is not None
        while True:
            data = await self._next_message(websocket)
            frame = self._decode(data)
            if frame is not None and not isinstance(frame, Heartbeat):
                self._listener.count_bytes(len(data))
            if isinstance(frame, _LOG_FRAMES):
                await self._wait_for_space()
                self._queue.append((frame, len(data)))
                self._queued_bytes += len(data)
                self._changed.set()
            elif isinstance(frame, ErrorMessage):
                self._last_error = frame
                self._listener.on_message(frame)
            elif frame is not None:
                self._listener.on_message(frame)
            await asyncio.sleep(0)  # a server that sends all the time must not stop everything else

    async def _next_message(self, websocket: "WebSocket | EventChannel") -> str | bytes:
        """Return the next message. Raises `BackendError` if the server is silent or a message does not end."""
        silence = 3 * self._heartbeat
        try:
            async with asyncio.timeout(max(MESSAGE_SECONDS, silence)):
                data = await websocket.receive(silence)
        except TimeoutError:
            raise BackendError("a message of the server did not end", code="timeout") from None
        if data is None:
            raise BackendError(f"the server sent nothing for {silence:g} s", code="timeout")
        return data

    def _decode(self, data: str | bytes | None) -> ServerFrame | None:
        """Return a message, or None if it is not for us. Raises `ProtocolViolation` for anything else."""
        if not isinstance(data, str):
            raise ProtocolViolation("the server sent a binary message")
        try:
            frame = decode_server_frame(data, MAX_FRAME_BYTES)
        except FrameError as error:
            self._bad_frames += 1
            if not error.header or self._bad_frames > MAX_BAD_FRAMES:
                raise ProtocolViolation(f"the server sent an invalid message: {str(error)[:200]}") from None
            return None
        if frame is not None and getattr(frame, "session_id", "") not in ("", self._session_id):
            self._bad_frames += 1
            if self._bad_frames > MAX_BAD_FRAMES:
                raise ProtocolViolation("the server sends messages of other sessions")
            return None
        return frame

    def _drop_connection(self) -> None:
        """Forget the connection and what is unprocessed of it; the server sends it again."""
        if self._websocket is not None:
            self._websocket.abort()
            self._websocket = None
        self._queue.clear()
        self._queued_bytes = 0
        self._changed.set()

    def _delay(self, attempt: int, error: OstlerError) -> float:
        asked = self._last_error.retry_after if self._last_error else None
        is_limited = getattr(error, "close_code", 0) == CloseCode.RATE_LIMITED
        return max(self._delays.after(attempt), min(asked or 1.0, 300.0) if is_limited else 0.0)

    def _final_error(self, error: OstlerError, *, is_first: bool = False) -> OstlerError | None:
        """Return the error to stop with, with what the server said, or None if another attempt can succeed.

        After the first attempt there is no other one.
        """
        from ostler.http.websocket import HandshakeRefused, WebSocketClosed

        match error:
            case ProtocolViolation():
                return error
            case HandshakeRefused(status=status, body=body) if is_first or status in _FINAL_STATUSES:
                return self._server.refusal(status, body)
            case WebSocketClosed(close_code=code) if code >= CloseCode.BAD_MESSAGE and code not in _RESUMING_CODES:
                hint = TOKEN_HINT if code == CloseCode.UNAUTHENTICATED else ""
                return BackendError(self._reason(error), code=f"closed_{code}", hint=hint)
            case WebSocketClosed() if is_first:
                return BackendError(self._reason(error), code="closed")
            case _:
                return None

    def _reason(self, error: "WebSocketClosed | OstlerError") -> str:
        text = self._last_error.message if self._last_error else str(error)
        return f"{self._server.address.url} ended the connection: {sanitise(text)[:500]}"

    def _stop(self, error: OstlerError) -> None:
        self.error = error
        self._listener.on_stopped(error)

    def stop(self, error: OstlerError) -> None:
        """End the connection for good, because of what the server did."""
        self._drop_connection()
        for task in self._tasks:
            if task is not asyncio.current_task():
                task.cancel()
        self._stop(error)

    # -- the log ---------------------------------------------------------------------------------------------------

    async def _wait_for_space(self) -> None:
        while self._queued_bytes > MAX_QUEUED_BYTES:
            self._changed.clear()
            await self._changed.wait()

    async def _process(self) -> None:
        """Handle the messages of the log in order."""
        with suppress(asyncio.CancelledError):
            while True:
                while self._queue:
                    frame, size = self._queue.popleft()
                    self._queued_bytes -= size
                    self._changed.set()
                    try:
                        await self._listener.handle_log(frame)
                    except OstlerError as error:  # the journal is full, or the server breaks the protocol
                        self.stop(error)
                        return
                    except Exception as error:
                        self.stop(_unusable(error))
                        return
                self._changed.clear()
                await self._changed.wait()


def _unusable(error: Exception) -> ProtocolViolation:
    """Return the error for a message that is valid but cannot be stored or shown, such as one with a huge number."""
    log.error("a message of the server cannot be used", exc_info=error)
    return ProtocolViolation(f"a message of the server cannot be used: {sanitise(repr(error))[:200]}")


class TrafficLimit:
    """What the messages of a server may still cost. It is renewed slowly, and when the user sends a prompt."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._at = clock()
        self._used = 0.0
        self._reply = 0

    def reset(self) -> None:
        self._used = 0.0

    def count(self, size: int) -> None:
        """Count a message. Raises `ProtocolViolation` if the server sends without end."""
        now = self._clock()
        renewed = (now - self._at) * MAX_BYTES / REFILL_SECONDS
        self._used, self._at = max(0.0, self._used - renewed) + max(size, MIN_COST), now
        if self._used > MAX_BYTES:
            raise ProtocolViolation(f"the server sent more than {MAX_BYTES >> 20} MiB of messages in a short time")

    def count_delta(self, size: int) -> None:
        """Count text of the message that the model writes now. Raises `ProtocolViolation` if it has no end."""
        self._reply += size
        if self._reply > MAX_REPLY:
            raise ProtocolViolation(f"the server sent a reply of more than {MAX_REPLY >> 20} million characters")

    def end_reply(self) -> None:
        self._reply = 0
