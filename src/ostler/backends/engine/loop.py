"""The loop: query, run tools, repeat, until there is an answer, a limit or a stop."""

import asyncio
from collections.abc import Callable, Sequence

from ostler.backends.engine.endings import ended_early
from ostler.backends.engine.guests.guest import Guest, View
from ostler.backends.engine.steering import Steering
from ostler.backends.engine.step import take_step
from ostler.vocabulary.errors import BackendError
from ostler.vocabulary.events import MessageDone, Notice, StateChanged, ToolCalled, TurnEnded
from ostler.vocabulary.message import Message
from ostler.vocabulary.tool_names import find_name
from ostler.vocabulary.tools import ToolCall, ToolSpec


class Loop:
    """One turn, from the prompt that is last in the past."""

    def __init__(
        self, view: View, tools: Callable[[], Sequence[ToolSpec]], guests: Guest, new_id: Callable[[], str]
    ) -> None:
        self._view = view
        self._stage = view.stage
        self._tools_now = tools
        self._tools: dict[str, ToolSpec] = {}
        self._guests = guests
        self._new_id = new_id
        self._steering = Steering(view.stage)

    async def play(self, first: Message | None = None) -> TurnEnded:
        """To the end; `first` is a message to begin with in place of the model's."""
        if first:
            self._stage.emit(MessageDone(first))
            if ended := await self._act(first):
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
        message, finish = await self._query()
        if ended := await self._guests.after_step(self._view, message):
            return ended
        if ended := ended_early(finish):
            return ended
        if message.calls:
            return await self._act(message)
        if await self._goes_on(message):
            return None
        if not message.text.strip():
            self._stage.emit(Notice("warning", "the model ended its reply without a word"))
        return TurnEnded("", "done")

    async def _goes_on(self, message: Message) -> bool:
        """Whether there is more to do; words may also arrive while the guests are at work."""
        if self._steering.undelivered() or await self._guests.before_end(self._view, message):
            return True
        return bool(self._steering.undelivered())

    async def _query(self) -> tuple[Message, str]:
        while True:
            self._stage.emit(StateChanged("model_generating"))
            try:
                return await take_step(self._view.model, self._view.request(), self._stage, self._new_id())
            except BackendError as error:
                if not await self._guests.after_failure(self._view, error):
                    raise

    async def _act(self, message: Message) -> TurnEnded | None:
        if ended := await self._guests.before_tools(self._view, message):
            return ended
        await self._run(message.calls)
        return await self._guests.after_tools(self._view, message)

    async def _run(self, calls: Sequence[ToolCall]) -> None:
        """The calls in order; neighbours that change nothing, and tasks, run side by side."""
        self._tools = {tool.name: tool for tool in self._tools_now()}
        for call in calls:
            spec = self._meant(call)
            self._stage.emit(ToolCalled(call, kind=spec.kind if spec else "other"))
        for group in self._groups(calls):
            async with asyncio.TaskGroup() as tasks:
                for call in group:
                    tasks.create_task(self._stage.run_tool(call))

    def _groups(self, calls: Sequence[ToolCall]) -> list[list[ToolCall]]:
        groups: list[list[ToolCall]] = []
        for call in calls:
            if groups and self._harmless(call) and self._harmless(groups[-1][-1]):
                groups[-1].append(call)
            else:
                groups.append([call])
        return groups

    def _harmless(self, call: ToolCall) -> bool:
        spec = self._meant(call)
        return spec is not None and (not spec.effects or spec.name == "task")

    def _meant(self, call: ToolCall) -> ToolSpec | None:
        """The tool that is called, by whatever name."""
        return self._tools.get(find_name(call.tool, self._tools) or "")
