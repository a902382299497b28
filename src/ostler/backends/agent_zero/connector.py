"""The connector of newer servers: streamed events that can be resumed, and operations that run on this machine."""

import asyncio
import hashlib
import os
from contextlib import suppress
from typing import Any

import msgspec

from ostler.backends.agent_zero.connector_calls import OperationRunner
from ostler.backends.agent_zero.connector_server import LOGIN_HINT, ConnectorServer
from ostler.backends.agent_zero.connector_socket import ConnectorSocket
from ostler.backends.agent_zero.transport import TransportStart, TurnListener, ZeroMessage
from ostler.core.errors import BackendError, OstlerError
from ostler.core.sessions import SessionOption, SlashCommand
from ostler.wire.agent_zero.connector_events import (
    ANSWERS,
    PROTOCOL,
    ConnectorEvent,
    read_event,
    read_snapshot,
    unwrap,
)
from ostler.wire.agent_zero.loose_values import first_text
from ostler.wire.agent_zero.zero_events import ZeroEvent

TICK_SECONDS = 0.25
SNAPSHOT_SECONDS = 3.0
END_SECONDS = 5.0  # of silence after an answer, if the report of the end was lost with the connection
MAX_TURN_CHARACTERS = 64 * 1024 * 1024
MAX_ID_LENGTH = 200
_COMMANDS = {
    "reset": "delete the conversation's messages on the server",
    "terminate": "delete the conversation on the server; the next prompt starts a new one",
    "nudge": "let the agent go on after a stop",
    "compact": "let the server summarise the conversation",
    "tokens": "show how many tokens the conversation has",
}
_OPTIONS = {
    "agent_profile": ("agent_profile_set", "Agent Zero profile"),
    "project": ("projects", "Agent Zero project"),
    "model_preset": ("model_switcher", "Agent Zero model preset"),
}


class ConnectorSettings(msgspec.Struct, frozen=True):
    """Settings of the connector. `timeout` limits a silence and `max_wait` a turn; 0 means no limit."""

    host: str
    version: str = ""
    allow_shell: bool = False
    project: str = ""
    agent_profile: str = ""
    timeout: float = 0.0
    keepalive: float = 5.0
    max_wait: float = 0.0
    retry_delays: tuple[float, ...] = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0)


