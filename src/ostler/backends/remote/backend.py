"""The remote backend: a session of an Ostler server, with the tools of this machine."""

import asyncio
import os
from contextlib import suppress

import msgspec

from ostler.backends.remote.host_calls import HostCalls
from ostler.backends.remote.log_position import LogPosition
from ostler.backends.remote.manifest import make_manifest
from ostler.backends.remote.message_ids import conversation_texts, new_message_id
from ostler.backends.remote.plan import RemotePlan
from ostler.backends.remote.questions import ServerQuestions
from ostler.backends.remote.requests import ChangeRequests
from ostler.backends.remote.server import KnownCapabilities, RemoteServer
from ostler.backends.remote.snapshot_view import show_missing
from ostler.backends.remote.stream import ProtocolViolation, ServerStream
from ostler.backends.remote.turns import FollowedTurn, RemoteTurns
from ostler.core import events as e
from ostler.core.errors import BackendError, OstlerError
from ostler.core.prompt import Prompt, TextContent
from ostler.core.protocols import BackendContext
from ostler.core.sessions import OptionChoice, Revert, SessionChange, SessionInfo, SessionOption, SessionStart
from ostler.text.sanitise import sanitise
from ostler.wire.client_frames import (
    ApprovalRequest,
    ApprovalResolved,
    CancelMessage,
    Hello,
    ManifestChange,
    QueueWithdraw,
    UserMessageFrame,
)
from ostler.wire.frames import MAX_FRAME_BYTES, encode_frame
from ostler.wire.frames_shared import PROTOCOL_VERSION, RemoteWorkspace, ToolManifest
from ostler.wire.remote_events import CHANGES
from ostler.wire.server_frames import (
    ChangeResult,
    ErrorMessage,
    EventMessage,
    HostStatus,
    MessageAccepted,
    Resync,
    ServerFrame,
    SessionCreated,
    ToolCallMessage,
    ToolCancel,
)

