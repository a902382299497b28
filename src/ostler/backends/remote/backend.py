"""The remote backend: a session of an Ostler server, with the tools of this machine."""

import asyncio
import os
from contextlib import suppress

import msgspec

from ostler.backends.remote.approvals import HostRequests, OtherRequests
from ostler.backends.remote.host_calls import HostCalls
from ostler.backends.remote.log_position import LogPosition, show_missing
from ostler.backends.remote.plan import RemotePlan
from ostler.backends.remote.remote_info import RemoteInfo
from ostler.backends.remote.server import KnownCapabilities, RemoteServer
from ostler.backends.remote.session_choice import choose_session, follow_interrupted, new_message_id, restore_texts
from ostler.backends.remote.stream import ServerStream, TrafficLimit
from ostler.backends.remote.tool_role import ToolRole
from ostler.backends.remote.turns import FollowedTurn, OtherTurns, RemoteTurns
from ostler.backends.remote.waiting_messages import ChangeRequests, WaitingMessages
from ostler.core import events as e
from ostler.core.errors import BackendError, OstlerError
from ostler.core.prompt import Prompt, TextContent
from ostler.core.protocols import BackendContext, Session
from ostler.core.sessions import Revert, SessionChange, SessionInfo, SessionStart, SetQueue, TakeTools
from ostler.http.rate_limit import RateLimit
from ostler.text.sanitise import sanitise
from ostler.wire.client_frames import (
    ApprovalAnswer,
    ApprovalRequest,
    ApprovalResolved,
    CancelMessage,
    Hello,
    ManifestChange,
    QueueWithdraw,
    ToolResultMessage,
    UserMessageFrame,
)
from ostler.wire.frames import MARGIN, MAX_FRAME_BYTES, encode_frame
from ostler.wire.frames_shared import HostInfo, RemoteWorkspace
from ostler.wire.remote_events import CHANGES
from ostler.wire.server_frames import (
    ChangeResult,
    ErrorMessage,
    EventMessage,
    HostStatus,
    MessageAccepted,
    QueueChanged,
    Resync,
    ServerFrame,
    SessionCreated,
    ToolCallMessage,
    ToolCancel,
)

CANCEL_SECONDS = 8.0
REVERT_SECONDS = 5.0
NOTICES_PER_MINUTE = 60
_IN_TURN = (e.TextDelta, e.ThoughtDelta, e.MessageSnapshot, e.MessageDone, e.ToolCalled, e.ToolFinished)
_FATAL_ERRORS = ("model_unavailable", "busy", "internal", "bad_message", "empty_message", "queue_full", "too_large")


