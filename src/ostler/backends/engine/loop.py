"""The loop: query, run tools, repeat, until there is an answer, a limit or a stop."""

from collections.abc import Callable, Sequence

from ostler.backends.engine.call_scheduler import CallScheduler
from ostler.backends.engine.model_step import ModelStep, run_step
from ostler.backends.engine.plugins.plugin import LoopPlugin, TurnView
from ostler.backends.engine.reply_endings import early_turn_end
from ostler.backends.engine.steering import SteeringQueue
from ostler.core.errors import BackendError
from ostler.core.events import MessageDone, Notice, StateChanged, TurnEnded
from ostler.core.message import Message
from ostler.core.tools import ToolSpec


class AgentLoop:
    """One turn, from the prompt that is last in the past."""

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
        """To the end; `first` is a message to begin with in place of the model's."""
        if first:
            self._context.emit(MessageDone(first))
            async with self._make_scheduler() as acting:
                if ended := await self._run_calls(ModelStep(first, first), acting):
                    return ended
        while True:
            ended = await self._step()
            if ended:
                return ended

    async def _step(self) -> TurnEnded | None:
        self._context.emit(StateChanged("planning"))
        self._steering.deliver()
        if ended := await self._plugins.before_step(self._view):
            return ended
        async with self._make_scheduler() as acting:
            if (step := await self._query(acting)) is None:
                return None
            if ended := await self._plugins.after_step(self._view, step.message):
                return ended
            if ended := acting.turn_end or early_turn_end(step.finish_reason):
                return ended
            if step.message.calls:
                return await self._run_calls(step, acting)
        if await self._has_more_to_do(step.message):
            return None
        if not step.message.text.strip():
            self._context.emit(Notice("warning", "the model ended its reply without a word"))
        return TurnEnded("", "done")

    async def _has_more_to_do(self, message: Message) -> bool:
        """Whether there is more to do; words may also arrive while the guests are at work."""
        if self._steering.undelivered() or await self._plugins.before_end(self._view, message):
            return True
        return bool(self._steering.undelivered())

    async def _query(self, scheduler: CallScheduler) -> ModelStep | None:
        """None where it failed and is worth another try."""
        self._context.emit(StateChanged("model_generating"))
        try:
            return await run_step(
                self._view.model, self._view.request(), self._context, self._new_id(), scheduler.start
            )
        except BackendError as error:
            await scheduler.wait_results()  # the next request tells of them
            if not await self._plugins.after_failure(self._view, error):
                raise
            return None

    async def _run_calls(self, step: ModelStep, scheduler: CallScheduler) -> TurnEnded | None:
        """What has not begun while the reply came begins now."""
        if step.rest.calls and not await scheduler.start(step.rest):
            return scheduler.turn_end
        return await scheduler.finish(step.message)

    def _make_scheduler(self) -> CallScheduler:
        return CallScheduler(self._view, self._tools, self._plugins)