NAME = "remote"
FEATURES = ("events", "queue", "approvals", "host", "manifest", "tool.cancel", "changes")
CANCEL_SECONDS = 8.0
REVERT_SECONDS = 5.0
MAX_QUOTED = 200
MAX_TURN_BYTES = 256 * 1024 * 1024
_OPTIONS = ("model", "thinking")
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
        self._options: tuple[SessionOption, ...] = ()
        self._title = ""
        self._sent_manifest = ToolManifest(())
        self._reverted = asyncio.Event()
        self._turn_bytes = 0
        self._root = ""
        self.context: BackendContext
        self._position: LogPosition
        self._calls: HostCalls
        self._changes: ChangeRequests
        self._questions: ServerQuestions
        self._stream: ServerStream | None = None

    # -- backend ---------------------------------------------------------------------------------------------------

    async def open(self, start: SessionStart, context: BackendContext) -> SessionInfo:
        self.context, self._root = context, os.path.normpath(start.cwd)
        self._model = start.options.get("model", "") or self._model
        self._position = LogPosition(context, start.session_id)
        try:
            self._capabilities = await self._server.capabilities()
            session_id = await self._choose_session()
            await self._restore_texts()
            self._options = self._initial_options()
            self._workspace = self._plan.workspace()
            stream = ServerStream(self._server, session_id, self, self._plan.delays)
            self._stream = stream
            self._calls = HostCalls(
                context, session_id, stream.send, self._tool_names, start.session_id, self._plan.checks
            )
            self._position.origin = self._calls.checks.origin
            self._changes = ChangeRequests(session_id, stream.send)
            self._questions = ServerQuestions(session_id, stream.send, context.ask)
            await stream.start()
        except BaseException:
            await self._server.aclose()
            raise
        return self._info()

    async def run_turn(self, prompt: Prompt | None) -> e.TurnEnded:
        if prompt is None and self._turns.running is None:
            return e.TurnEnded("", "done")  # it ended while a turn of this side ran
        message = None if prompt is None else self._make_message(prompt)
        turn = self._turns.follow(message)
        stream = self._require_stream()
        if stream.error:
            turn.fail(stream.error)
        elif message:
            self._sync_manifest()
            stream.send(message)
        try:
            return await turn.ended
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
        try:
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
        self._questions.close()
        await self._require_stream().aclose()
        await self._server.aclose()

    # -- listener of the stream ------------------------------------------------------------------------------------

    def make_hello(self) -> Hello:
        self._sent_manifest = self._manifest()
        return Hello(
            self._plan.version,
            self._sent_manifest,
            self._root,
            PROTOCOL_VERSION,
            FEATURES,
            self._position.resume_point if self._resumes else None,
            self._plan.host,
            self._plan.take_host,
            self._workspace,
            {"model": self._model} if self._model and not self._resumes else {},
        )

    def on_connected(self, created: SessionCreated) -> None:
        if "events" not in created.features:
            raise BackendError("the server does not send events", code="version", hint="update the server")
        if not self._resumes:
            self._position.begin(created.session_id, created.epoch, created.seq)
            self._resumes = True
        turn = self._turns.followed
        if turn and turn.unsent and self._stream:
            self._stream.send(turn.unsent)
        self._send_cancels()

    def on_disconnected(self, attempt: int, seconds: float, reason: str) -> None:
        self._changes.fail_all()
        self.context.emit(e.Retrying(attempt, seconds, f"connection to {self._server.address.url}: {reason}"))

    def on_stopped(self, error: OstlerError) -> None:
        self._changes.fail_all()
        self.context.emit(e.Notice("error", str(error)))
        if turn := self._turns.followed:
            turn.fail(error)

    def on_message(self, frame: ServerFrame) -> None:
        turn = self._turns.followed
        match frame:
            case MessageAccepted(client_message_id=message_id, status=status):
                if turn and turn.message_id == message_id:
                    turn.is_accepted = True
                    if status == "queued":
                        text = f"the server runs another turn; your message waits at place {frame.position}"
                        self.context.emit(e.Notice("info", text))
            case ToolCancel(tool_call_id=call_id):
                self._calls.cancel(call_id)
            case ChangeResult():
                self._changes.on_result(frame)
            case ErrorMessage():
                self._on_error(frame)
            case ApprovalRequest() if frame.question is not None:
                self._questions.start(frame.ask_id, frame.question)
            case ApprovalResolved():
                self._questions.withdraw(frame.ask_id)
            case HostStatus(host=host, connected=False) if host.id != self._plan.host.id:
                name = sanitise(host.name or host.id)[:100]
                self.context.emit(e.Notice("warning", f"{name} runs the tools of this session and is not connected"))
            case _:
                pass

    async def handle_log(self, frame: ServerFrame) -> None:
        match frame:
            case EventMessage():
                self._count_bytes(len(frame.event))
                event = self._position.take(frame)
                if event is not None:
                    await self._handle_event(event)
            case ToolCallMessage():
                await self._handle_call(frame)
            case Resync():
                self._resync(frame)
            case _:
                pass  # `assistant.done` repeats what the event of the turn's end says

    # -- events ----------------------------------------------------------------------------------------------------

    async def _handle_event(self, event: e.Event) -> None:
        match event:
            case e.TurnStarted(turn_id, prompt):
                await self._on_turn_started(turn_id, prompt)
            case e.TurnEnded():
                await self._calls.end_turn()
                self._position.save()
                await self._turns.on_ended(event)
            case e.Queued(_, prompts):
                self._on_queue({prompt.id for prompt in prompts})
            case e.InfoChanged(info):
                self._on_info(info)
            case e.Reverted():
                self._position.save()
                self._reverted.set()
            case e.Renamed(title):
                if title and title != self._title:
                    self._title = title
                    self.context.emit(e.Renamed(title))
            case _:
                await self._adopt(event)

    async def _adopt(self, event: e.Event) -> None:
        if isinstance(event, _IN_TURN):
            await self._follow_running()
        if self._turns.is_given_up and not event.persisted:
            return
        if isinstance(event, e.ToolCalled):
            self._calls.announce(event.call)
        elif isinstance(event, e.MessageDone):
            for call in event.message.calls:
                self._calls.announce(call)
        self._position.adopt(event, self._calls.ran_here)

    def _count_bytes(self, size: int) -> None:
        """Stop with a server whose log has no end: what it sends is stored and shown here."""
        self._turn_bytes += size
        if self._turn_bytes > MAX_TURN_BYTES:
            raise ProtocolViolation(f"the server sent more than {MAX_TURN_BYTES >> 20} MiB of events in one turn")

    async def _on_turn_started(self, turn_id: str, prompt: Prompt) -> None:
        self._turn_bytes = 0
        self._calls.begin_turn()
        is_ours = self._turns.on_started(turn_id, prompt.id)
        if self._turns.is_given_up:
            self._send_cancels()
        elif self._turns.followed is None:
            await self._follow(msgspec.structs.replace(prompt, origin="far_side", target=None))
        elif not is_ours:
            who = sanitise(prompt.who)[:100] or "another client"
            self.context.emit(e.Notice("info", f"{who} asked: {prompt.text[:MAX_QUOTED]}"))

    async def _follow_running(self) -> None:
        """Follow a turn of which this process has not seen the start."""
        if self._turns.followed is None and not self._turns.is_given_up:
            self._turns.running = self._turns.running or ""
            text = TextContent("(the turn that runs on the server)")
            await self._follow(Prompt(f"server-{os.urandom(6).hex()}", (text,), "far_side"))

    async def _follow(self, prompt: Prompt) -> None:
        """Let the session follow the server's turn; what comes next in the log waits until it does."""
        self.context.remote_turn_started(prompt)
        await self._turns.is_following.wait()

    def _on_queue(self, waiting: set[str]) -> None:
        """End the local turn if its message was withdrawn; withdraw messages that were cancelled here."""
        for message_id in waiting & self._turns.cancelled_messages:
            self._require_stream().send(QueueWithdraw(message_id, self._position.session_id))
        turn = self._turns.followed
        if turn is None or turn.turn_id or not turn.message_id:
            return
        if turn.message_id in waiting:
            turn.is_accepted = turn.was_queued = True
        elif turn.was_queued:
            self.context.emit(e.Notice("info", "the message was withdrawn from the queue"))
            turn.finish(e.TurnEnded("", "cancelled"))

    def _on_info(self, info: SessionInfo) -> None:
        options = tuple(option for option in info.options if option.id in _OPTIONS)
        if options and options != self._options:
            self._options = options
            self.context.emit(e.InfoChanged(self._info()))

    def _on_error(self, error: ErrorMessage) -> None:
        text = f"server: {sanitise(error.message)[:500]}"
        turn = self._turns.followed
        if error.request_id:
            self._changes.on_error(error.request_id, text)
        elif turn and turn.unsent and error.client_message_id in ("", turn.message_id):
            if error.code in _FATAL_ERRORS or error.client_message_id:
                turn.fail(BackendError(text, code=error.code))
        elif error.code not in ("turn_failed", "draining", "unknown_message", "unknown_call"):
            self.context.emit(e.Notice("warning", text))

    # -- calls -----------------------------------------------------------------------------------------------------

    async def _handle_call(self, call: ToolCallMessage) -> None:
        if call.host.id not in ("", self._plan.host.id):
            return
        if self._turns.is_given_up:
            self._calls.start(call, "the turn was cancelled")
            return
        await self._follow_running()
        self._calls.start(call)
        self._sync_manifest()

    def _tool_names(self) -> frozenset[str]:
        return frozenset(tool.name for tool in self._sent_manifest.tools)

    def _manifest(self) -> ToolManifest:
        missing = self._plan.server_only.difference(self._capabilities.session_tools)
        return make_manifest(spec for spec in self._plan.tools() if spec.name not in missing)

    def _sync_manifest(self) -> None:
        """Tell the server which tools there are now, if they changed."""
        manifest = self._manifest()
        if manifest != self._sent_manifest:
            self._sent_manifest = manifest
            self._require_stream().send(ManifestChange(manifest, self._position.session_id))

    # -- messages and turns ----------------------------------------------------------------------------------------

    def _make_message(self, prompt: Prompt) -> UserMessageFrame:
        is_plain = len(prompt.blocks) == 1 and isinstance(prompt.blocks[0], TextContent)
        message = UserMessageFrame(
            prompt.text,
            self._position.session_id,
            new_message_id(self.context.records()),
            blocks=() if is_plain else prompt.blocks,
            notes=tuple(self.context.unsent_notes()),
            trace_id=os.urandom(16).hex(),
        )
        if len(encode_frame(message)) > MAX_FRAME_BYTES:
            raise BackendError("the prompt is too large for the server", code="too_large", hint="attach less")
        return message

    async def _cancel(self, turn: FollowedTurn) -> None:
        """Stop the turn on the server. If it does not end soon, it is given up here and ended when that is possible."""
        self._turns.give_up(turn)
        self._send_cancels()
        stream = self._require_stream()
        if turn.message is None and not turn.turn_id:
            stream.send(CancelMessage(self._position.session_id))
        if turn.unsent or not stream.is_connected or stream.error:
            return
        await asyncio.wait([turn.ended], timeout=CANCEL_SECONDS)
        if not turn.ended.done():
            text = "the server has not ended the turn; the request is repeated when it is connected"
            self.context.emit(e.Notice("warning", text))

    def _send_cancels(self) -> None:
        """Send what ends the turns and messages that were cancelled here; repeated after each connection."""
        if self._stream is None:
            return
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
        self._turns.running = snapshot.turn_id or None
        if turn and (turn.message is None or any(message.id == turn.message_id for message in snapshot.messages)):
            turn.is_accepted, turn.turn_id = True, snapshot.turn_id
            if not snapshot.turn_id:
                turn.finish(e.TurnEnded("", "done"))

    # -- internals -------------------------------------------------------------------------------------------------

    async def _choose_session(self) -> str:
        """Return the server's session: the one of the journal, a copy of it, the named one, or a new one."""
        position = self._position
        if position.is_copied:
            copy = await self._server.fork(position.session_id, position.seq)
            position.begin(copy.session_id, copy.epoch, position.seq)
        if position.session_id:
            self._resumes = True
            return position.session_id
        if self._plan.session_id:
            self._resumes = True  # with an empty epoch: the server sends the conversation so far
            position.session_id = self._plan.session_id
            return self._plan.session_id
        created = await self._server.create(self._root, self._model, self._plan.version)
        self._model = created.model or self._model
        return created.session_id

    async def _restore_texts(self) -> None:
        """Get the texts that the journal leaves out, if there is one to resume."""
        restore, position = self._plan.restore, self._position
        if restore and position.session_id and position.seq:
            restore(*conversation_texts(await self._server.messages(position.session_id)))

    def _initial_options(self) -> tuple[SessionOption, ...]:
        names = self._capabilities.model_names()
        choices = tuple(OptionChoice(name) for name in names)
        return (SessionOption("model", self._model, choices=choices, has_default=True),)

    def _info(self) -> SessionInfo:
        return SessionInfo(NAME, self._options, can_steer=True, title=self._title)

    def _require_stream(self) -> ServerStream:
        assert self._stream is not None, "the session is not open"
        return self._stream
