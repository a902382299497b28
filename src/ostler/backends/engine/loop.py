"""The loop: query, run tools, repeat, until there is an answer, a limit or a stop."""

from collections.abc import Callable, Sequence

from ostler.backends.engine.acting import Acting
from ostler.backends.engine.endings import ended_early
from ostler.backends.engine.guests.guest import Guest, View
from ostler.backends.engine.steering import Steering
from ostler.backends.engine.step import Step, take_step
from ostler.vocabulary.errors import BackendError
from ostler.vocabulary.events import MessageDone, Notice, StateChanged, TurnEnded
from ostler.vocabulary.message import Message
from ostler.vocabulary.tools import ToolSpec


class Loop:
    """One turn, from the prompt that is last in the past."""

    def __init__(
        self, view: View, tools: Callable[[], Sequence[ToolSpec]], guests: Guest, new_id: Callable[[], str]
    ) -> None:
        self._view = view
        self._stage = view.stage
        self._tools = tools
        self._guests = guests
        self._new_id = new_id
        self._steering = Steering(view.stage)

    async def play(self, first: Message | None = None) -> TurnEnded:
        """To the end; `first` is a message to begin with in place of the model's."""
        if first:
            self._stage.emit(MessageDone(first))
            async with self._acting() as acting:
                if ended := await self._act(Step(first, first), acting):
                    return ended
        while True:
            ended = await self._step()
            if ended:
                return ended

    async def _step(self) -> TurnEnded | None:
        self._stage.emit(StateChanged("planning"))
        self._steering.deliver()
        if ended := await self._guests.before_step(self._view):
            return ended
        async with self._acting() as acting:
            if (step := await self._query(acting)) is None:
                return None
            if ended := await self._guests.after_step(self._view, step.message):
                return ended
            if ended := acting.ended or ended_early(step.finish):
                return ended
            if step.message.calls:
                return await self._act(step, acting)
        if await self._goes_on(step.message):
            return None
        if not step.message.text.strip():
            self._stage.emit(Notice("warning", "the model ended its reply without a word"))
        return TurnEnded("", "done")

    async def _goes_on(self, message: Message) -> bool:
        """Whether there is more to do; words may also arrive while the guests are at work."""
        if self._steering.undelivered() or await self._guests.before_end(self._view, message):
            return True
        return bool(self._steering.undelivered())

    async def _query(self, acting: Acting) -> Step | None:
        """None where it failed and is worth another try."""
        self._stage.emit(StateChanged("model_generating"))
        try:
            return await take_step(self._view.model, self._view.request(), self._stage, self._new_id(), acting.begin)
        except BackendError as error:
            await acting.results()  # the next request tells of them
            if not await self._guests.after_failure(self._view, error):
                raise
            return None

    async def _act(self, step: Step, acting: Acting) -> TurnEnded | None:
        """What has not begun while the reply came begins now."""
        if step.rest.calls and not await acting.begin(step.rest):
            return acting.ended
        return await acting.finish(step.message)

    def _acting(self) -> Acting:
        return Acting(self._view, self._tools, self._guests)
