"""A server of the server protocol with one session, whose turns a test supplies; a real WebSocket on loopback."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ostler.core import events as e
from ostler.core.errors import BackendError, OstlerError
from ostler.core.message import CallPart, Message
from ostler.core.prompt import Prompt, TextContent
from ostler.core.sessions import Rename, SetOption, Steer
from ostler.core.tools import ToolCall, ToolResult
from ostler.http.server_closing import stop_accepting
from ostler.wire import client_frames as c
from ostler.wire import server_frames as s
from ostler.wire.event_codec import encode_event
from ostler.wire.frames import decode_client_frame, encode_frame
from ostler.wire.frames_shared import HostInfo, ServerLimits, SessionSnapshot

if TYPE_CHECKING:
    from websockets.asyncio.server import Server, ServerConnection
    from websockets.http11 import Request, Response

SESSION = "session-far"
CANCEL_SECONDS = 5.0
Act = Callable[["ServedTurn"], Awaitable[None]]


class ServedTurn:
    """One turn, as the script uses it."""

    def __init__(self, server: "FrameServer", turn_id: str, prompt: Prompt) -> None:
        self.id = turn_id
        self.prompt = prompt
        self._server = server
        self._text = ""
        self._count = 0

    @property
    def message_id(self) -> str:
        return f"{self.id}-message-{self._count}"

    def say(self, text: str) -> None:
        """Send a delta."""
        self._text += text
        self._server.emit(e.TextDelta(self.message_id, text))

    async def call(self, *calls: ToolCall) -> list[ToolResult]:
        """End the message with calls, and return their results."""
        parts = (*((TextContent(self._text),) if self._text else ()), *map(CallPart, calls))
        self.end_message(parts)
        for call in calls:
            self._server.emit(e.ToolCalled(call))
        return list(await asyncio.gather(*map(self._server.run_call, calls)))

    def end_message(self, parts: tuple[Any, ...] = (), *, truncated: bool = False) -> None:
        parts = parts or ((TextContent(self._text),) if self._text else ())
        if parts:
            self._server.emit(e.MessageDone(Message(self.message_id, parts, truncated=truncated)))
        self._text, self._count = "", self._count + 1

    def fail(self, message: str) -> None:
        """Break off the message and end the turn as failed."""
        self.end_message(truncated=True)
        raise BackendError(message)


class FrameServer:
    """Keeps a log, sends it to its clients and continues it after a cut. Use as an async context manager."""

    def __init__(self, turns: Sequence[Act] = (), *, heartbeat: float = 5.0, token: str = "") -> None:
        self.log: list[e.Event] = []
        self.epoch = "epoch-1"
        self.hellos: list[c.Hello] = []
        self.messages: list[c.UserMessageFrame] = []
        self.received = asyncio.Event()  # set when the first message has arrived
        self.results: list[c.ToolResultMessage] = []
        self.connections: list[ServerConnection] = []
        self.turns = list(turns)
        self.url = ""
        self._limits = ServerLimits(heartbeat=heartbeat)
        self._token = token
        self._seen: set[str] = set()
        self._queue: list[Prompt] = []
        self._turn: asyncio.Task[None] | None = None
        self._turn_id = self._prompt_id = ""
        self._calls: dict[str, tuple[ToolCall, asyncio.Future[c.ToolResultMessage]]] = {}
        self._so_far: dict[str, str] = {}
        self._server: Server | None = None

    async def __aenter__(self) -> "FrameServer":
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self, port: int = 0) -> None:
        from websockets.asyncio.server import serve

        def answer(connection: "ServerConnection", request: "Request") -> "Response | None":
            return self._answer(connection, request)  # which a test may replace

        self._server = await serve(
            self._serve, "127.0.0.1", port, process_request=answer, max_size=8 * 1024 * 1024, ping_interval=None
        )
        number = next(iter(self._server.sockets)).getsockname()[1]
        self.url = f"http://127.0.0.1:{number}/api/agent/sessions/{SESSION}"

    async def stop(self) -> None:
        if self._turn:
            self._turn.cancel()
            await asyncio.gather(self._turn, return_exceptions=True)
        if self._server:
            await stop_accepting(self._server.sockets)
            self._server.close()
            await self._server.wait_closed()

    def cut(self) -> None:
        """Break all connections without a closing handshake."""
        for connection in tuple(self.connections):
            connection.transport.abort()

    # -- the log ---------------------------------------------------------------------------------------------------

    def emit(self, event: e.Event) -> None:
        """Append an event to the log, if it is persisted, and send it."""
        match event:
            case e.TextDelta(message_id, text):
                self._so_far[message_id] = self._so_far.get(message_id, "") + text
            case e.MessageDone(message):
                self._so_far.pop(message.id, None)
            case _:
                pass
        self.log += [event] if event.persisted else []
        self.send(self._event_frame(event, len(self.log)))

    def send(self, frame: s.ServerFrame) -> None:
        self.send_text(encode_frame(frame).decode())

    def send_text(self, text: str) -> None:
        """Send any text, also one that is not a message."""
        from websockets.protocol import OPEN

        for connection in [connection for connection in self.connections if connection.protocol.state is OPEN]:
            connection.protocol.send_text(text.encode())
            connection.send_data()

    def _event_frame(self, event: e.Event, seq: int) -> s.EventMessage:
        return s.EventMessage(SESSION, seq, self.epoch, time.time(), msgspec.Raw(encode_event(event)))

    # -- turns -----------------------------------------------------------------------------------------------------

    def receive(self, prompt: Prompt) -> None:
        """Start a turn, or queue the prompt if one runs."""
        if self._turn and not self._turn.done():
            self._queue.append(prompt)
            self.emit(e.Queued(tuple(p.text for p in self._queue), tuple(self._queue)))
            return
        self._turn = asyncio.create_task(self._run_turn(prompt))

    async def run_call(self, call: ToolCall) -> ToolResult:
        """Give a call to the tool host and wait for its result."""
        answer: asyncio.Future[c.ToolResultMessage] = asyncio.get_running_loop().create_future()
        self._calls[call.id] = (call, answer)
        self.emit(e.ToolStarted(call.id, call.tool))
        self.send(self._call_frame(call))
        try:
            message = await asyncio.shield(answer)
        except asyncio.CancelledError:
            self.send(s.ToolCancel(SESSION, call.id, CANCEL_SECONDS))
            await asyncio.wait([answer], timeout=CANCEL_SECONDS)
            if not answer.done():
                raise
            message = answer.result()
            raise
        finally:
            del self._calls[call.id]
            if answer.done():
                self._finish_call(call, answer.result())
        return ToolResult(call.id, message.status or "ok", str(message.output))

    def _finish_call(self, call: ToolCall, message: c.ToolResultMessage) -> None:
        if not any(isinstance(event, e.ToolFinished) and event.result.call_id == call.id for event in self.log):
            self.emit(e.ToolFinished(ToolResult(call.id, message.status or "ok", str(message.output))))

    def _call_frame(self, call: ToolCall) -> s.ToolCallMessage:
        host = self.hellos[-1].host if self.hellos else HostInfo()
        return s.ToolCallMessage(SESSION, call.id, call.tool, call.arguments, len(self.log), self.epoch, host=host)

    async def _run_turn(self, prompt: Prompt) -> None:
        self._turn_id = f"far-turn-{len(self.log) + 1}"
        self._prompt_id = prompt.id
        turn = ServedTurn(self, self._turn_id, prompt)
        self.emit(e.TurnStarted(turn.id, prompt))
        ended = e.TurnEnded(turn.id, "done")
        try:
            await self.turns.pop(0)(turn)
            turn.end_message()
        except asyncio.CancelledError:
            ended = e.TurnEnded(turn.id, "cancelled")
        except OstlerError as error:
            ended = e.TurnEnded(turn.id, "failed", error.fault)
        finally:
            self._turn_id = self._prompt_id = ""
            self.emit(ended)
        if self._queue:
            following = self._queue.pop(0)
            self._turn = asyncio.create_task(self._run_turn(following))

    # -- connections -----------------------------------------------------------------------------------------------

    def _answer(self, connection: "ServerConnection", request: "Request") -> "Response | None":
        if self._token and request.headers.get("Authorization") != f"Bearer {self._token}":
            return connection.respond(401, '{"error": "the token is not valid", "code": "unauthenticated"}')
        if request.path.endswith("/capabilities"):
            return connection.respond(200, '{"serverVersion": "test", "protocol": [1], "models": ["one", "another"]}')
        return None if request.path.endswith(f"/{SESSION}/stream") else connection.respond(404, "{}")

    async def _serve(self, connection: "ServerConnection") -> None:
        from websockets.exceptions import ConnectionClosed

        try:
            hello = decode_client_frame(await connection.recv())
            assert isinstance(hello, c.Hello), hello
            self.hellos.append(hello)
            self._greet(connection, hello)
            async for data in connection:
                self._handle(decode_client_frame(data))
        except ConnectionClosed:
            pass
        finally:
            if connection in self.connections:
                self.connections.remove(connection)

    def _greet(self, connection: "ServerConnection", hello: c.Hello) -> None:
        """Send what the client has missed. Nothing is awaited, so nothing can happen in between."""
        self.connections, others = [connection], self.connections
        last, resume = len(self.log), hello.resume
        is_known = resume is not None and resume.epoch == self.epoch and resume.last_seq <= last
        since = resume.last_seq if resume and is_known else last
        self.send(
            s.SessionCreated(
                SESSION, self.epoch, since, features=hello.features, turn_id=self._turn_id, limits=self._limits,
                resumed=is_known,
            )
        )  # fmt: skip
        if resume and not is_known:
            self.send(s.Resync(SESSION, "epoch", last, self.epoch, SessionSnapshot(turn_id=self._turn_id)))
        for seq, event in enumerate(self.log[since:], since + 1):
            self.send(self._event_frame(event, seq))
        for message_id, text in self._so_far.items():
            self.send(self._event_frame(e.MessageSnapshot(message_id, text), last))
        for call, _ in self._calls.values():
            self.send(self._call_frame(call))
        self.connections = [connection, *others]

    def _handle(self, frame: c.ClientFrame | None) -> None:
        match frame:
            case c.UserMessageFrame():
                self._receive_message(frame)
            case c.ToolResultMessage():
                self.results.append(frame)
                if (call := self._calls.get(frame.tool_call_id)) and not call[1].done():
                    call[1].set_result(frame)
            case c.CancelMessage(_, turn_id) if self._turn and turn_id in ("", self._turn_id):
                self._turn.cancel()
            case c.ChangeRequest(request_id, change):
                self.send(s.ChangeResult(SESSION, request_id, self._change(change)))
            case _:
                pass

    def _receive_message(self, frame: c.UserMessageFrame) -> None:
        message_id = frame.client_message_id or os.urandom(4).hex()
        if message_id in self._seen:
            waiting = [prompt.id for prompt in self._queue]
            position = waiting.index(message_id) + 1 if message_id in waiting else 0
            turn_id = self._turn_id if self._prompt_id == message_id else ""
            self.send(s.MessageAccepted(SESSION, message_id, "duplicate", position, turn_id))
            return
        if not (frame.content or frame.blocks):
            text = "the message is empty"
            self.send(s.ErrorMessage(SESSION, text, "empty_message", client_message_id=message_id))
            return
        self._seen.add(message_id)
        self.messages.append(frame)
        self.received.set()
        self.send(s.MessageAccepted(SESSION, message_id, "started"))
        self.receive(Prompt(message_id, (TextContent(frame.content),)))

    def _change(self, change: object) -> bool:
        match change:
            case Steer(prompt):
                self.emit(e.Steered(prompt))
                self.emit(e.Delivered(prompt.id))
            case SetOption("model", value):
                self.emit(e.OptionChanged("model", value))
            case Rename(title):
                self.emit(e.Renamed(title))
            case _:
                return False
        return True
