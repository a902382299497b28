"""The connection to a session without a WebSocket: server-sent events down, POST up, with the same messages."""

import asyncio
import os
from collections import deque
from contextlib import aclosing, suppress

import msgspec

from ostler.core.errors import BackendError, OstlerError
from ostler.http.client import Headers, HttpClient, HttpResponse
from ostler.http.dialer import Dialer
from ostler.http.sse import EventTooLongError, SseSplitter
from ostler.http.websocket import HandshakeRefused, WebSocketClosed
from ostler.wire.frames import MAX_FRAME_BYTES
from ostler.wire.frames_shared import CloseCode

CLOSE_SECONDS = 2.0
HEAD_SECONDS = 10.0
POST_SECONDS = 60.0
MAX_ANSWER = 1024 * 1024
MAX_WAITING = 64  # received messages that were not read
_CLOSE_CODES = {
    "host_taken": CloseCode.REPLACED,
    "deleted": CloseCode.DELETED,
    "bad_manifest": CloseCode.BAD_MANIFEST,
    "bad_message": CloseCode.BAD_MESSAGE,
    "draining": CloseCode.RESTART,
}


class _Error(msgspec.Struct):
    type: str = ""
    code: str = ""
    message: str = ""


class _PostAnswer(msgspec.Struct):
    replies: list[msgspec.Raw] = []


class EventChannel:
    """Has the methods of `WebSocket`. Its end has the close code that a WebSocket would have."""

    def __init__(self, response: HttpResponse, posts: HttpClient, target: str, headers: Headers) -> None:
        self._response = response
        self._posts = posts
        self._target = target
        self._headers = [*headers, ("content-type", "application/json"), ("connection", "close")]
        self._received: asyncio.Queue[str | OstlerError] = asyncio.Queue(MAX_WAITING)
        self._unsent: deque[bytes] = deque()
        self._changed = asyncio.Event()
        self._all_sent = asyncio.Event()
        self._said_hello = False
        self._last_error = _Error()
        self._end: OstlerError | None = None
        self._tasks = [asyncio.create_task(work, name="server events") for work in (self._read(), self._write())]

    @property
    def unsent_bytes(self) -> int:
        return sum(map(len, self._unsent))

    def send(self, text: str) -> None:
        """Send a message after those before it. Raises `WebSocketClosed`."""
        if self._end:
            raise WebSocketClosed(1006)
        self._unsent.append(text.encode())
        self._all_sent.clear()
        self._changed.set()

    async def receive(self, timeout: float | None = None) -> str | None:
        """Return the next message, or None on timeout. Raises `WebSocketClosed` or `HandshakeRefused` at the end."""
        try:
            async with asyncio.timeout(timeout):
                item = await self._received.get()
        except TimeoutError:
            return None
        if isinstance(item, OstlerError):
            raise item
        return item

    async def aclose(self) -> None:
        """Send what waits, if that is possible soon, and close."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._all_sent.wait()
        self.abort()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def abort(self) -> None:
        """Disconnect immediately. Who waits in `receive` gets the end."""
        self._end = self._end or WebSocketClosed(1006)
        for task in self._tasks:
            task.cancel()
        self._response.close()
        if self._received.full():
            self._received.get_nowait()
        self._received.put_nowait(self._end)

    async def _read(self) -> None:
        splitter = SseSplitter(2 * MAX_FRAME_BYTES)
        end: OstlerError | None = None
        try:
            async with aclosing(self._response.iter_data()) as reads:
                async for data in reads:
                    for event in splitter.feed(data):
                        await self._take(event)
        except EventTooLongError:
            end = WebSocketClosed(CloseCode.TOO_LARGE, "the server sent a message that is too large")
        except (BackendError, OSError) as error:
            end = WebSocketClosed(1006, str(error))
        await self._finish(end or WebSocketClosed(self._close_code(), self._last_error.message))

    async def _take(self, event: bytes) -> None:
        if b'"type":"error"' in event[:200]:
            with suppress(msgspec.DecodeError):
                self._last_error = msgspec.json.decode(event, type=_Error)
        await self._received.put(event.decode("utf-8", "replace"))

    async def _write(self) -> None:
        while True:
            while self._unsent:
                try:
                    await self._post(self._unsent[0])
                except OstlerError as error:
                    await self._finish(error)
                    return
                self._unsent.popleft()
            self._all_sent.set()
            self._changed.clear()
            await self._changed.wait()

    async def _post(self, body: bytes) -> None:
        """Send a message. Raises `HandshakeRefused`, or `WebSocketClosed` if the `hello` is refused."""
        answer = await self._posts.fetch(
            "POST", self._target, self._headers, body, timeout=POST_SECONDS, limit=MAX_ANSWER, repeatable=False
        )
        replies = _replies(answer.body)
        if not self._said_hello and replies:  # the stream has not begun, so it does not send them
            for reply in replies:
                await self._take(bytes(reply))
            raise WebSocketClosed(self._close_code(), self._last_error.message)
        if answer.status >= 400 and not replies:
            raise HandshakeRefused(answer.status, answer.body)
        self._said_hello = True

    def _close_code(self) -> int:
        return _CLOSE_CODES.get(self._last_error.code, 1006)

    async def _finish(self, end: OstlerError) -> None:
        self._all_sent.set()  # nothing more can be sent
        if self._end is None:
            self._end = end
            await self._received.put(end)


def _replies(body: bytes) -> list[msgspec.Raw]:
    """Return the error messages in the answer to a POST."""
    try:
        return msgspec.json.decode(body, type=_PostAnswer).replies
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return []


async def open_events(dialer: Dialer, stream: str, messages: str, headers: Headers) -> EventChannel:
    """Open the event stream of a session. Raises `HandshakeRefused` or `BackendError`."""
    query = f"?connection={os.urandom(12).hex()}"
    client = HttpClient(dialer)
    head = [*headers, ("accept", "text/event-stream")]
    response = await client.send("GET", f"{stream}{query}", head, repeatable=False)
    try:
        if not await response.read_head(HEAD_SECONDS):
            raise BackendError("the server did not answer in time", code="timeout")
        if response.status != 200 or not response.headers.get("content-type", "").startswith("text/event-stream"):
            raise HandshakeRefused(response.status, await response.read_rest(MAX_ANSWER, HEAD_SECONDS))
    except BaseException:
        response.close()
        raise
    return EventChannel(response, HttpClient(dialer), f"{messages}{query}", headers)
