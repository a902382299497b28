"""Handles the messages of a client after its `hello`."""

import logging

from ostler.core.errors import OstlerError, UsageError
from ostler.core.sessions import Compact, Rename, Revert, SetOption, Steer
from ostler.frontends.server.connection import ClientConnection
from ostler.frontends.server.hub import SessionHub
from ostler.frontends.server.manifest import ManifestError
from ostler.wire import client_frames as c
from ostler.wire.frames_shared import CloseCode, ErrorCode
from ostler.wire.server_frames import ChangeResult, ErrorMessage

log = logging.getLogger("ostler.server")
REFUSALS_UNTIL_CLOSE = 100


class FrameHandler:
    """The messages of one connection, handled one after the other."""

    def __init__(self, hub: SessionHub, connection: ClientConnection) -> None:
        self._hub = hub
        self._connection = connection
        self._refused = 0

    async def handle(self, frame: c.ClientFrame) -> ErrorMessage | None:
        """Handle a message. Return the error that was sent for it, if any."""
        error = self._check(frame)
        if error is None:
            try:
                error = await self._dispatch(frame)
            except OstlerError as failure:
                error = ErrorMessage(self._hub.id, str(failure), error_code(failure))
        if error:
            self._connection.send(error)
        return error

    def _check(self, frame: c.ClientFrame) -> ErrorMessage | None:
        session_id = getattr(frame, "session_id", "")
        if session_id and session_id != self._hub.id:
            return ErrorMessage(self._hub.id, "the message names another session", "wrong_session")
        if seconds := self._connection.messages.take():
            self._refused += 1
            error = ErrorMessage(self._hub.id, "too many messages", "rate_limited", round(seconds, 1))
            if self._refused > REFUSALS_UNTIL_CLOSE:
                self._connection.close(CloseCode.RATE_LIMITED, "too many messages")
            return error
        return None

    async def _dispatch(self, frame: c.ClientFrame) -> ErrorMessage | None:
        match frame:
            case c.Hello():
                return ErrorMessage(self._hub.id, "hello was sent already", "bad_message")
            case c.UserMessageFrame():
                return await self._receive(frame)
            case c.ToolResultMessage():
                return self._take_result(frame)
            case c.ManifestChange():
                return await self._change_manifest(frame)
            case c.ChangeRequest():
                return await self._change(frame)
            case c.ApprovalRequest() | c.ApprovalAnswer() | c.ApprovalResolved():
                return self._relay_approval(frame)
            case _:
                return await self._control(frame)

    async def _receive(self, frame: c.UserMessageFrame) -> ErrorMessage | None:
        answer = await self._hub.queue.receive(frame, self._connection.user)
        if isinstance(answer, ErrorMessage):
            return answer
        self._connection.send(answer)
        return None

    async def _control(self, frame: c.CancelMessage | c.ToolProgressMessage | c.QueueWithdraw) -> ErrorMessage | None:
        hub = self._hub
        match frame:
            case c.CancelMessage(_, turn_id):
                turn = hub.session.turn if hub.session else None
                if turn is not None and turn_id in ("", turn.id):
                    turn.cancel()
            case c.ToolProgressMessage() if self._connection is hub.host_connection:
                hub.tools.show_progress(frame)
            case c.QueueWithdraw(message_id) if not await hub.queue.withdraw(message_id):
                text = "this message does not wait"
                return ErrorMessage(hub.id, text, "unknown_message", client_message_id=message_id[:128])
            case _:
                pass
        return None

    def _take_result(self, result: c.ToolResultMessage) -> ErrorMessage | None:
        hub, call_id = self._hub, result.tool_call_id
        call = hub.link.open_calls.get(call_id)
        if call and (self._connection is not hub.host_connection or call.host.id != hub.link.info.id):
            return ErrorMessage(hub.id, "another client runs this call", "not_host", tool_call_id=call_id[:128])
        if hub.link.answer(result):
            return None
        known = hub.session is not None and hub.session.records().result_seq(call_id) is not None
        if known:
            return None
        return ErrorMessage(hub.id, "there is no open call with this id", "unknown_call", tool_call_id=call_id[:128])

    async def _change_manifest(self, frame: c.ManifestChange) -> ErrorMessage | None:
        hub = self._hub
        if self._connection is not hub.host_connection:
            return ErrorMessage(hub.id, "only the tool host changes its manifest", "not_host")
        try:
            await hub.change_manifest(frame.tool_manifest)
        except ManifestError as error:
            return ErrorMessage(hub.id, str(error), "bad_manifest")
        return None

    async def _change(self, frame: c.ChangeRequest) -> ErrorMessage | None:
        hub, change, request_id = self._hub, frame.change, frame.request_id[:128]
        if not isinstance(change, Steer | SetOption | Compact | Rename | Revert):
            return ErrorMessage(hub.id, "this change is not possible here", "bad_change", request_id=request_id)
        session = await hub.open_session()
        try:
            applied = await session.apply(change)
        except OstlerError as error:
            return ErrorMessage(hub.id, str(error), "bad_change", request_id=request_id)
        if applied and isinstance(change, SetOption):
            await hub.set_option(change.id, change.value)
        self._connection.send(ChangeResult(hub.id, request_id, applied))
        return None

    def _relay_approval(self, frame: c.ClientFrame) -> ErrorMessage | None:
        hub, from_host = self._hub, self._connection is self._hub.host_connection
        match frame:
            case c.ApprovalRequest() if from_host and len(hub.asks) < 100:
                request = c.ApprovalRequest(
                    frame.ask_id, hub.id, frame.permission, frame.question, frame.once_only, hub.link.info
                )
                hub.asks[frame.ask_id] = (self._connection, request)
                for connection in hub.connections:
                    if connection is not self._connection:
                        connection.send(request)
            case c.ApprovalResolved(ask_id) if from_host:
                hub.asks.pop(ask_id, None)
                hub.publish(c.ApprovalResolved(ask_id, hub.id, frame.decision, frame.reply))
            case c.ApprovalAnswer(ask_id) if ask_id in hub.asks:
                host, _ = hub.asks.pop(ask_id)
                host.send(c.ApprovalAnswer(ask_id, hub.id, frame.decision, frame.reply, self._connection.user))
            case c.ApprovalAnswer(ask_id) if hub.session and frame.reply and hub.session.answer(ask_id, frame.reply):
                return None
            case c.ApprovalAnswer(ask_id):
                return ErrorMessage(hub.id, "this request is not open", "unknown_ask", ask_id=ask_id[:128])
            case _:
                return ErrorMessage(hub.id, "only the tool host may send this", "not_host")
        return None


def error_code(error: OstlerError) -> ErrorCode:
    """Return the code of the protocol for a failure."""
    if error.fault.code in ("session_busy", "session_closed"):
        return "busy"
    return "bad_change" if isinstance(error, UsageError) else "model_unavailable"
