"""One session: the stage a backend acts on, and what faces see of it."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from typing import Literal

import msgspec

from ostler.journal.counting import Counting, Events
from ostler.journal.todos_file import todos_of
from ostler.policy.verdict import Policy
from ostler.session.asks import Asks
from ostler.session.calls import Calls, fault_of_bug, ran_before
from ostler.session.concealing import WITHHELD, Conceal, conceal_nothing
from ostler.session.judge import Judge, NoGrants
from ostler.session.keeping import Keeping
from ostler.session.repair import fresh, repair
from ostler.session.state import state_of
from ostler.session.stating import Stating
from ostler.session.stream import Stream, Subscription
from ostler.session.syncing import Syncing
from ostler.session.turn import LiveTurn
from ostler.vocabulary.errors import JournalError, OstlerError, UsageError
from ostler.vocabulary.events import (
    Delivered,
    Envelope,
    Event,
    InfoChanged,
    Notice,
    OptionChanged,
    QuestionAnswered,
    QuestionAsked,
    Queued,
    Renamed,
    Reverted,
    RuleRevoked,
    SessionOpened,
    StateChanged,
    Steered,
    ToolCalled,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from ostler.vocabulary.permission import Decision, Permission, Question, Reply, Rule
from ostler.vocabulary.prompt import Prompt
from ostler.vocabulary.seams import Backend, Grants, Journal, Past, ToolRunner, Undo
from ostler.vocabulary.sessions import (
    Change,
    Queue,
    Rename,
    Revert,
    Revoke,
    SessionInfo,
    SessionStart,
    SetOption,
    Steer,
)
from ostler.vocabulary.tools import ChildTask, ToolCall, ToolResult, ToolSpec

Spawner = Callable[["Session", ChildTask], Awaitable[ToolResult]]


class Session:
    """Plays turns with a backend; every event passes `emit`, every call `run_tool`, every ask `decide`."""

    def __init__(
        self,
        *,
        backend: Backend,
        tools: ToolRunner,
        journal: Journal,
        policy: Policy | Callable[[], Policy],
        cwd: str,
        grants: Grants | None = None,
        undo: Undo | None = None,
        spawner: Spawner | None = None,
        clock: Callable[[], float] = time.time,
        conceal: Conceal = conceal_nothing,
    ) -> None:
        """`conceal` takes out of each event what nobody may keep or be told."""
        self.id = journal.session_id
        self.cwd = cwd
        self.state = state_of(journal.past())
        self._backend = backend
        self._tools = tools
        self._journal = journal
        self._spawner = spawner
        self._clock = clock
        self.conceal = conceal
        self._withheld = False
        self._past = journal.past()
        self._counting = Counting(self._past)
        self._syncing = Syncing(journal)
        self._seq = self.opened_at = self._past[-1].seq if len(self._past) else 0
        self._count = self._seq
        self._stream = Stream(self._kept_after)
        self._joined = False
        self._closing = False
        self._closed = False
        self._turn: LiveTurn | None = None
        self._broken: JournalError | None = None
        self._woken: list[Prompt] = []
        self._questions: Asks[Reply] = Asks()
        self._stating = Stating()
        self._calls = Calls(tools, self, self.state, Keeping(undo, f"{self.id}/"))
        self._judge = Judge(policy, grants or NoGrants(), self.emit, self.new_id)

    # -- what faces see ------------------------------------------------------------------------------------------

    @property
    def info(self) -> SessionInfo:
        return self.state.info

    @property
    def turn(self) -> LiveTurn | None:
        return self._turn

    def tools(self) -> Sequence[ToolSpec]:
        return self._tools.specs()

    async def open(self, *, version: str, backend: str, options: dict[str, str], parent_id: str = "") -> None:
        """Join backend and journal; what an earlier process left unfinished is finished as events.

        Where that fails, nothing is held: the journal is free for others, and one that is new is gone.
        """
        try:
            self.emit(SessionOpened(self.id, self.cwd, backend, version, parent_id))
            await self._join(options)
        except BaseException:
            await self._let_go(self._journal.drop)
            raise

    async def _join(self, options: dict[str, str]) -> None:
        for told in fresh(self._journal.damage, self._past):
            self.emit(Notice("warning", told))
        repair(self.state, self.emit)
        wanted = {**self.state.options, **options}
        start = SessionStart(self.id, self.cwd, self._judge.policy.attended, wanted)
        await self._tools.open(self)
        info = await self._backend.open(start, self)
        self._joined = True
        for option_id, value in options.items():
            if self.state.options.get(option_id) != value:
                self.emit(OptionChanged(option_id, value))
        self.emit(InfoChanged(info))

    def start(self, prompt: Prompt) -> LiveTurn:
        """Begin a turn; one at a time."""
        return self._begin(prompt, joined=False)

    async def call(self, call: ToolCall) -> ToolResult:
        """A call from outside a turn: a person's `!cmd`, an MCP client, `ostler tool call`."""
        self._check_open()
        if call.id in self._calls.beside:
            return await self.run_tool(call)
        self.emit(ToolCalled(call))
        self._calls.begin_beside(call.id)
        try:
            return await self.run_tool(call)
        finally:
            await self._calls.end_beside(call.id)

    async def apply(self, change: Change) -> bool:
        """Change something in the session; False when whoever would have to cannot."""
        self._check_open()
        match change:
            case Rename(title):
                self.emit(Renamed(title))
                await self._backend.apply(change)
                return True
            case Revoke(rule):
                self._judge.grants.revoke(rule)
                self.emit(RuleRevoked(rule))
                return True
            case Revert():
                return await self._revert(change)
            case Steer():
                return await self._steer(change)
            case Queue(texts):
                self.emit(Queued(texts))
                self._syncing.begin()
                return True
            case SetOption(option_id, value):
                if not await self._backend.apply(change):
                    return False
                self.emit(OptionChanged(option_id, value))
                return True
            case _:
                return await self._backend.apply(change)

    def settle(self, ask_id: str, answer: Decision | Reply) -> bool:
        """Answer an open ask; the first answer wins. What a face says is never the policy's word."""
        if isinstance(answer, Decision):
            said = msgspec.structs.replace(answer, by="person") if answer.by == "policy" else answer
            return self._judge.asks.settle(ask_id, said)
        return self._questions.settle(ask_id, answer)

    def subscribe(self, since: int = 0) -> Subscription:
        """Kept events after `since`, what is so now, then everything as it happens."""
        return self._stream.join(min(since, self._seq))

    async def aclose(self) -> None:
        """End the turn if one runs, then backend, tools, journal and readers, in that order; once and for good."""
        if self._closing:
            return
        self._closing = True
        if self._turn:
            self._turn.cancel()
            await self._turn.wait()
        await self._calls.stop_all()
        await self._let_go(self._journal.close)

    async def _let_go(self, close_journal: Callable[[], None]) -> None:
        """Whichever of them fails, the others are closed. A backend that could not be opened has nothing to close."""
        self._closing = True
        async with AsyncExitStack() as closing:
            closing.callback(close_journal)
            closing.callback(setattr, self, "_closed", True)
            closing.push_async_callback(self._syncing.aclose)
            closing.callback(self._stream.close)
            closing.push_async_callback(self._tools.aclose)
            if self._joined:
                closing.push_async_callback(self._backend.aclose)

    # -- the stage -----------------------------------------------------------------------------------------------

    def emit(self, event: Event) -> None:
        if self._closed:
            if event.kept:
                raise JournalError("this session is closed, nothing more is kept in it", code="session_closed")
            return
        if isinstance(event, StateChanged) and not self._stating.hears(event):
            return
        given, event = event, self.conceal(event)
        envelope = Envelope(self._seq + event.kept, self._clock(), event)
        if event.kept:
            self._keep(envelope)
        self._publish(envelope, envelope.seq)
        if event is not given and not self._withheld:
            self._withheld = True
            self.emit(Notice("warning", WITHHELD))

    def past(self) -> Sequence[Event]:
        return Events(self._counting)

    def records(self) -> Past:
        return self._counting

    def wake(self, prompt: Prompt) -> None:
        """Now, or as soon as the turn that runs is over; not once the session is about to close."""
        self._woken.append(prompt)
        self._join_woken()

    async def intend(self, event: ToolStarted) -> None:
        if event.effects:
            self._warn(await self._calls.ready(event.call_id))
        self.emit(event)
        if event.effects:
            await self._syncing.reached()

    async def run_tool(self, call: ToolCall) -> ToolResult:
        if result := ran_before(call, self._past, self._counting):
            return result
        try:
            result = await self._calls.run(call)
        except JournalError as error:
            self._break(error)
            raise
        return self.conceal(ToolFinished(result)).result  # who thinks is told no more than what is kept

    async def decide(self, permission: Permission) -> Decision:
        call = self.state.calls.get(permission.call_id)
        origin, narrow = (call.origin, call.rules) if call else ("model", ())
        return await self._judge.decide(permission, origin, self.state.rules, narrow)

    async def decide_for_child(self, permission: Permission, narrow: Sequence[Rule]) -> Decision:
        """What a child session would do is decided here, as if this session's own model had asked."""
        return await self._judge.decide(permission, "model", self.state.rules, narrow)

    def standing(self) -> Sequence[Rule]:
        """What a person allowed for longer than once."""
        return (*self._judge.grants.rules(), *self.state.rules)

    async def ask(self, question: Question) -> Reply:
        if not self._judge.policy.attended:
            return Reply("decline")
        question = msgspec.structs.replace(question, id=self.new_id("question"))  # whoever asks, no two share an answer
        self.emit(QuestionAsked(question))
        reply = Reply("cancel")
        try:
            reply = await self._questions.wait(question.id)
        finally:
            self.emit(QuestionAnswered(question.id, reply))
        return reply

    async def spawn(self, task: ChildTask) -> ToolResult:
        if self._spawner is None:
            return ToolResult(task.id, "failed", "Subagents cannot be started from here.")
        return await self._spawner(self, task)

    # -- inside --------------------------------------------------------------------------------------------------

    def new_id(self, kind: str) -> str:
        """An id that is new in this session and stays so when it is resumed."""
        self._count = max(self._count, self._seq) + 1
        return f"{kind}-{self._count}"

    async def _steer(self, steer: Steer) -> bool:
        """Words for the turn that runs, while they can still reach it, or for the next one where none does."""
        too_late = self._turn is not None and self._turn.is_tidying
        steered = Steered(steer.prompt)
        told = Steer(self.conceal(steered).prompt)
        if too_late or not (self.info.can_steer and await self._backend.apply(told)):
            return False
        self.emit(steered)
        return True

    def _kept_after(self, seq: int) -> Iterator[Envelope]:
        return map(self._past.__getitem__, range(self._past.after(seq), self._past.after(self._seq)))

    async def _revert(self, revert: Revert) -> bool:
        if self._turn is not None or not 0 <= revert.to_seq <= self._seq:
            return False
        before = len(self._counting)
        self.emit(Reverted(revert.to_seq))
        fewer = len(self._counting) <= before  # else it was counted again
        if not await self._backend.apply(revert) and fewer:
            self.emit(Notice("warning", f"{self.info.backend} still remembers what was taken back"))
        return True

    def _publish(self, envelope: Envelope, kept: int) -> None:
        """`kept` is the number of the last record from then on; what the turn waits for is told where it changes."""
        self._stating.before(envelope.event)
        self._tell_state()
        self._seq = kept
        self._stream.publish(envelope)
        self._stating.after(envelope.event)
        self._tell_state()

    def _tell_state(self) -> None:
        if self._stating.now != self._stating.told:
            self.emit(StateChanged(self._stating.now))

    def _keep(self, envelope: Envelope) -> None:
        event = envelope.event
        try:
            self._journal.append(envelope)
        except JournalError as error:
            self._break(error)
            raise
        if isinstance(event, ToolFinished) and self.state.started.get(event.result.call_id):
            self._syncing.begin()
        self.state.apply(event)
        if isinstance(event, Reverted):
            self._counting.settle()
            self.state.todos = todos_of(self._counting)

    def _break(self, error: JournalError) -> None:
        """What cannot be kept must not go on, whoever emitted it: not every caller can end the turn."""
        self._broken = self._broken or error
        if self._turn:
            self._turn.cancel("failed")

    def _mend(self) -> None:
        """Finish what could not be written down when the journal failed; it may have room again."""
        if self._broken:
            repair(self.state, self.emit, but=self._calls.beside)
            self._broken = None

    def _check_open(self) -> None:
        if self._closing:
            raise UsageError("this session is closed", code="session_closed", hint="open it again to go on with it")

    def _begin(self, prompt: Prompt, *, joined: bool) -> LiveTurn:
        self._check_open()
        if self._turn is not None:
            raise UsageError("a turn is still running in this session", code="turn_running", hint="wait or cancel it")
        self._mend()
        turn_id = self.new_id("turn")
        for prompt_id in tuple(self.state.undelivered):  # they were said before this
            self.emit(Delivered(prompt_id))
        self.emit(started := TurnStarted(turn_id, prompt))
        self._syncing.begin()
        self._calls.begin_turn(turn_id)
        told = None if joined else self.conceal(started).prompt
        self._turn = LiveTurn(turn_id, self._play(turn_id, told), self._settle_open)
        return self._turn

    def _join_woken(self) -> None:
        if self._woken and self._turn is None and not self._closing:
            self._begin(self._woken.pop(0), joined=True)

    def _settle_open(self, by: Literal["person", "nobody"] = "person") -> None:
        """What the turn waits for; a call beside it may go on waiting."""
        for ask_id, asked in self.state.asks.items():
            if asked.permission.call_id not in self._calls.beside:
                self._judge.asks.settle(ask_id, Decision("cancel", by=by))
        self._questions.settle_all(Reply("cancel"))

    async def _settle_left(self) -> None:
        """No ask outlives its turn: whoever still waits for an answer hears that none will come, and tells of it."""
        self._settle_open("nobody")
        await self._judge.asks.heard()
        await self._questions.heard()

    async def _play(self, turn_id: str, prompt: Prompt | None) -> TurnEnded:
        try:
            if self.info.acts_itself:
                self._warn(await self._calls.ready())
            ended = await self._backend.run_turn(prompt)
            ended = TurnEnded(turn_id, ended.reason, ended.fault, ended.limit)
        except asyncio.CancelledError:
            ended = TurnEnded(turn_id, self._turn.cancelled_for if self._turn else "cancelled")
        except OstlerError as error:
            ended = TurnEnded(turn_id, "failed", error.fault)
        except Exception as bug:
            ended = TurnEnded(turn_id, "failed", fault_of_bug(bug))
        finally:
            if self._turn:
                self._turn.tidying()
            uncovered = await self._calls.end_turn()
            await self._settle_left()
        return await self._end(ended, uncovered)

    def _warn(self, uncovered: Sequence[str]) -> None:
        if uncovered:
            self.emit(Notice("warning", "undo does not reach " + "; ".join(uncovered)))

    async def _end(self, ended: TurnEnded, uncovered: Sequence[str]) -> TurnEnded:
        self._turn = None
        if self._broken:
            ended = TurnEnded(ended.turn_id, "failed", self._broken.fault)
        try:
            self._warn(uncovered)
            outliving = self._calls.outliving()
            repair(self.state, self.emit, ended, but=self._calls.beside)
            for event in outliving:
                self.emit(event)
            await self._syncing.reached()
        except JournalError as error:
            ended = TurnEnded(ended.turn_id, "failed", (self._broken or error).fault)
            self._publish(Envelope(self._seq + 1, self._clock(), ended), self._seq)
        if not self._broken:
            self._join_woken()
        return ended