class ConnectorTransport:
    """A conversation over the connector."""

    name = "connector"
    requests_tools = False  # the server has tools of its own that run here

    def __init__(
        self, server: ConnectorServer, settings: ConnectorSettings, start: TransportStart, listener: TurnListener
    ) -> None:
        self._server = server
        self._settings = settings
        self._listener = listener
        self._context_id = start.context_id
        given = {"agent_profile": settings.agent_profile, "project": settings.project, "model_preset": ""}
        self._options = {name: start.options.get(name, value) for name, value in given.items()}
        self._socket: ConnectorSocket | None = None
        self._subscribed = False
        self._operations = OperationRunner(listener, self._emit, self._fail)
        self._seq = start.seq if start.context_id else -1
        self._changed, self._has_snapshot = asyncio.Event(), asyncio.Event()
        self._is_running = False
        self._begin_turn()
        self._is_running = False

    @property
    def context_id(self) -> str:
        return self._context_id

    @property
    def seq(self) -> int:
        return max(self._seq, 0)

    # -- turns -----------------------------------------------------------------------------------------------------

    async def run(self, message: ZeroMessage) -> None:
        await self._run(message)

    async def _run(self, message: ZeroMessage | None) -> None:
        """Send a message, or let the agent go on, and show what happens until the server reports the end."""
        self._begin_turn()
        try:
            async with asyncio.timeout(self._settings.max_wait or None):
                await self._connect()
                await self._open_conversation()
                self._is_running = True
                await self._send(message)
                await self._wait_for_end()
        except TimeoutError:
            raise BackendError(
                f"Agent Zero at {self._server.address} did not finish within {self._settings.max_wait:g} s",
                code="timeout",
                hint="it may go on working; raise connection.max_wait_seconds",
            ) from None
        except asyncio.CancelledError:
            self._is_interrupted = self._is_running
            raise
        finally:
            self._is_running = False
            await self._operations.stop()

    def _begin_turn(self) -> None:
        self._first_seq = self._seq  # events up to this one belong to earlier turns
        self._events: dict[int, ConnectorEvent] = {}
        self._characters = 0
        self._is_accepted = self._is_complete = self._is_interrupted = self._was_lost = False
        self._has_answer = False
        self._failure: OstlerError | None = None

    async def _send(self, message: ZeroMessage | None) -> None:
        assert self._socket is not None
        if message is None:
            await self._server.call("nudge", {"context_id": self._context_id})
        elif message.attachments:
            await self._server.call("message_send", self._body(message), seconds=60.0)
        else:
            if message.tree:
                await self._publish_tree(self._socket, message.tree)
            try:
                await self._socket.call("connector_send_message", self._body(message))
            except BackendError as error:
                if error.fault.code != "disconnected":
                    raise
                await self._find_sent_message(error)
        self._is_accepted = True

    async def _find_sent_message(self, error: BackendError) -> None:
        """Connect again and look whether the server got the message; it is never sent twice."""
        await self._reconnect()
        with suppress(TimeoutError):
            async with asyncio.timeout(SNAPSHOT_SECONDS):
                await self._has_snapshot.wait()
        if not self._events:
            hint = "the message may not have arrived; send it again if Agent Zero does not answer"
            raise BackendError(str(error), code="disconnected", hint=hint)

    async def _wait_for_end(self) -> None:
        silent = 0.0
        while not self._is_complete:
            self._changed.clear()
            try:
                async with asyncio.timeout(TICK_SECONDS):
                    await self._changed.wait()
                silent = 0.0
            except TimeoutError:
                silent = 0.0 if self._operations.is_busy else silent + TICK_SECONDS
            if self._failure is not None:
                raise self._failure
            if self._socket is None or self._socket.closed.is_set():
                await self._reconnect()
            elif self._was_lost and self._has_answer and silent >= END_SECONDS:
                return
            self._report_silence(silent)

    def _report_silence(self, seconds: float) -> None:
        if self._settings.timeout and seconds >= self._settings.timeout:
            raise BackendError(
                f"Agent Zero at {self._server.address} sent nothing for {self._settings.timeout:g} s",
                code="timeout",
                hint="it may go on working; raise connection.timeout_seconds, or set it to 0",
            )
        if seconds and self._settings.keepalive and seconds % self._settings.keepalive < TICK_SECONDS:
            self._listener.on_waiting(seconds)

    # -- connection ------------------------------------------------------------------------------------------------

    async def _connect(self) -> None:
        if self._socket is not None and not self._socket.closed.is_set():
            return
        if self._socket is not None:
            await self._socket.aclose()
        self._subscribed = False
        self._socket = await self._server.open_socket(self._on_event)
        hello = {
            "protocol": PROTOCOL,
            "client": "ostler",
            "client_version": self._settings.version,
            "host": self._settings.host,
            "remote_files": {"enabled": True, "write_enabled": True, "mode": "read_write"},
            "remote_exec": {"enabled": self._settings.allow_shell},
        }
        config = (await self._socket.call("connector_hello", hello)).get("exec_config")
        self._operations.exec_config = config if isinstance(config, dict) else {}

    async def _reconnect(self) -> None:
        """Connect again and continue after the last event. Raises `BackendError` after several attempts."""
        self._listener.on_notice("the connection to Agent Zero was lost; connecting again", is_warning=True)
        self._was_lost, problem = True, ""
        for delay in self._settings.retry_delays:
            await asyncio.sleep(delay)
            try:
                await self._connect()
                await self._subscribe()
            except BackendError as error:
                if error.fault.code == "auth":
                    raise
                problem = str(error)
                continue
            self._operations.send_waiting()
            return
        raise BackendError(
            f"the connection to Agent Zero at {self._server.address} was lost: {problem}",
            code="disconnected",
            hint="it may go on working; the next prompt continues the conversation",
        )

    async def _open_conversation(self) -> None:
        """Subscribe to the conversation, or to a new one; what happened before this turn is not shown."""
        if self._subscribed:
            return
        if self._context_id:
            try:
                await self._subscribe()
            except BackendError as error:
                if error.fault.code != "refused":
                    raise
                text = "the conversation no longer exists on the server, so a new one was started"
                self._listener.on_notice(text, is_warning=True)
            else:
                with suppress(TimeoutError):
                    async with asyncio.timeout(SNAPSHOT_SECONDS):
                        await self._has_snapshot.wait()
                self._begin_turn()
                return
        answer = await self._server.call("chat_create", {})
        context_id = first_text(answer, "context_id", "ctxid")
        if not context_id or len(context_id) > MAX_ID_LENGTH or not context_id.isprintable():
            raise BackendError("the server created a conversation without a valid id", code="protocol")
        self._context_id, self._seq = context_id, -1
        self._begin_turn()
        self._listener.on_conversation(context_id)
        for name, value in self._options.items():
            if value:
                await self._apply_option(name, value)
        await self._subscribe()

    async def _subscribe(self) -> None:
        assert self._socket is not None
        self._has_snapshot.clear()
        subscription = {"context_id": self._context_id, "from": self.seq, "from_seq": self.seq}
        await self._socket.call("connector_subscribe_context", subscription)
        self._subscribed = True

    async def _publish_tree(self, socket: ConnectorSocket, tree: str) -> None:
        """Send the file tree of the workspace description; a server that does not want it is not an error."""
        digest = hashlib.sha256(tree.encode("utf-8", "replace")).hexdigest()
        update = {"root_path": ".", "tree": tree, "tree_hash": digest, "source": "ostler", "host": self._settings.host}
        with suppress(BackendError):
            await socket.call("connector_remote_tree_update", update)

    def _body(self, message: ZeroMessage) -> dict[str, Any]:
        body: dict[str, Any] = {"context_id": self._context_id, "message": message.text}
        body["client_message_id"] = os.urandom(16).hex()
        if message.attachments:
            body["attachments"] = msgspec.to_builtins(message.attachments)
        return body

    def _emit(self, event: str, data: dict[str, Any]) -> None:
        if self._socket is None:
            raise BackendError("there is no connection", code="disconnected")
        self._socket.send(event, data)

    # -- events ----------------------------------------------------------------------------------------------------

    def _on_event(self, name: str, payload: Any) -> None:
        members = unwrap(payload)
        context_id = members.get("context_id")
        if name.startswith("connector_") and name.endswith("_op"):
            self._operations.start(name, members, self._refusal_reason(context_id))
        elif context_id != self._context_id:
            return
        elif name == "connector_context_snapshot":
            for past in read_snapshot(members):
                self._show(past)
            self._has_snapshot.set()
        elif name == "connector_context_event":
            if (event := read_event(members)) is not None:
                self._show(event)
        elif name == "connector_context_complete":
            self._is_complete = self._is_running and (self._is_accepted or bool(self._events))
        elif name == "connector_error":
            text = ": ".join(part for part in (first_text(members, "code"), first_text(members, "message")) if part)
            self._listener.on_event(ZeroEvent("other", text or "unknown error", "error"))
        self._changed.set()

    def _refusal_reason(self, context_id: Any) -> str:
        if context_id is not None and context_id != self._context_id:
            return f"{self._settings.host} works in another conversation"
        return "" if self._is_running else f"no prompt of the user runs on {self._settings.host}"

    def _show(self, event: ConnectorEvent) -> None:
        self._seq = max(self._seq, event.seq)
        known = self._events.get(event.seq)
        if not self._is_running or event.seq <= self._first_seq or known == event:
            return
        self._characters += len(event.text)
        if self._characters > MAX_TURN_CHARACTERS:
            self._fail(BackendError(f"{self._server.address} sent too much in one turn", code="malformed"))
            return
        self._events[event.seq] = event
        if event.kind not in ANSWERS:
            self._listener.on_log_item(event.log_item())
            return
        before = known.text if known else ""
        continues = bool(before) and event.text.startswith(before)
        text = event.text[len(before) :] if continues else event.text
        if text:
            separator = "\n\n" if self._has_answer and not continues else ""
            self._listener.on_event(ZeroEvent("piece", separator + text))
            self._has_answer = True

    def _fail(self, error: OstlerError) -> None:
        self._failure = self._failure or error
        self._changed.set()

    # -- control ---------------------------------------------------------------------------------------------------

    async def steer(self, message: ZeroMessage) -> bool:
        if not self._is_running or self._socket is None or not self._context_id:
            return False
        await self._socket.call("connector_send_message", self._body(message))
        return True

    async def stop(self) -> str:
        """Pause the agent; a later prompt or `/nudge` lets it go on."""
        if not self._is_interrupted or not self._context_id:
            return ""
        await self._server.call("pause", {"context_id": self._context_id, "paused": True})
        return "stopped waiting and paused Agent Zero; a prompt or `/nudge` lets it go on"

    def options(self) -> tuple[SessionOption, ...]:
        return tuple(
            SessionOption(name, self._options[name], label, has_default=True) for name, (_, label) in _OPTIONS.items()
        )

    async def set_option(self, option_id: str, value: str) -> bool:
        if option_id not in _OPTIONS:
            return False
        if self._context_id:
            await self._apply_option(option_id, value)
        self._options[option_id] = value
        return True

    async def _apply_option(self, name: str, value: str) -> None:
        body: dict[str, Any] = {"context_id": self._context_id}
        if name == "agent_profile":
            body["agent_profile"] = value
        elif name == "project":
            body |= {"action": "activate", "name": value} if value else {"action": "deactivate"}
        else:
            body |= {"action": "set_preset", "preset_name": value} if value else {"action": "clear"}
        await self._server.call(_OPTIONS[name][0], body)

    def commands(self) -> tuple[SlashCommand, ...]:
        return tuple(SlashCommand(name, description) for name, description in _COMMANDS.items())

    async def run_command(self, name: str, argument: str) -> str:
        if not self._context_id:
            return "there is no conversation on the server yet"
        body: dict[str, Any] = {"context_id": self._context_id}
        if name == "nudge":
            await self._run(None)
            return "Agent Zero went on and has finished"
        if name == "compact":
            await self._server.call(
                "compact_chat", {**body, "action": "compact", "use_chat_model": True}, seconds=120.0
            )
            return "the server summarises the conversation"
        if name == "tokens":
            answer = await self._server.call("token_status", body)
            shown = [f"{key}: {value}" for key, value in answer.items() if key != "ok" and isinstance(value, int | str)]
            return ", ".join(shown)[:500] or "the server reports no tokens"
        await self._server.call("chat_reset" if name == "reset" else "chat_delete", body)
        self._subscribed, self._seq = False, -1
        if name == "reset":
            return "deleted the messages of the conversation on the server"
        self._context_id = ""
        self._listener.on_conversation("")
        return "deleted the conversation on the server"

    async def aclose(self) -> None:
        await self._operations.stop()
        if self._socket is not None:
            await self._socket.aclose()
        await self._server.aclose()


async def probe_connector(
    server: ConnectorServer,
    settings: ConnectorSettings,
    start: TransportStart,
    listener: TurnListener,
    *,
    has_key: bool,
) -> ConnectorTransport | None:
    """Return the transport, or None if the server has no connector that can be used. Raises `BackendError`.

    Without a login, a server that needs one is used over the message API, if there is a key for that.
    """
    capabilities = await server.capabilities()
    problem = capabilities.problem if capabilities else ""
    if capabilities and not problem and capabilities.needs_login:
        if not server.has_login and not has_key:
            raise BackendError(f"Agent Zero at {server.address} needs a login", code="auth", hint=LOGIN_HINT)
        if server.has_login:
            await server.log_in()
        else:
            problem = f"it needs a login; {LOGIN_HINT}"
    if capabilities is None or problem:
        if problem:
            listener.on_notice(f"the connector of {server.address} is not used: {problem}")
        await server.aclose()
        return None
    return ConnectorTransport(server, settings, start, listener)