class RemoteBackend:
    """Sends prompts to the server, shows what its log says, and runs its calls under the policy of this session."""

    def __init__(self, plan: RemotePlan, server: RemoteServer) -> None:
        self._plan = plan
        self._server = server
        self._turns = RemoteTurns()
        self._capabilities = KnownCapabilities()
        self._workspace: RemoteWorkspace | None = None
        self._resumes = False
        self._model = plan.model
        self._reverted = asyncio.Event()
        self._traffic, self._notices = TrafficLimit(), RateLimit(NOTICES_PER_MINUTE)
        self._others, self._root = OtherTurns(), ""
        self._interrupted: FollowedTurn | None = None  # the turn of an earlier process, until the session follows it
        self.context: BackendContext
        self._position: LogPosition
        self._calls: HostCalls
        self._info: RemoteInfo
        self._role: ToolRole
        self._changes: ChangeRequests
        self._host_requests: HostRequests
        self._other_requests: OtherRequests
        self._waiting: WaitingMessages
        self._stream: ServerStream

    # -- backend ---------------------------------------------------------------------------------------------------

    async def open(self, start: SessionStart, context: BackendContext) -> SessionInfo:
        self.context, self._root = context, os.path.normpath(start.cwd)
        self._model = start.options.get("model", "") or self._model
        self._position = LogPosition(context, start.session_id)
        try:
            self._capabilities = await self._server.capabilities()
            session_id, self._model, self._resumes = await choose_session(
                self._server, self._plan, self._position, self._root, self._model
            )
            await restore_texts(self._server, self._plan, self._position)
            host = HostInfo(start.session_id, self._plan.host_name)  # only this session has the record of its calls
            self._role = ToolRole(self._plan, host, self._capabilities.session_tools, self._report)
            parts = (self._server.address, session_id, self._model, self._capabilities.model_names())
            self._info = RemoteInfo(*parts, self._role.describe, context.emit)
            self._workspace = self._plan.workspace()
            self._stream = stream = ServerStream(self._server, session_id, self, self._plan.delays)
            self._calls = HostCalls(
                context, session_id, self._send_as_host, self._role.tool_names, start.session_id, self._plan.checks
            )
            self._position.origin = self._calls.checks.origin
            self._interrupted = follow_interrupted(self._position, self._turns, self._calls)
            self._changes = ChangeRequests(session_id, stream.send)
            self._waiting = WaitingMessages(session_id, stream.send, self._make_message)
            self._host_requests = HostRequests(self._send_as_host, self._calls.ran_here)
            self._other_requests = OtherRequests(session_id, stream.send, context.ask, self._report)
            await stream.start()
        except BaseException:
            await self._server.aclose()
            raise
        return self._info.open()

    async def run_turn(self, prompt: Prompt | None) -> e.TurnEnded:
        turn, self._interrupted = self._interrupted, None
        if turn is None and prompt is None and self._turns.running is None:
            return e.TurnEnded("", "done")  # it ended while a turn of this side ran
        self._others.shown = 0
        self._calls.reset_limits()
        if prompt is not None:
            self._traffic.reset()
        stream = self._stream
        if turn is None:
            message = None if prompt is None else self._make_message(prompt)
            turn = self._turns.follow(message)
            if message and not stream.error:
                self._position.follow(message.client_message_id)
                self._sync_manifest()
                stream.send(message)
        if stream.error:
            turn.fail(stream.error)
        try:
            return await asyncio.shield(turn.ended)
        except asyncio.CancelledError:
            await self._cancel(turn)
            raise
        finally:
            self._turns.unfollow()
            if summary := self._calls.written.summary():
                self.context.emit(e.Notice("info", summary))
            self._calls.begin_turn()

    async def apply(self, change: SessionChange) -> bool:
        if CHANGES[type(change)] == "local":
            return False
        if isinstance(change, SetQueue):
            return await self._waiting.set(change.prompts, change.withdrawn)
        try:
            if isinstance(change, TakeTools):
                return await self._role.take_tools(self._stream)
            if isinstance(change, Revert):
                return await self._revert()
            return await self._changes.send(change)
        except OstlerError as error:
            self.context.emit(e.Notice("warning", str(error)))
            return False

    async def _revert(self) -> bool:
        """Revert the server's log to where the client's is now. Return whether that was possible."""
        seq = self._position.active_seq()
        self._position.save()  # the revert has removed the position from the records
        if seq is None:
            return False
        self._reverted.clear()
        applied = await self._changes.send(Revert(seq))
        if applied:
            with suppress(TimeoutError):  # then the position is saved later
                async with asyncio.timeout(REVERT_SECONDS):
                    await self._reverted.wait()
        return applied

    async def aclose(self) -> None:
        await self._calls.end_turn()
        self._other_requests.close()
        self._host_requests.close()
        await self._stream.aclose()
        await self._server.aclose()

    def share_requests(self, session: Session) -> None:
        """Tell the other clients of the session on the server about the open requests here; called after `open`."""
        self._host_requests.follow(session, others_may_answer=self._plan.others_may_answer)

    # -- listener of the stream ------------------------------------------------------------------------------------

    def make_hello(self) -> Hello:
        resume = self._position.resume_point if self._resumes else None
        options = {"model": self._model} if self._model and not self._resumes else {}
        return self._role.make_hello(self._root, resume, self._workspace, options)

    def on_connected(self, created: SessionCreated) -> None:
        if "events" not in created.features:
            raise BackendError("the server does not send events", code="version", hint="update the server")
        if not self._resumes:
            self._position.begin(created.session_id, created.epoch, created.seq)
            self._resumes = True
        self._role.on_connected(created)
        self._info.on_connected(created)
        turn = self._turns.followed
        if turn and turn.unsent:
            self._stream.send(turn.unsent)
        self._waiting.on_connected(resumed=created.resumed)
        self._other_requests.on_connected()
        self._host_requests.repeat()
        self._send_cancels()

    def on_host_taken(self) -> bool:
        self._calls.stop()
        return self._role.become_viewer()

    def on_disconnected(self, attempt: int, seconds: float, reason: str) -> None:
        self._changes.fail_all()
        self._info.on_disconnected()
        self.context.emit(e.Retrying(attempt, seconds, f"connection to {self._server.address.url}: {reason}"))

    def on_stopped(self, error: OstlerError) -> None:
        self._changes.fail_all()
        self._waiting.fail_all(error)
        self._info.on_stopped()
        self.context.emit(e.Notice("error", str(error)))
        if turn := self._turns.followed:
            turn.fail(error)

    def count_bytes(self, size: int) -> None:
        self._traffic.count(size)

    def on_message(self, frame: ServerFrame) -> None:
        match frame:
            case ToolCancel(tool_call_id=call_id):
                self._calls.cancel(call_id)
            case ChangeResult():
                self._changes.on_result(frame)
            case ErrorMessage():
                self._on_error(frame)
            case ApprovalRequest():
                self._other_requests.on_request(frame)
            case ApprovalAnswer():
                self._host_requests.answer(frame)
            case ApprovalResolved(ask_id):
                self._other_requests.on_resolved(ask_id)
            case HostStatus():
                self._role.on_status(frame)
                self._info.report()
            case QueueChanged(items=items) if queued := self._waiting.queue_at_start(items):
                self.context.emit(queued)

    async def handle_log(self, frame: ServerFrame) -> None:
        match frame:
            case EventMessage():
                event = self._position.take(frame)
                if event is not None:
                    await self._handle_event(event)
            case ToolCallMessage():
                await self._handle_call(frame)
            case Resync():
                self._resync(frame)
                if frame.snapshot.turn_id:
                    await self._follow_running()
            case MessageAccepted():
                self._on_accepted(frame)
            case _:
                pass  # `assistant.done` repeats what the event of the turn's end says

    # -- events ----------------------------------------------------------------------------------------------------

    async def _handle_event(self, event: e.Event) -> None:
        match event:
            case e.TurnStarted(turn_id, prompt):
                await self._on_turn_started(turn_id, prompt)
            case e.TurnEnded():
                await self._calls.end_turn()
                if event.turn_id == self._position.turn:
                    self._position.turn = ""
                self._position.save()
                await self._turns.on_ended(event)
            case e.Queued(_, prompts):
                self._on_queue({prompt.id for prompt in prompts})
                self._position.adopt(event, self._calls.ran_here)
            case e.InfoChanged(info):
                self._info.on_info(info)
            case e.Reverted():
                self._position.save()
                self._reverted.set()
            case e.Renamed(title):
                self._info.set_title(title)
            case _:
                await self._adopt(event)

    async def _adopt(self, event: e.Event) -> None:
        if isinstance(event, _IN_TURN):
            await self._follow_running()
        if isinstance(event, e.TextDelta | e.ThoughtDelta):
            self._traffic.count_delta(len(event.text))
        elif isinstance(event, e.MessageSnapshot | e.MessageDone):
            self._traffic.end_reply()
        if self._turns.is_given_up and (not event.persisted or isinstance(event, e.MessageDone | e.ToolCalled)):
            return  # the local turn has ended with what was shown until then
        if isinstance(event, e.ToolCalled):
            self._calls.announce(event.call)
        elif isinstance(event, e.MessageDone):
            for call in event.message.calls:
                self._calls.announce(call)
        self._position.adopt(event, self._calls.ran_here)

    async def _on_turn_started(self, turn_id: str, prompt: Prompt) -> None:
        self._calls.begin_turn()
        is_ours = self._turns.on_started(turn_id, prompt.id)
        if self._turns.is_given_up:
            self._send_cancels()
        elif self._turns.followed is None:
            is_own = self._waiting.on_started(prompt.id)
            who, origin = ("", "person") if is_own else (prompt.who, "far_side")
            await self._follow(msgspec.structs.replace(prompt, origin=origin, who=who, target=None, notes=()))
            self._position.follow(prompt.id, turn_id)
        elif is_ours:
            self._position.follow(prompt.id, turn_id)
        elif text := self._others.describe(prompt):
            self.context.emit(e.Notice("info", text, quotes=True))

    async def _follow_running(self) -> None:
        """Follow a turn of which this process has not seen the start."""
        if self._turns.followed is None and not self._turns.is_given_up:
            self._turns.running = self._turns.running or ""
            text = TextContent("(the turn that runs on the server)")
            await self._follow(Prompt(f"server-{os.urandom(6).hex()}", (text,), "far_side"))
            self._position.follow("", self._turns.running)

    async def _follow(self, prompt: Prompt) -> None:
        """Let the session follow the server's turn; what comes next in the log waits until it does."""
        await self._others.wait()
        if self._turns.followed is None:
            self.context.remote_turn_started(prompt)
        await self._turns.is_following.wait()

    def _on_accepted(self, accepted: MessageAccepted) -> None:
        self._waiting.on_accepted(accepted.client_message_id)
        turn = self._turns.on_accepted(accepted)
        if turn and accepted.status == "queued":
            self.context.emit(e.Notice("info", f"another turn runs; your message waits at place {accepted.position}"))
        elif turn and accepted.turn_id and accepted.status == "duplicate":
            self._position.follow(turn.message_id, accepted.turn_id)

    def _on_queue(self, waiting: set[str]) -> None:
        """End the local turn if its message was withdrawn; withdraw messages that were cancelled here."""
        for message_id in waiting & self._turns.cancelled_messages:
            self._stream.send(QueueWithdraw(message_id, self._position.session_id))
        if self._turns.on_queue(waiting):
            self.context.emit(e.Notice("info", "the message was withdrawn from the queue"))

    def _on_error(self, error: ErrorMessage) -> None:
        text = f"server: {sanitise(error.message)[:500]}"
        turn = self._turns.followed
        if error.request_id:
            self._changes.on_error(error.request_id, text)
        elif self._waiting.on_error(error.client_message_id, text, error.code):
            pass
        elif turn and turn.is_probe and turn.unsent and error.code == "empty_message":
            self.context.emit(e.Notice("warning", "the prompt did not reach the server before Ostler was ended"))
            turn.finish(e.TurnEnded("", "cancelled"))
        elif turn and turn.unsent and error.client_message_id in ("", turn.message_id):
            if error.code in _FATAL_ERRORS or error.client_message_id:
                turn.fail(BackendError(text, code=error.code))
        elif error.code not in ("turn_failed", "draining", "unknown_message", "unknown_call", "host_taken", "not_host"):
            self._report(e.Notice("warning", text))

    # -- calls -----------------------------------------------------------------------------------------------------

    async def _handle_call(self, call: ToolCallMessage) -> None:
        if call.host.id not in ("", self._role.me.id):
            return
        if self._turns.is_given_up:
            self._calls.start(call, "the turn was cancelled")
            return
        await self._follow_running()
        self._calls.start(call)
        self._sync_manifest()

    def _send_as_host(self, frame: ToolResultMessage | ApprovalRequest | ApprovalResolved) -> None:
        if not self._role.is_viewer:  # otherwise another machine runs the tools now, and these calls have ended
            self._stream.send(frame)

    def _sync_manifest(self) -> None:
        """Tell the server which tools there are now, if they changed."""
        if self._role.update_manifest():
            self._stream.send(ManifestChange(self._role.manifest.sent, self._position.session_id))

    # -- messages and turns ----------------------------------------------------------------------------------------

    def _make_message(self, prompt: Prompt, message_id: str = "") -> UserMessageFrame:
        is_plain = len(prompt.blocks) == 1 and isinstance(prompt.blocks[0], TextContent)
        message = UserMessageFrame(
            prompt.text,
            self._position.session_id,
            message_id or new_message_id(self.context.records()),
            blocks=() if is_plain else prompt.blocks,
            notes=tuple(self.context.unsent_notes()),
            trace_id=os.urandom(16).hex(),
        )
        if len(encode_frame(message)) > MAX_FRAME_BYTES - MARGIN:
            raise BackendError("the prompt is too large for the server", code="too_large", hint="attach less")
        return message

    async def _cancel(self, turn: FollowedTurn) -> None:
        """Stop the turn on the server. If it does not end soon, it is given up here and ended when that is possible."""
        self._turns.give_up(turn)
        self._send_cancels()
        stream = self._stream
        if turn.message is None and not turn.turn_id:
            stream.send(CancelMessage(self._position.session_id))
        if turn.unsent or stream.error:
            return
        if stream.is_connected:
            await asyncio.wait([turn.ended], timeout=CANCEL_SECONDS)
        if not turn.ended.done():
            text = "the server has not ended the turn; the request is repeated while this session is open"
            self.context.emit(e.Notice("warning", text))

    def _send_cancels(self) -> None:
        """Send what ends the turns and messages that were cancelled here; repeated after each connection."""
        for turn_id in self._turns.given_up:
            self._stream.send(CancelMessage(self._position.session_id, turn_id))
        for message_id in self._turns.cancelled_messages:
            self._stream.send(QueueWithdraw(message_id, self._position.session_id))

    def _resync(self, resync: Resync) -> None:
        """Show what the server has, because the log cannot be continued, and go on from there."""
        turn, snapshot = self._turns.followed, resync.snapshot
        was_read = bool(self._position.seq)
        self._position.begin(resync.session_id, resync.epoch, resync.seq)
        show_missing(resync, self.context, turn.message_id if turn else "", is_continued=was_read)
        self._turns.on_snapshot(snapshot)

    # -- internals -------------------------------------------------------------------------------------------------

    def _report(self, notice: e.Event) -> None:
        """Show what a server can cause at any time; too many of them are dropped."""
        if not self._notices.take():
            self.context.emit(notice)
