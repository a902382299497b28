"""Handles the messages of a client after its `hello`."""

import logging
import math
from collections.abc import Mapping

import msgspec

from ostler.core.errors import OstlerError, UsageError
from ostler.core.sessions import Compact, Rename, Revert, SetOption, Steer
from ostler.frontends.server.connection import ClientConnection
from ostler.frontends.server.hub import SessionHub, check_options
from ostler.frontends.server.remote_tools import CHECK_FIRST
from ostler.wire import client_frames as c
from ostler.wire.frames import MARGIN, MAX_ID, FrameError, FrameHeader, ids_of
from ostler.wire.frames_shared import CloseCode, ErrorCode
from ostler.wire.manifest_rules import ManifestError
from ostler.wire.server_frames import ChangeResult, ErrorMessage

log = logging.getLogger("ostler.server")
REFUSALS_UNTIL_CLOSE = 100
RESULT_TYPE = c.ToolResultMessage.__struct_config__.tag
SENT_ON = (c.UserMessageFrame, c.ChangeRequest, c.ApprovalRequest, c.ApprovalAnswer, c.ApprovalResolved)
UNLIMITED = (c.ToolResultMessage, c.CancelMessage)  # without them a turn could neither go on nor be stopped


class FrameHandler:
    """The messages of one connection, handled one after the other."""

    def __init__(self, hub: SessionHub, connection: ClientConnection) -> None:
        self._hub = hub
        self._connection = connection
        self._refused = 0

    async def handle(self, frame: c.ClientFrame, size: int) -> ErrorMessage | None:
        """Handle a message of a size in bytes. Return the error that was sent for it, if any."""
        error = self._check(frame, size)
        if error is None:
            try:
                error = await self._dispatch(frame)
            except OstlerError as failure:
                error = ErrorMessage(self._hub.id, failure.fault.message, error_code(failure))
        return self._send_error(error, ids_of(frame)) if error else None

    def refuse(self, error: FrameError, header: FrameHeader) -> ErrorMessage:
        """Answer a message of a known type that has wrong fields. A call gets no better result than this one."""
        ids = ids_of(header)
        refusal = self._check_rate()
        if header.type == RESULT_TYPE and isinstance(header.tool_call_id, str):
            text = f"The outcome is unknown: the result of the client is not valid: {str(error)[:500]}. {CHECK_FIRST}"
            refusal = self._take_result(c.ToolResultMessage(header.tool_call_id, text, status="unknown"))
        return self._send_error(refusal or ErrorMessage(self._hub.id, str(error)[:500], error.code), ids)

    def _send_error(self, error: ErrorMessage, ids: Mapping[str, str]) -> ErrorMessage:
        error = msgspec.structs.replace(error, **ids)
        self._connection.send(error)
        return error

    def _check(self, frame: c.ClientFrame, size: int) -> ErrorMessage | None:
        session_id = getattr(frame, "session_id", "")
        if session_id and session_id != self._hub.id:
            return ErrorMessage(self._hub.id, "the message names another session", "wrong_session")
        limit = self._hub.config.max_frame - MARGIN
        if size > limit and isinstance(frame, SENT_ON):
            return ErrorMessage(self._hub.id, f"the message has more than {limit} bytes", "too_large")
        return None if isinstance(frame, UNLIMITED) else self._check_rate()

    def _check_rate(self) -> ErrorMessage | None:
        """Return an error if there are too many messages; far too many end the connection."""
        limit = self._hub.messages
        if not (seconds := limit.take()):
            return None
        self._refused += 1
        text = f"more than {limit.per_minute:g} messages per minute; wait {math.ceil(seconds)} seconds"
        if self._refused > REFUSALS_UNTIL_CLOSE:
            self._connection.close(CloseCode.RATE_LIMITED, "too many messages")
        return ErrorMessage(self._hub.id, text, "rate_limited", round(seconds, 1))

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
        self._connection.send_in_order(lambda seq: answer)  # what the log says about the message comes first
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
                return ErrorMessage(hub.id, "this message does not wait", "unknown_message")
            case _:
                pass
        return None

    def _take_result(self, result: c.ToolResultMessage) -> ErrorMessage | None:
        hub, call_id = self._hub, result.tool_call_id
        call = hub.link.open_calls.get(call_id)
        if call and (self._connection is not hub.host_connection or call.host.id != hub.link.info.id):
            return ErrorMessage(hub.id, "another client runs this call", "not_host")
        if hub.link.answer(result):
            return None
        if hub.link.is_closed(call_id) or (hub.session and hub.session.records().result_seq(call_id) is not None):
            return None
        return self._check_rate() or ErrorMessage(hub.id, "there is no open call with this id", "unknown_call")

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
        hub, change = self._hub, frame.change
        if not isinstance(change, Steer | SetOption | Compact | Rename | Revert):
            return ErrorMessage(hub.id, "this change is not possible here", "bad_change")
        session = await hub.open_session()
        try:
            check_options((change.id,) if isinstance(change, SetOption) else ())
            applied = await session.apply(change)
        except OstlerError as error:
            return ErrorMessage(hub.id, error.fault.message, "bad_change")
        if applied and isinstance(change, SetOption):
            await hub.set_option(change.id, change.value)
        self._connection.send(ChangeResult(hub.id, frame.request_id[:MAX_ID], applied))
        return None

    def _relay_approval(self, frame: c.ClientFrame) -> ErrorMessage | None:
        hub, from_host = self._hub, self._connection is self._hub.host_connection
        match frame:
            case c.ApprovalRequest() if from_host and len(hub.asks) < 100:
                request = msgspec.structs.replace(frame, session_id=hub.id, host=hub.link.info)
                hub.asks[frame.ask_id] = (self._connection, request)
                for connection in hub.connections:
                    if connection is not self._connection:
                        connection.send(request)
            case c.ApprovalResolved(ask_id) if from_host:
                hub.asks.pop(ask_id, None)
                hub.publish(c.ApprovalResolved(ask_id, hub.id, frame.decision, frame.reply))
            case c.ApprovalAnswer(ask_id) if ask_id in hub.asks and hub.asks[ask_id][1].only_at_host:
                return ErrorMessage(hub.id, "this request is answered on the machine that runs the tools", "forbidden")
            case c.ApprovalAnswer(ask_id) if ask_id in hub.asks:
                host, _ = hub.asks.pop(ask_id)
                host.send(c.ApprovalAnswer(ask_id, hub.id, frame.decision, frame.reply, self._connection.user))
            case c.ApprovalAnswer(ask_id) if hub.session and frame.reply and hub.session.answer(ask_id, frame.reply):
                return None
            case c.ApprovalAnswer():
                return ErrorMessage(hub.id, "this request is not open", "unknown_ask")
            case _:
                return ErrorMessage(hub.id, "only the tool host may send this", "not_host")
        return None


def error_code(error: OstlerError) -> ErrorCode:
    """Return the code of the protocol for a failure."""
    if error.fault.code in ("session_busy", "session_closed"):
        return "busy"
    return "bad_change" if isinstance(error, UsageError) else "model_unavailable"
