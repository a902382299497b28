"""Schedules the tool calls of one reply: read-only ones in parallel, others in order."""

import asyncio
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from ostler.backends.engine.plugins.plugin import LoopPlugin, TurnView
from ostler.core.errors import BackendError
from ostler.core.events import ToolCalled, TurnEnded
from ostler.core.message import Message
from ostler.core.tool_aliases import resolve_tool_name
from ostler.core.tools import ToolCall, ToolSpec


class CallScheduler:
    """Runs calls as soon as they are known, also while the reply is still streaming.

    Adjacent read-only calls and tasks run in parallel; any other call waits for all before it. On leaving the block,
    started calls are awaited, or cancelled if the turn is cancelled. `turn_end` is set if a plugin ended the turn.
    """

    def __init__(self, view: TurnView, tools: Callable[[], Sequence[ToolSpec]], plugins: LoopPlugin) -> None:
        self.turn_end: TurnEnded | None = None
        self._view = view
        self._tools = tools
        self._plugins = plugins
        self._tasks: list[asyncio.Task[None]] = []
        self._previous_group: list[asyncio.Task[None]] = []
        self._group: list[asyncio.Task[None]] = []
        self._parallel = False

    async def start(self, message: Message) -> bool:
        """Start the calls of a persisted message. Return False if a plugin ends the turn instead."""
        self.turn_end = await self._plugins.before_tools(self._view, message)
        if self.turn_end:
            return False
        tools = {tool.name: tool for tool in self._tools()}
        resolved = [
            (call.without_source(), tools.get(resolve_tool_name(call.tool, tools) or "")) for call in message.calls
        ]
        known = self._open_calls()
        for call, spec in resolved:
            if call in known:
                continue  # another process has recorded it, whose turn is continued here
            self._view.context.emit(ToolCalled(call, kind=spec.kind if spec else "other"))
        for call, spec in resolved:
            self._start_call(call, parallel=spec is not None and (not spec.effects or spec.name == "task"))
        return True

    def _open_calls(self) -> list[ToolCall]:
        """Return the calls of this turn that are recorded and have no result."""
        records, start = self._view.context.records(), self._view.start_index
        events = (records[index].event for index in records.indexes_of(("tool_called",)) if index >= start)
        calls = (event.call for event in events if isinstance(event, ToolCalled))
        return [call for call in calls if records.result(call.id) is None]

    async def finish(self, message: Message) -> TurnEnded | None:
        """Wait for the results of all calls, then call the plugins."""
        await self.wait_results()
        return await self._plugins.after_tools(self._view, message)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None or issubclass(kind, BackendError):
            await self.wait_results()
        else:
            await self._stop()

    async def wait_results(self) -> None:
        """Wait for all started calls."""
        try:
            await asyncio.gather(*self._tasks)
        except BaseException:
            await self._stop()
            raise

    def _start_call(self, call: ToolCall, *, parallel: bool) -> None:
        if not (parallel and self._parallel):
            self._previous_group, self._group = self._group, []
        self._parallel = parallel
        task = asyncio.create_task(self._run(call, tuple(self._previous_group)), name=f"call {call.id}")
        self._group.append(task)
        self._tasks.append(task)

    async def _run(self, call: ToolCall, previous: Sequence[asyncio.Task[None]]) -> None:
        await asyncio.gather(*previous)  # if one could not be recorded, no later call runs
        await self._view.context.run_tool(call)

    async def _stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
