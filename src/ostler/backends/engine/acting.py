"""Runs the calls of one reply in their order, from the moment each is known, also while the reply still goes on."""

import asyncio
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from ostler.backends.engine.guests.guest import Guest, View
from ostler.vocabulary.errors import BackendError
from ostler.vocabulary.events import ToolCalled, TurnEnded
from ostler.vocabulary.message import Message
from ostler.vocabulary.tool_names import find_name
from ostler.vocabulary.tools import ToolCall, ToolSpec


class Acting:
    """Neighbours that change nothing, and tasks, run side by side; any other call waits for all before it.

    No call outlives the block. What has begun is finished where the reply ends or breaks off, and stopped where the
    turn is cancelled. `ended` is the end of the turn where a guest wanted it.
    """

    def __init__(self, view: View, tools: Callable[[], Sequence[ToolSpec]], guests: Guest) -> None:
        self.ended: TurnEnded | None = None
        self._view = view
        self._tools = tools
        self._guests = guests
        self._tasks: list[asyncio.Task[None]] = []
        self._before: list[asyncio.Task[None]] = []
        self._together: list[asyncio.Task[None]] = []
        self._harmless = False

    async def begin(self, message: Message) -> bool:
        """Start the calls of a message that is kept; False where a guest ends the turn instead."""
        self.ended = await self._guests.before_tools(self._view, message)
        if self.ended:
            return False
        tools = {tool.name: tool for tool in self._tools()}
        meant = [(call, tools.get(find_name(call.tool, tools) or "")) for call in message.calls]
        for call, spec in meant:
            self._view.stage.emit(ToolCalled(call, kind=spec.kind if spec else "other"))
        for call, spec in meant:
            self._start(call, harmless=spec is not None and (not spec.effects or spec.name == "task"))
        return True

    async def finish(self, message: Message) -> TurnEnded | None:
        """The reply is over, and all of its calls get their results."""
        await self.results()
        return await self._guests.after_tools(self._view, message)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None or issubclass(kind, BackendError):
            await self.results()
        else:
            await self._stop()

    async def results(self) -> None:
        """Wait for all that has begun."""
        try:
            await asyncio.gather(*self._tasks)
        except BaseException:
            await self._stop()
            raise

    def _start(self, call: ToolCall, *, harmless: bool) -> None:
        if not (harmless and self._harmless):
            self._before, self._together = self._together, []
        self._harmless = harmless
        task = asyncio.create_task(self._run(call, tuple(self._before)), name=f"call {call.id}")
        self._together.append(task)
        self._tasks.append(task)

    async def _run(self, call: ToolCall, before: Sequence[asyncio.Task[None]]) -> None:
        await asyncio.gather(*before)  # where one could not be kept, none follows
        await self._view.stage.run_tool(call)

    async def _stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
