"""The connector of newer servers: streamed events that can be resumed, and operations that run on this machine."""

import asyncio
import hashlib
import os
from contextlib import suppress
from typing import Any

import msgspec

from ostler.backends.agent_zero.connector_calls import OperationRunner
from ostler.backends.agent_zero.connector_controls import COMPACT, NUDGE, ConnectorControls
from ostler.backends.agent_zero.connector_hosts import HostWatch, check_hosts, offer_notices
from ostler.backends.agent_zero.connector_server import ConnectorServer, ConnectorSettings
from ostler.backends.agent_zero.connector_socket import ConnectorSocket
from ostler.backends.agent_zero.connector_turn import ConnectorTurn
from ostler.backends.agent_zero.transport import (
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
from ostler.wire.agent_zero.connector_events import (
    PROTOCOL,
    Capabilities,
    read_event,
    read_position,
    read_snapshot,
    unwrap,
)
from ostler.wire.agent_zero.loose_values import first_text
from ostler.wire.agent_zero.zero_events import ZeroEvent

SNAPSHOT_SECONDS = 3.0
IDLE_SECONDS = 5.0  # of silence, before the server is asked whether it still works, if the end may have been missed
MAX_POST_SECONDS = 86_400.0
MAX_ID_LENGTH = 200
AGENT_ERROR = "AGENT_ERROR"
_HOST_MEMBERS = ("host", "host_id", "target_host")  # of operations; the known servers send none of them


class ConnectorTransport:
    """A conversation over the connector."""

    requests_tools = False  # the server has tools of its own that run here

    def __init__(
        self,
        server: ConnectorServer,
        settings: ConnectorSettings,
        start: TransportStart,
        listener: TurnListener,
        capabilities: Capabilities,
    ) -> None:
        self._server = server
        self._settings = settings
        self._listener = listener
        self._capabilities = capabilities
        self._context_id = start.context_id
        given = {"agent_profile": settings.agent_profile, "project": settings.project}
        self._controls = ConnectorControls(server, listener, capabilities.features, given | dict(start.options))
        self._socket: ConnectorSocket | None = None
        self._subscribed = self._is_greeted = self._is_announced = False
        self._operations = OperationRunner(settings.host, listener, self._emit, self._fail)
        self._seq = start.seq if start.context_id else -1
        self._changed, self._has_snapshot = asyncio.Event(), asyncio.Event()
        self._is_running = self._is_interrupted = False
        self._operation_count = 0
        self._is_new = False  # the turn has begun a conversation
        self._turn = ConnectorTurn(self._seq, listener)
        self._hosts = HostWatch(settings.host)
        self._posting: asyncio.Task[dict[str, Any]] | None = None

    @property
    def context_id(self) -> str:
        return self._context_id

    @property
    def seq(self) -> int:
        return max(self._seq, 0)

    async def load_choices(self) -> None:
        await self._controls.load_choices()

    # -- turns -----------------------------------------------------------------------------------------------------

    async def run(self, message: ZeroMessage | None) -> None:
        """Send a message, or let the agent go on, and show what happens until the server reports the end."""
        self._begin_turn()
        self._is_interrupted, self._operation_count = False, 0
        try:
            async with limit_time(self._settings.max_wait, self._server.address):
                await self._connect()
                is_known = bool(self._context_id)
                await self._open_conversation()
                if is_known and self._is_new and message is not None and message.for_new_conversation is not None:
                    message = await message.for_new_conversation()
                self._is_running = True
                await self._send(message)
                await self._wait_for_end()
        except asyncio.CancelledError:
            self._is_interrupted = self._is_running
            raise
        finally:
            self._is_running = False
            await self._stop_posting()
            await self._operations.stop()

    def _begin_turn(self) -> None:
        self._turn = ConnectorTurn(self._seq, self._listener)
        self._hosts = HostWatch(self._settings.host)

    async def _send(self, message: ZeroMessage | None) -> None:
        assert self._socket is not None
        if message is None:
            self._turn.may_lack_end = True
            await self._server.call("nudge", {"context_id": self._context_id})
        elif message.attachments:  # the route answers at the end of the turn
            post = self._server.call("message_send", self._body(message), seconds=MAX_POST_SECONDS)
            self._posting = asyncio.ensure_future(post)
            self._posting.add_done_callback(lambda _: self._changed.set())
        else:
            if message.tree:
                await self._publish_tree(self._socket, message.tree)
            try:
                await self._socket.call("connector_send_message", self._body(message))
            except BackendError as error:
                if error.fault.code not in ("disconnected", "timeout"):
                    raise
                await self._find_sent_message(message.text, error)

    async def _find_sent_message(self, text: str, error: BackendError) -> None:
        """Connect again and look whether the server got the message; it is never sent twice."""
        await self._reconnect()
        with suppress(TimeoutError):
            async with asyncio.timeout(SNAPSHOT_SECONDS):
                while not self._turn.has_message(text):
                    self._changed.clear()
                    await self._changed.wait()
        if not self._turn.has_message(text):
            hint = "the message may not have arrived; send it again if Agent Zero does not answer"
            raise BackendError(str(error), code="disconnected", hint=hint)

    async def _wait_for_end(self) -> None:
        settings, idle_at = self._settings, IDLE_SECONDS
        silence = Silence(settings.timeout, settings.keepalive, self._server.address, self._listener)
        while not self._turn.is_over:
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(TICK_SECONDS):
                    await self._changed.wait()
            if self._changed.is_set() or self._operations.is_busy:
                silence.restart()
                idle_at = IDLE_SECONDS
            self._take_posted_answer()
            if self._turn.failure is not None:
                raise self._turn.failure
            if self._socket is None or self._socket.closed.is_set():
                await self._reconnect()
                silence.restart()
            elif self._turn.may_lack_end and silence.seconds >= idle_at:
                if await self._is_idle():
                    break
                idle_at = silence.seconds + IDLE_SECONDS
            silence.check()
        self._turn.finish()
        if self._turn.is_empty and not self._operation_count:
            raise BackendError(f"Agent Zero at {self._server.address} ended the turn without an answer", code="empty")

    def _take_posted_answer(self) -> None:
        """Use the answer to a message that was posted. If it was lost, the events still show what happens."""
        if self._posting is None or not self._posting.done():
            return
        posting, self._posting = self._posting, None
        try:
            self._turn.end(posting.result())
        except BackendError as error:
            if error.fault.code in ("http", "auth", "not_found"):
                self._turn.fail(error)
            self._turn.may_lack_end = True

    async def _stop_posting(self) -> None:
        if self._posting is not None:
            posting, self._posting = self._posting, None
            posting.cancel()
            await asyncio.gather(posting, return_exceptions=True)

    async def _is_idle(self) -> bool:
        """Ask the server whether the agent has stopped; without an answer, that it has answered must do."""
        try:
            chats = (await self._server.call("chats_list", {})).get("contexts")
        except BackendError:
            return False
        for chat in chats if isinstance(chats, list) else ():
            if isinstance(chat, dict) and self._context_id in (chat.get("id"), chat.get("context_id")):
                return chat["running"] is False if "running" in chat else self._turn.has_answer
        return self._turn.has_answer

    # -- connection ------------------------------------------------------------------------------------------------

    async def open_socket(self) -> ConnectorSocket:
        """Open the connection, if it is not open. Raises `BackendError`."""
        if self._socket is None or self._socket.closed.is_set():
            if self._socket is not None:
                await self._socket.aclose()
            self._subscribed = self._is_greeted = False
            self._socket = await self._server.open_socket(self._on_event)
        return self._socket

    async def _connect(self) -> None:
        socket = await self.open_socket()
        if self._is_greeted:
            return
        hello = {
            "protocol": PROTOCOL,
            "client": "ostler",
            "client_version": self._settings.version,
            "host": self._settings.host,
            "remote_files": {"enabled": True, "write_enabled": True, "mode": "read_write"},
            "remote_exec": {"enabled": self._settings.allow_shell},
        }
        answer = await socket.call("connector_hello", hello)
        config = answer.get("exec_config")
        self._operations.exec_config = config if isinstance(config, dict) else {}
        if not self._is_announced:
            if "launcher_gateway" in self._capabilities.features:
                settings = self._settings
                await check_hosts(
                    self._server, self._listener, settings.host, settings.other_hosts, settings.allow_shell
                )
            for text, is_warning in offer_notices(self._capabilities, answer, self._settings.host, self._expected()):
                self._listener.on_notice(text, is_warning=is_warning)
            self._is_announced = True
        self._is_greeted = True

    def _expected(self) -> dict[str, bool]:
        """Return what the server should believe that this machine offers."""
        return {"remote_files": True, "remote_file_writes": True, "remote_exec": self._settings.allow_shell}

    async def _reconnect(self) -> None:
        """Connect again and continue after the last event. Raises `BackendError` after several attempts."""
        self._listener.on_notice("the connection to Agent Zero was lost; connecting again", is_warning=True)
        self._turn.may_lack_end, problem = True, ""
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
        self._is_new = False
        if self._subscribed:
            return
        if self._context_id:
            try:
                await self._subscribe(history="tail")
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
        self._context_id, self._seq, self._is_new = context_id, -1, True
        self._begin_turn()
        self._listener.on_conversation(context_id)
        await self._controls.apply_all(context_id)
        await self._subscribe()

    async def _subscribe(self, **more: str) -> None:
        """Subscribe to the events after the last one. The server counts changes, of which there are at least as many
        as events, so that nothing is missed; what is known is not shown again.
        """
        assert self._socket is not None
        self._has_snapshot.clear()
        subscription: dict[str, Any] = {"context_id": self._context_id, "from": self.seq, "from_seq": self.seq, **more}
        answer = await self._socket.call("connector_subscribe_context", subscription)
        if read_position(answer) < subscription["from"]:  # the log has begun again with small numbers
            self._seq = 0
            self._turn.forget_events()
            await self._socket.call("connector_subscribe_context", subscription | {"from": 0, "from_seq": 0})
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
        self._hosts.on_result(event, data)

    # -- events ----------------------------------------------------------------------------------------------------

    def _on_event(self, name: str, payload: Any) -> None:
        members = unwrap(payload)
        context_id = members.get("context_id")
        if name.startswith("connector_") and name.endswith("_op"):
            self._start_operation(name, members)
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
            if self._is_running:
                self._turn.end(members)
        elif name == "connector_error":
            code, text = first_text(members, "code"), first_text(members, "message")
            if code != AGENT_ERROR:  # the report of the end has it too
                text = ": ".join(part for part in (code, text) if part) or "unknown error"
                self._listener.on_event(ZeroEvent("other", text, "error"))
        self._changed.set()

    def _show(self, event: Any) -> None:
        self._seq = max(self._seq, event.seq)
        if not self._is_running or not self._turn.add(event):
            return
        if warning := self._hosts.on_event(event):
            self._listener.on_notice(warning, is_warning=True)
        if not self._hosts.is_local(event):
            self._turn.show(event)

    def _refusal_reason(self, members: dict[str, Any]) -> str:
        """Return why an operation must not run here, or an empty text. Servers need not name the conversation."""
        context_id = members.get("context_id")
        if context_id is not None and context_id != self._context_id:
            return f"{self._settings.host} works in another conversation"
        named = [members[name] for name in _HOST_MEMBERS if members.get(name)]
        if any(name != self._settings.host for name in named):
            return f"this machine is {self._settings.host}, and the operation names another one"
        return "" if self._is_running else f"no prompt of the user runs on {self._settings.host}"

    def _start_operation(self, name: str, members: dict[str, Any]) -> None:
        problem = self._refusal_reason(members)
        if not problem:
            self._hosts.on_operation(name)
            self._count_operation()
        self._operations.start(name, members, problem)

    def _count_operation(self) -> None:
        self._operation_count += 1
        limit = self._settings.max_operations
        if self._operation_count > limit:
            text = f"Agent Zero requested more than {limit} operations in this turn"
            self._fail(BackendError(text, code=STEP_LIMIT, hint="send another prompt to let it go on"))

    def _fail(self, error: BaseException) -> None:
        self._turn.fail(error)
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
        if not self._controls.has("pause"):
            return "stopped waiting; Agent Zero goes on working on its server, which cannot pause it"
        await self._server.call("pause", {"context_id": self._context_id, "paused": True})
        return "stopped waiting and paused Agent Zero; a prompt or `/nudge` lets it go on"

    def options(self) -> tuple[SessionOption, ...]:
        return self._controls.options()

    async def set_option(self, option_id: str, value: str) -> bool:
        return await self._controls.set_option(option_id, value, self._context_id)

    def commands(self) -> tuple[SlashCommand, ...]:
        return self._controls.commands()

    async def run_command(self, name: str) -> str:
        if not self._context_id:
            return "there is no conversation on the server yet"
        if name == NUDGE:
            await self.run(None)
            return "Agent Zero went on and has finished"
        message = await self._controls.run(name, self._context_id)
        if name in ("reset", "terminate"):
            self._subscribed, self._seq = False, -1
        if name == "terminate":
            self._context_id = ""
            self._listener.on_conversation("")
        return message

    async def compact(self) -> str:
        return await self.run_command(COMPACT)

    async def tokens(self) -> tuple[int, int]:
        if not self._context_id or not self._controls.has("token_status"):
            return 0, 0
        return await self._controls.tokens(self._context_id)

    async def aclose(self) -> None:
        await self._operations.stop()
        if self._socket is not None:
            await self._socket.aclose()
        await self._server.aclose()
