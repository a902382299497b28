"""The agent loop: query the model, run its tool calls, repeat until it answers or a limit ends the turn."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ostler.backends.engine.call_scheduler import CallScheduler
from ostler.backends.engine.history import join_pieces
from ostler.backends.engine.model_step import ModelStep, run_step
from ostler.backends.engine.plugins.plugin import LoopPlugin, TurnView
from ostler.backends.engine.role import subagent_call
from ostler.core.errors import BackendError, Fault
from ostler.core.events import (
    Delivered,
    MessageDone,
    Notice,
    Reminded,
    StateChanged,
    Steered,
    TurnEnded,
    TurnStarted,
)
from ostler.core.message import Message
from ostler.core.protocols import BackendContext
from ostler.core.tools import ToolSpec

if TYPE_CHECKING:
    from ostler.backends.engine.interrupted_turn import InterruptedTurn

_DECLINED = Fault("refusal", "the model declined to answer", "rephrase the request or switch to another model")
_FILTERED = Fault(
    "refusal",
    "the provider's content filter stopped the reply; it is incomplete",
    "rephrase the request or switch to another model",
)


class SteeringQueue:
    """The steering prompts of one turn, which the model gets between two steps; each record is read once."""

    def __init__(self, context: BackendContext) -> None:
        self._context = context
        self._read_count = 0
        self._waiting: dict[str, None] = {}

    def undelivered(self) -> list[str]:
        """Return the ids of steering prompts that the model has not seen, in order."""
        records = self._context.records()
        for index in range(self._read_count, len(records)):
            kind = records.type_at(index)
            if kind in ("steered", "delivered") or (kind == "turn_started" and self._waiting):
                event = records[index].event
                if isinstance(event, Steered):
                    self._waiting[event.prompt.id] = None
                elif isinstance(event, Delivered):
                    self._waiting.pop(event.prompt_id, None)
                elif isinstance(event, TurnStarted):
                    self._waiting.pop(event.prompt.id, None)
        self._read_count = len(records)
        return list(self._waiting)

    def deliver(self) -> None:
        """Mark them as delivered; the history then contains them at this point."""
        for prompt_id in self.undelivered():
            self._context.emit(Delivered(prompt_id))


class AgentLoop:
    """Runs one turn for the latest prompt in the records."""

    def __init__(
        self, view: TurnView, tools: Callable[[], Sequence[ToolSpec]], plugins: LoopPlugin, new_id: Callable[[], str]
    ) -> None:
        self._view = view
        self._context = view.context
        self._tools = tools
        self._plugins = plugins
        self._new_id = new_id
        self._steering = SteeringQueue(view.context)

    async def run(self, first: Message | None = None) -> TurnEnded:
        """Run the turn to its end; `first` replaces the model's first reply."""
        if first:
            self._context.emit(MessageDone(first))
            async with self._make_scheduler() as scheduler:
                if ended := await self._run_calls(ModelStep(first, first), scheduler):
                    return ended
        while True:
            ended = await self._step()
            if ended:
                return ended

    async def continue_turn(self, turn: "InterruptedTurn") -> TurnEnded:
        """Continue a turn that was interrupted: finish its last reply, then run it to its end."""
        if not turn.reply:
            return await self.run(subagent_call(turn.prompt))
        return await self._finish_reply(turn) or await self.run()

    async def _finish_reply(self, turn: "InterruptedTurn") -> TurnEnded | None:
        from ostler.backends.engine.interrupted_turn import INTERRUPTED_REPLY, calls_to_run  # rarely needed

        message = join_pieces(turn.reply)
        if message.calls:
            rest = calls_to_run(turn.reply, self._context.records())
            async with self._make_scheduler() as scheduler:
                return await self._run_calls(ModelStep(message, rest), scheduler)
        if turn.continues_after_reply:
            return None
        if not message.truncated:
            return await self._end_after(message)
        if message.parts:
            self._context.emit(Reminded(INTERRUPTED_REPLY))
        return None

    async def _step(self) -> TurnEnded | None:
        self._context.emit(StateChanged("planning"))
        self._steering.deliver()
        if ended := await self._plugins.before_step(self._view):
            return ended
        async with self._make_scheduler() as scheduler:
            if (step := await self._query(scheduler)) is None:
                return None
            if ended := await self._plugins.after_step(self._view, step.message):
                return ended
            if ended := scheduler.turn_end or _early_turn_end(step.finish_reason):
                return ended
            if step.message.calls:
                return await self._run_calls(step, scheduler)
        return await self._end_after(step.message)

    async def _end_after(self, message: Message) -> TurnEnded | None:
        """Return how the turn ends after a reply without calls, or None if it continues.

        Prompts may also arrive while the plugins run.
        """
        if self._steering.undelivered():
            return None
        outcome = await self._plugins.before_end(self._view, message)
        if outcome is True or self._steering.undelivered():
            return None
        if outcome:
            return outcome
        if not message.text.strip():
            self._context.emit(Notice("warning", "the model returned an empty reply"))
        return TurnEnded("", "done")

    async def _query(self, scheduler: CallScheduler) -> ModelStep | None:
        """Query the model. Return None if it failed and should be queried again."""
        self._context.emit(StateChanged("model_generating"))
        try:
            return await run_step(
                self._view.model, self._view.request(), self._context, self._new_id(), scheduler.start
            )
        except BackendError as error:
            await scheduler.wait_results()  # the next request contains them
            if not await self._plugins.after_failure(self._view, error):
                raise
            return None

    async def _run_calls(self, step: ModelStep, scheduler: CallScheduler) -> TurnEnded | None:
        """Start the calls that were not started during streaming, and wait for all results."""
        if step.rest.calls and not await scheduler.start(step.rest):
            return scheduler.turn_end
        return await scheduler.finish(step.message)

    def _make_scheduler(self) -> CallScheduler:
        return CallScheduler(self._view, self._tools, self._plugins)


def _early_turn_end(finish_reason: str) -> TurnEnded | None:
    """Return the end of the turn if the reply's finish reason requires one."""
    match finish_reason:
        case "length":
            return TurnEnded("", "limit", limit="the model's longest reply")
        case "refusal":
            return TurnEnded("", "failed", _DECLINED)
        case "filtered":
            return TurnEnded("", "failed", _FILTERED)
        case _:
            return None
