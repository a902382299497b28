"""The message API: one HTTP request per message, whose answer comes when the agent has finished, or as a stream."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from typing import Any

import msgspec

from ostler.backends.agent_zero.log_poller import LogPoller
from ostler.backends.agent_zero.server import MAX_DOCUMENT_BYTES, MAX_ERROR_BYTES, ZeroServer
from ostler.backends.agent_zero.transport import (
    COMMON_OPTIONS,
    STEP_LIMIT,
    TICK_SECONDS,
    Silence,
    TransportStart,
    TurnListener,
    ZeroMessage,
    limit_time,
)
from ostler.core.errors import BackendError
from ostler.core.sessions import SessionOption, SlashCommand
from ostler.http.client import HttpResponse
from ostler.text.sanitise import sanitise
from ostler.wire.agent_zero.answer_reader import AnswerReader, StreamMode
from ostler.wire.agent_zero.normalise import Normaliser
from ostler.wire.agent_zero.server_documents import error_text
from ostler.wire.agent_zero.zero_events import ZeroEvent, ZeroToolResult

STALL_SECONDS = 0.5  # after the last call, an open stream may wait for its result
STOP_SECONDS = 5.0
ERROR_BODY_SECONDS = 5.0
STOP_TEXT = "The user cancelled this task. Stop working on it now and answer with one short sentence."
_ANSWERS = ("piece", "final_response")
RESET, TERMINATE = "reset", "terminate"
_ACCEPT: dict[StreamMode, str] = {
    "auto": "text/event-stream, application/x-ndjson, application/json;q=0.9, */*;q=0.5",
    "sse": "text/event-stream, application/json;q=0.5",
    "jsonl": "application/x-ndjson, application/json;q=0.5",
}
_COMMANDS = {
    RESET: ("api_reset_chat", "delete the conversation's messages on the server, which also stops its work"),
    TERMINATE: ("api_terminate_chat", "end the conversation on the server; the next prompt starts a new one"),
}


class MessageApiSettings(msgspec.Struct, frozen=True):
    """Settings of the message API. `timeout` limits a silence and `max_wait` a turn; 0 means no limit."""

    lifetime_hours: int = 24
    stream: bool | None = None
    stream_mode: StreamMode = "auto"
    timeout: float = 0.0
    keepalive: float = 5.0
    max_wait: float = 0.0
    send_tool_results: bool = True
    project: str = ""
    agent_profile: str = ""
    max_rounds: int = 50
    poll_seconds: float = 1.0


class MessageApiTransport:
    """A conversation over the message API."""

    seq = 0
    requests_tools = True

    def __init__(
        self, server: ZeroServer, settings: MessageApiSettings, start: TransportStart, listener: TurnListener
    ) -> None:
        self._server = server
        self._settings = settings
        self._listener = listener
        self._context_id = start.context_id
        self._profile = start.options.get("agent_profile", settings.agent_profile)
        self._project = start.options.get("project", settings.project)
        self._log = LogPoller(server, listener.on_log_item, settings.poll_seconds)
        self._open_requests = 0
        self._rounds = 0
        self._is_interrupted = False  # whether the server was working when the turn was cancelled
        self._is_answered = False  # whether the turn has an answer, or requests whose results are not sent
        self._error = ""  # of the agent, if no answer has followed it
        self._steering: set[asyncio.Task[None]] = set()

    @property
    def context_id(self) -> str:
        return self._context_id

    # -- turns -----------------------------------------------------------------------------------------------------

    async def run(self, message: ZeroMessage) -> None:
        self._rounds, self._is_interrupted, self._is_answered, self._error = 0, False, False, ""
        try:
            async with limit_time(self._settings.max_wait, self._server.address):
                await self._log.begin(self._context_id)
                await self._exchange(message)
                await self._log.finish(self._context_id)
                if self._error:
                    raise BackendError(f"Agent Zero failed: {self._error}", code="agent_error")
                if not self._is_answered:
                    raise BackendError(f"Agent Zero at {self._server.address} sent an empty answer", code="empty")
        finally:
            for task in self._steering:
                task.cancel()

    async def _exchange(self, message: ZeroMessage) -> None:
        """Send a message, run the tools that its answer requests, and send their results, until none is requested."""
        calls: list[asyncio.Task[ZeroToolResult]] = []
        try:
            async with aclosing(self._events(message)) as events:
                await self._read_answer(events, calls)
            await self._send_results(calls)
        finally:
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)

    async def _read_answer(self, events: AsyncIterator[ZeroEvent], calls: list[asyncio.Task[ZeroToolResult]]) -> None:
        """Show the events and start the requested calls. A server that waits for their results gets them meanwhile."""
        reading = asyncio.ensure_future(_next_event(events))
        try:
            while True:
                await _wait_for_event(reading, calls)
                if not reading.done():
                    await self._send_results(calls)
                elif (event := reading.result()) is not None:
                    self._handle(event, calls)
                    reading = asyncio.ensure_future(_next_event(events))
                else:
                    return
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    def _handle(self, event: ZeroEvent, calls: list[asyncio.Task[ZeroToolResult]]) -> None:
        if event.kind in _ANSWERS and event.text.strip():
            self._is_answered, self._error = True, ""
        elif event.kind == "other" and event.type == "error":
            self._error = sanitise(event.text)[:2000]
        if event.request is None:
            self._listener.on_event(event)
        elif self._rounds >= self._settings.max_rounds:
            raise BackendError(
                f"Agent Zero requested tools {self._settings.max_rounds} times in this turn",
                code=STEP_LIMIT,
                hint="send another prompt to let it go on, or raise --max-steps or limits.steps",
            )
        else:
            calls.append(asyncio.ensure_future(self._listener.run_tool(event.request)))

    async def _send_results(self, calls: list[asyncio.Task[ZeroToolResult]]) -> None:
        """Send the results of all calls as one message, one JSON object per line, and handle the answer to it."""
        if not calls:
            return
        results = await asyncio.gather(*calls)
        calls.clear()
        if not self._settings.send_tool_results:
            self._is_answered = True
            self._listener.on_notice("tool results are not sent (connection.send_tool_results is false)")
            return
        self._rounds += 1
        await self._log.begin_late(self._context_id)
        await self._exchange(ZeroMessage("\n".join(result.to_message() for result in results)))

    async def _events(self, message: ZeroMessage) -> AsyncGenerator[ZeroEvent, None]:
        """Post a message and yield the events of its answer as they arrive."""
        response = await self._post(message)
        normaliser = Normaliser()
        reader = AnswerReader(response.headers.get("content-type", ""), self._settings.stream_mode)
        self._open_requests += 1
        try:
            async for data in self._data(response):
                for value in reader.feed(data):
                    for event in self._convert(value, normaliser):
                        yield event
                if reader.ended:
                    break
            values = reader.finish()
            if reader.page:
                raise self._server.page_error(reader.page)
            for value in values:
                for event in self._convert(value, normaliser):
                    yield event
            for event in normaliser.finish():
                yield event
        except (asyncio.CancelledError, GeneratorExit):
            self._is_interrupted = True
            raise
        finally:
            self._open_requests -= 1
            response.close()

    async def _data(self, response: HttpResponse) -> AsyncIterator[bytes]:
        """Yield the body and report silence. Raises `BackendError` if it is too large or the silence too long."""
        size, silence = 0, self._make_silence()
        async with aclosing(response.iter_data(TICK_SECONDS)) as pieces:
            async for data in pieces:
                size += len(data)
                if size > MAX_DOCUMENT_BYTES:
                    raise BackendError(f"{self._server.address} sent an answer that is too large", code="malformed")
                if data:
                    yield data
                    silence.restart()
                else:
                    silence.check()

    def _make_silence(self) -> Silence:
        return Silence(self._settings.timeout, self._settings.keepalive, self._server.address, self._listener)

    # -- requests --------------------------------------------------------------------------------------------------

    async def _post(self, message: ZeroMessage) -> HttpResponse:
        """Post a message and return the response, whose head was read.

        If the route is missing, the other path is tried; if the conversation is, a prompt starts a new one. Raises
        `BackendError` for any other error status.
        """
        tried_other_path = False
        while True:
            response = await self._send(message)
            if response.status < 300:
                await self._log.catch_up(self._context_id)
                return response
            body = await response.read_rest(MAX_ERROR_BYTES, ERROR_BODY_SECONDS)
            text = error_text(body.decode("utf-8", "replace"), response.headers.get("content-type", "")).lower()
            if response.status == 404 and self._context_id and "context" in text:
                message = await self._begin_again(message)
            elif response.status in (404, 405) and not tried_other_path and self._server.use_other_prefix():
                tried_other_path = True
            else:
                raise self._server.error(response.status, body, response.headers)

    async def _send(self, message: ZeroMessage) -> HttpResponse:
        """Post a message and wait for the head of the response, which a blocking server sends at the end."""
        response = await self._server.send_message(self._body(message), self._accept())
        self._open_requests += 1
        silence = self._make_silence()
        try:
            while not await response.read_head(TICK_SECONDS):
                silence.check()
        except BaseException as error:
            self._is_interrupted = isinstance(error, asyncio.CancelledError)
            response.close()
            raise
        finally:
            self._open_requests -= 1
        return response

    def _body(self, message: ZeroMessage) -> dict[str, Any]:
        body: dict[str, Any] = {"message": message.text, "lifetime_hours": self._settings.lifetime_hours}
        if self._context_id:
            body["context_id"] = self._context_id
        else:  # the server accepts these only in a new conversation
            body |= {"project_name": self._project} if self._project else {}
            body |= {"agent_profile": self._profile} if self._profile else {}
        if message.attachments:
            body["attachments"] = msgspec.to_builtins(message.attachments)
        if self._settings.stream:
            body["stream"] = True
        return body

    def _accept(self) -> str:
        return "application/json" if self._settings.stream is False else _ACCEPT[self._settings.stream_mode]

    def _convert(self, value: Any, normaliser: Normaliser) -> list[ZeroEvent]:
        """Return the events of a value, and store the id of the conversation."""
        events = normaliser.events(value)
        if normaliser.context_id and normaliser.context_id != self._context_id:
            self._context_id = normaliser.context_id
            self._listener.on_conversation(self._context_id)
        return events

    async def _begin_again(self, message: ZeroMessage) -> ZeroMessage:
        """Return the message for a new conversation, because the server no longer has this one."""
        if message.for_new_conversation is None:
            self._forget("the conversation no longer exists on the server; your next prompt starts a new one")
            raise BackendError("the results of tools belong to a conversation that no longer exists", code="not_found")
        self._forget("the conversation no longer exists on the server, so a new one was started")
        return await message.for_new_conversation()

    def _forget(self, reason: str) -> None:
        self._context_id = ""
        self._log.forget()
        self._listener.on_conversation("")
        self._listener.on_notice(reason, is_warning=True)

    # -- control ---------------------------------------------------------------------------------------------------

    async def steer(self, message: ZeroMessage) -> bool:
        """Send a message into the running turn; the server answers both with the same text."""
        if not self._context_id or not self._open_requests:
            return False
        response = await self._server.send_message(self._body(message), self._accept())
        task = asyncio.ensure_future(_discard(response))
        self._steering.add(task)
        task.add_done_callback(self._steering.discard)
        return True

    async def stop(self) -> str:
        """Tell the agent to stop, as a message into its running turn; the API has no other way to only stop it."""
        await self._log.stop()
        if not self._is_interrupted:
            return ""
        if not self._context_id:
            return (
                "stopped waiting; Agent Zero goes on working on its server, because its API gives the id of a "
                "conversation only with the first answer"
            )
        response: HttpResponse | None = None
        try:
            async with asyncio.timeout(STOP_SECONDS):
                response = await self._server.send_message(self._body(ZeroMessage(STOP_TEXT)), "application/json")
                await response.read_head(STOP_SECONDS)
        except (BackendError, TimeoutError):
            if response is None:
                return (
                    "stopped waiting; Agent Zero did not receive the request to stop and may still work on its server"
                )
        finally:
            if response is not None:
                response.close()
        return "stopped waiting and told Agent Zero to stop; `/terminate` ends the conversation on the server"

    def options(self) -> tuple[SessionOption, ...]:
        values = {"agent_profile": self._profile, "project": self._project}
        return tuple(
            SessionOption(name, values[name], label, has_default=True) for name, label in COMMON_OPTIONS.items()
        )

    async def set_option(self, option_id: str, value: str) -> bool:
        """Set the profile or project. The server accepts them only in a new conversation."""
        if option_id not in COMMON_OPTIONS:
            return False
        if self._context_id:
            self._listener.on_notice(f"{option_id} is used from the next conversation on; /terminate ends this one")
        if option_id == "agent_profile":
            self._profile = value
        else:
            self._project = value
        return True

    def commands(self) -> tuple[SlashCommand, ...]:
        return tuple(SlashCommand(name, description) for name, (_, description) in _COMMANDS.items())

    async def run_command(self, name: str) -> str:
        route, _ = _COMMANDS[name]
        if not self._context_id:
            return "there is no conversation on the server yet"
        document = await self._server.call(route, {"context_id": self._context_id})
        if document.status >= 400 and document.status != 404:
            raise self._server.error(document.status, document.body, document.headers)
        self._log.forget()
        if name == TERMINATE or document.status == 404:
            self._context_id = ""
            self._listener.on_conversation("")
            return "ended the conversation on the server"
        return "deleted the messages of the conversation on the server"

    async def compact(self) -> str:
        return ""

    async def tokens(self) -> tuple[int, int]:
        return 0, 0

    async def aclose(self) -> None:
        await self._log.stop()
        for task in self._steering:
            task.cancel()
        await asyncio.gather(*self._steering, return_exceptions=True)
        await self._server.aclose()


async def _next_event(events: AsyncIterator[ZeroEvent]) -> ZeroEvent | None:
    return await anext(events, None)


async def _wait_for_event(reading: "asyncio.Task[ZeroEvent | None]", calls: list[asyncio.Task[ZeroToolResult]]) -> None:
    """Wait for the next event, or until all calls are done and the stream is silent."""
    running: set[asyncio.Task[Any]] = {call for call in calls if not call.done()}
    while running and not reading.done():
        await asyncio.wait({reading, *running}, return_when=asyncio.FIRST_COMPLETED)
        running = {call for call in running if not call.done()}
    await asyncio.wait({reading}, timeout=STALL_SECONDS if calls else None)


async def _discard(response: HttpResponse) -> None:
    """Read an answer that another request also gets."""
    with suppress(BackendError):
        await response.read_document(MAX_DOCUMENT_BYTES)
