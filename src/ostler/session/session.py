"""A session: implements `BackendContext` for the backend and `Session` for frontends."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from typing import Literal

import msgspec

from ostler.core.errors import JournalError, OstlerError, UsageError
from ostler.core.events import (
    Delivered,
    Envelope,
    Event,
    InfoChanged,
    Notice,
    Reverted,
    SessionOpened,
    StateChanged,
    ToolCalled,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from ostler.core.permission import Decision, Permission, Question, QuestionReply, Rule
from ostler.core.prompt import Prompt
from ostler.core.protocols import Backend, Journal, StandingRules, ToolRunner
from ostler.core.session_view import Records
from ostler.core.sessions import SessionChange, SessionInfo, SessionStart
from ostler.core.tools import ChildTask, ToolCall, ToolResult, ToolSpec
from ostler.core.undo import Undo
from ostler.journal.active_records import ActiveRecords, EventSequence
from ostler.journal.todos_file import current_todos
from ostler.policy.verdict import Policy
from ostler.session.access import FixedAccess, SessionAccess
from ostler.session.call_runner import CallRunner, fault_from_exception, find_earlier_result
from ostler.session.checkpointing import Checkpointer
from ostler.session.event_stream import EventStream, Subscription, records_between
from ostler.session.journal_sync import JournalSync
from ostler.session.masking import MaskSecrets, SessionMasking, mask_nothing
from ostler.session.partial_reply_saver import PartialReplySaver
from ostler.session.pending_answers import QuestionAsker
from ostler.session.permissions import NoStandingRules, PermissionDecider
from ostler.session.repair import close_unfinished, unreported_damage
from ostler.session.running_turn import RunningTurn
from ostler.session.session_options import SessionOptions
from ostler.session.state import state_from_records
from ostler.session.turn_state import TurnStateTracker
from ostler.session.unsent_notes import UnsentNotes

Spawner = Callable[["LocalSession", ChildTask], Awaitable[ToolResult]]


class LocalSession:
    """Runs turns with a backend. Events go through `emit`, calls through `run_tool`, permissions through `decide`."""

    def __init__(
        self,
        *,
        backend: Backend,
        tools: ToolRunner,
        journal: Journal,
        policy: Policy | SessionAccess,
        cwd: str,
        standing_rules: StandingRules | None = None,
        undo: Undo | None = None,
        spawner: Spawner | None = None,
        clock: Callable[[], float] = time.time,
        mask: MaskSecrets = mask_nothing,
    ) -> None:
        """`mask` removes secrets from each event before it is saved, published or sent to the model."""
        self.id = journal.session_id
        self.cwd = cwd
        self.state = state_from_records(journal.records())
        self._backend = backend
        self._tools = tools
        self._journal = journal
        self._spawner = spawner
        self._clock = clock
        self.mask = mask
        self._masking = SessionMasking(mask)
        self._partial_reply_saver = PartialReplySaver(self.emit)
        self._records = journal.records()
        self._active_records = ActiveRecords(self._records)
        self._journal_sync = JournalSync(journal)
        self._seq = self.opened_after_seq = self._records[-1].seq if len(self._records) else 0
        self._count = self._seq
        self._stream = EventStream(lambda seq: records_between(self._records, seq, self._seq))
        self._backend_opened = False
        self._closing = False
        self._closed = False
        self._turn: RunningTurn | None = None
        self._journal_error: JournalError | None = None
        self._remote_prompts: list[Prompt] = []
        self._questions = QuestionAsker(self.emit, self.new_id)
        self._turn_state = TurnStateTracker()
        self._access: SessionAccess = FixedAccess(policy) if isinstance(policy, Policy) else policy
        self._options = SessionOptions(self._access, backend, self.state, self.emit)
        self._unsent_notes = UnsentNotes(self._records, self._active_records)
        self._call_runner = CallRunner(tools, self, self.state, Checkpointer(undo, f"{self.id}/"))
        rules = standing_rules or NoStandingRules()
        self._permissions = PermissionDecider(self._access.policy, rules, self.emit, self.new_id)

    # -- Session, for frontends ----------------------------------------------------------------------------------

    @property
    def info(self) -> SessionInfo:
        return self.state.info

    @property
    def last_seq(self) -> int:
        """Number of the last persisted event."""
        return self._seq

    @property
    def turn(self) -> RunningTurn | None:
        return self._turn

    def tools(self) -> Sequence[ToolSpec]:
        return self._tools.specs()

    async def open(
        self, *, version: str, backend: str, options: dict[str, str], parent_id: str = "", takeover: bool = False
    ) -> None:
        """Open the backend and repair an interrupted session. On failure, release the journal, or delete a new one.

        With `takeover` an interrupted turn is continued, if the backend can, and is then the running turn.
        """
        try:
            self.emit(SessionOpened(self.id, self.cwd, backend, version, parent_id))
            await self._open_backend(backend, options, takeover)
        except BaseException:
            await self._close_parts(self._journal.drop)
            raise

    async def _open_backend(self, backend: str, options: dict[str, str], takeover: bool) -> None:
        for message in unreported_damage(self._journal.damage, self._records):
            self.emit(Notice("warning", message))
        if not takeover:
            close_unfinished(self.state, self.emit)
        backend_options, interactive = self._options.prepare(options, backend), self._permissions.policy.interactive
        start = SessionStart(self.id, self.cwd, interactive, backend_options, self._options.agent)
        await self._tools.open(self)
        info = await self._backend.open(start, self)
        self._backend_opened = True
        self._options.record(options, info)
        self.emit(InfoChanged(info))
        if takeover:
            self._take_over()

    def _take_over(self) -> None:
        """Continue the turn that the journal holds, or end it if the backend cannot continue it."""
        from ostler.session.takeover import prepare_takeover  # imported late: rarely needed

        if turn := prepare_takeover(self.state, self.emit, self._tools):
            self._turn_state.resume_turn()
            self._report_state()
            # An own checkpoint, because that of the same turn in the earlier process must stay.
            self._begin_turn(turn.turn_id, turn.prompt, follows=True, checkpoint_id=self.new_id(turn.turn_id))
        self._start_remote_turn()

    def start(self, prompt: Prompt) -> RunningTurn:
        """Start a turn. Raises `UsageError` if one is running or the session is closed."""
        return self._start_turn(prompt, is_remote=False)

    async def call(self, call: ToolCall) -> ToolResult:
        """Run a standalone call, outside of any turn: the user's `!cmd`, an MCP client, `ostler tool call`."""
        self._check_open()
        if call.id in self._call_runner.standalone:
            return await self.run_tool(call)
        self.emit(ToolCalled(call))
        self._call_runner.begin_standalone(call.id)
        try:
            return await self.run_tool(call)
        finally:
            await self._call_runner.end_standalone(call.id)

    async def apply(self, change: SessionChange) -> bool:
        """Apply a change to the session. Return False if the backend does not support it or it is not possible now."""
        self._check_open()
        from ostler.session.session_changes import SessionChanges  # imported late: not needed for the first request

        rules = self._permissions.standing_rules
        return await SessionChanges(self, self._backend, self._options, rules, self._journal_sync).apply(change)

    def answer(self, ask_id: str, answer: Decision | QuestionReply) -> bool:
        """Answer an open approval request or question; the first answer wins. A decision is recorded as the user's."""
        if isinstance(answer, Decision):
            decision = msgspec.structs.replace(answer, by="person") if answer.by == "policy" else answer
            return self._permissions.pending.answer(ask_id, decision)
        return self._questions.pending.answer(ask_id, answer)

    def subscribe(self, since: int = 0) -> Subscription:
        """Stream the persisted events after `since`, the current transient state, then new events."""
        return self._stream.subscribe(min(since, self._seq))

    async def wait_saved(self) -> None:
        """Wait until all events so far are on disk. Raises `JournalError`."""
        await self._journal_sync.wait_synced()

    async def aclose(self) -> None:
        """Cancel the running turn and all calls, then close backend, tools, subscriptions and journal."""
        if self._closing:
            return
        self._closing = True
        if self._turn:
            self._turn.cancel()
            await self._turn.wait()
        await self._call_runner.stop_all()
        await self._close_parts(self._journal.close)

    async def release(self) -> None:
        """Close the session like `aclose`, but do not end the running turn, so that another process can take it over.

        Calls that do not finish by themselves get no result; the process that takes over repeats them if the tools
        can, and else records them as unknown.
        """
        self._call_runner.releasing = True
        if self._turn and not self._closing:
            self._cancel_pending("nobody")
            self._turn.release()
        await self.aclose()

    async def _close_parts(self, close_journal: Callable[[], None]) -> None:
        """Close everything, even if closing a part fails. The backend is closed only if it was opened."""
        self._closing = True
        async with AsyncExitStack() as closing:
            closing.callback(self._partial_reply_saver.stop)
            closing.push_async_callback(asyncio.to_thread, close_journal)  # it waits for the disk
            closing.callback(setattr, self, "_closed", True)
            closing.push_async_callback(self._journal_sync.aclose)
            closing.callback(self._stream.close)
            closing.push_async_callback(self._tools.aclose)
            if self._backend_opened:
                closing.push_async_callback(self._backend.aclose)

    # -- BackendContext, for the backend -------------------------------------------------------------------------

    def emit(self, event: Event) -> None:
        if self._closed and event.persisted:
            raise JournalError("the session is closed; no more events can be saved", code="session_closed")
        if self._closed or (isinstance(event, StateChanged) and not self._turn_state.accept_backend_state(event)):
            return
        if isinstance(event, InfoChanged):
            event = InfoChanged(self._options.merge(event.info))
        if (masked := self._masking.apply(event)) is None:
            return
        event = masked
        envelope = Envelope(self._seq + event.persisted, self._clock(), event)
        if event.persisted:
            self._persist(envelope)
        self._publish(envelope, envelope.seq)
        self._partial_reply_saver.on_event(event)
        if notice := self._masking.take_notice():
            self.emit(notice)

    def events(self) -> Sequence[Event]:
        return EventSequence(self._active_records)

    def records(self) -> Records:
        return self._active_records

    def remote_turn_started(self, prompt: Prompt) -> None:
        """Follow the remote turn now or after the running turn; ignored when the session is closing."""
        self._remote_prompts.append(prompt)
        self._start_remote_turn()

    async def record_start(self, event: ToolStarted, *, files_only: bool = False) -> None:
        if event.effects:
            await self.prepare_effects(event.call_id, files_only=files_only)
        self._call_runner.check_not_abandoned(event.call_id)
        self.emit(event)
        if event.effects:
            await self._journal_sync.wait_synced()

    def unsent_notes(self, *, is_new_history: bool = False) -> Sequence[str]:
        return self._unsent_notes.take(self._access.instructions(), is_new_history=is_new_history)

    def skip_revert_note(self) -> None:
        """Do not describe reverted prompts to the backend, which has reverted them too."""
        self._unsent_notes.skip_reverts()

    async def run_tool(self, call: ToolCall) -> ToolResult:
        if call.origin != "person" and (rules := self._access.call_rules()):
            call = msgspec.structs.replace(call, rules=(*call.rules, *rules))
        if result := find_earlier_result(call, self._records, self._active_records):
            return result
        try:
            result = await self._call_runner.run(call)
        except JournalError as error:
            self._fail_turn(error)
            raise
        return self.mask(ToolFinished(result)).result  # the backend gets the masked result, as saved

    async def decide(self, permission: Permission) -> Decision:
        return await self._permissions.decide(permission, *self.state.rules_of_call(permission.call_id))

    def may_read(self, call_id: str, path: str) -> bool:
        return self._permissions.may_read(path, *self.state.rules_of_call(call_id))

    async def prepare_effects(self, call_id: str, *, files_only: bool) -> None:
        """Take the checkpoint that a call needs before it changes something; a child session needs its parent's."""
        await self._call_runner.prepare_effects(call_id, files_only=files_only)

    async def decide_for_child(self, permission: Permission, restrictions: Sequence[Sequence[Rule]]) -> Decision:
        """Decide a permission of a child session, like one of this session's own model."""
        return await self._permissions.decide(permission, "model", self.state.rules, restrictions)

    def standing_rules(self) -> Sequence[Rule]:
        """Return the rules that the user set for the project and for this session."""
        return (*self._permissions.standing_rules.rules(), *self.state.rules)

    async def ask(self, question: Question) -> QuestionReply:
        if not self._permissions.policy.interactive:
            return QuestionReply("decline")
        return await self._questions.ask(question)

    async def spawn(self, task: ChildTask) -> ToolResult:
        if self._spawner is None:
            return ToolResult(task.id, "failed", "Subagents are not available in this session.")
        return await self._spawner(self, task)

    # -- internal ------------------------------------------------------------------------------------------------

    def new_id(self, kind: str) -> str:
        """Return an id that is unique in this session, also after it is resumed."""
        self._count = max(self._count, self._seq) + 1
        return f"{kind}-{self._count}"

    def _publish(self, envelope: Envelope, last_seq: int) -> None:
        """Publish an event and any change of the turn state; `last_seq` becomes the number of the last record."""
        self._turn_state.before_publish(envelope.event)
        self._report_state()
        self._seq = last_seq
        self._stream.publish(envelope)
        self._turn_state.after_publish(envelope.event)
        self._report_state()

    def _report_state(self) -> None:
        if self._turn_state.current != self._turn_state.reported:
            self.emit(StateChanged(self._turn_state.current))

    def _persist(self, envelope: Envelope) -> None:
        event = envelope.event
        try:
            self._journal.append(envelope)
        except JournalError as error:
            self._fail_turn(error)
            raise
        if isinstance(event, ToolFinished) and self.state.started.get(event.result.call_id):
            self._journal_sync.start()
        self.state.apply(event)
        if isinstance(event, Reverted):
            self._active_records.refresh()
            self.state.todos = current_todos(self._active_records)

    def _fail_turn(self, error: JournalError) -> None:
        """Cancel the turn: its events cannot be saved, and not every caller of `emit` can end it."""
        self._journal_error = self._journal_error or error
        if self._turn:
            self._turn.cancel("failed")

    def _repair(self) -> None:
        """Write the closing events that a journal error prevented; the disk may have space again."""
        if self._journal_error:
            close_unfinished(self.state, self.emit, except_calls=self._call_runner.standalone)
            self._journal_error = None

    def _check_open(self) -> None:
        if self._closing:
            raise UsageError("the session is closed", code="session_closed", hint="resume it to continue")

    def _start_turn(self, prompt: Prompt, *, is_remote: bool) -> RunningTurn:
        self._check_open()
        if self._turn is not None:
            raise UsageError("a turn is still running", code="turn_running", hint="wait for it or cancel it")
        self._repair()
        turn_id = self.new_id("turn")
        for prompt_id in tuple(self.state.undelivered):
            if prompt_id != prompt.id:  # sent before this prompt
                self.emit(Delivered(prompt_id))
        self.emit(started := TurnStarted(turn_id, prompt))
        self._journal_sync.start()
        return self._begin_turn(turn_id, None if is_remote else self.mask(started).prompt, follows=is_remote)

    def _begin_turn(
        self, turn_id: str, prompt: Prompt | None, *, follows: bool, checkpoint_id: str = ""
    ) -> RunningTurn:
        self._call_runner.begin_turn(checkpoint_id or turn_id)
        self._turn = RunningTurn(turn_id, self._run_turn(turn_id, prompt, follows), self._cancel_pending)
        return self._turn

    def _start_remote_turn(self) -> None:
        if self._remote_prompts and self._turn is None and self.state.turn is None and not self._closing:
            self._start_turn(self._remote_prompts.pop(0), is_remote=True)

    def _cancel_pending(self, by: Literal["person", "nobody"] = "person") -> None:
        """Cancel the open approval requests and questions of the turn, but not those of standalone calls."""
        for ask_id, request in self.state.asks.items():
            if request.permission.call_id not in self._call_runner.standalone:
                self._permissions.pending.answer(ask_id, Decision("cancel", by=by))
        self._questions.pending.answer_all(QuestionReply("cancel"))

    async def _cancel_leftover(self) -> None:
        """Cancel requests left open by the turn, and wait until their decisions are emitted."""
        self._cancel_pending("nobody")
        await self._permissions.pending.wait_delivered()
        await self._questions.pending.wait_delivered()

    async def _run_turn(self, turn_id: str, prompt: Prompt | None, follows: bool) -> TurnEnded:
        try:
            if self.info.runs_own_tools:
                await self._call_runner.prepare_effects()
            ended = await self._options.run_turn(prompt, self, follows=follows)
            ended = TurnEnded(turn_id, ended.reason, ended.fault, ended.limit)
        except asyncio.CancelledError:
            ended = TurnEnded(turn_id, self._turn.cancel_reason if self._turn else "cancelled")
        except OstlerError as error:
            ended = TurnEnded(turn_id, "failed", error.fault)
        except Exception as bug:
            ended = TurnEnded(turn_id, "failed", fault_from_exception(bug))
        finally:
            if self._turn:
                self._turn.begin_cleanup()
            uncovered = await self._call_runner.end_turn()
            await self._cancel_leftover()
        return await self._finish_turn(ended, uncovered)

    async def _finish_turn(self, turn_end: TurnEnded, not_restorable: Sequence[str]) -> TurnEnded:
        turn, self._turn = self._turn, None
        if self._journal_error:
            turn_end = TurnEnded(turn_end.turn_id, "failed", self._journal_error.fault)
        try:
            self._call_runner.warn_about_undo(not_restorable)
            if turn and turn.is_released and turn_end.reason not in ("done", "limit"):
                await self._journal_sync.wait_synced()
                return turn_end
            repeated = self._call_runner.events_after_turn()
            close_unfinished(self.state, self.emit, turn_end, except_calls=self._call_runner.standalone)
            for event in repeated:
                self.emit(event)
            await self._journal_sync.wait_synced()
        except JournalError as error:
            turn_end = TurnEnded(turn_end.turn_id, "failed", (self._journal_error or error).fault)
            self._publish(Envelope(self._seq + 1, self._clock(), turn_end), self._seq)
        if not self._journal_error:
            self._start_remote_turn()
        return turn_end
