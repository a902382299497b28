"""The guest that tells of tools that come, go or change in a turn: at the end, so that no earlier byte changes."""

from collections.abc import Callable, Sequence

import msgspec

from ostler.backends.engine.plugins.plugin import LoopPlugin, TurnView
from ostler.backends.engine.role import last_reminder
from ostler.core.events import Reminded, TurnEnded
from ostler.core.tools import ToolSpec


class ToolChangesPlugin(LoopPlugin):
    """For one turn. A new tool follows the others; one that is another now is told of in words; one that went is
    refused at the door."""

    def __init__(
        self, tools: Callable[[], Sequence[ToolSpec]], extend: Callable[[TurnView, Sequence[ToolSpec]], None]
    ) -> None:
        self._tools = tools
        self._extend = extend
        self._reported: set[str] = set()

    async def before_step(self, view: TurnView) -> TurnEnded | None:
        tools = self._tools()
        self._extend(view, tools)
        first = {tool.name: tool for tool in view.tools}
        for tool in tools:
            if tool.name in first and (tool.name in self._reported or not _is_same(tool, first[tool.name])):
                self._report_change(tool, view)
        return None

    def _report_change(self, tool: ToolSpec, view: TurnView) -> None:
        """Unless these were the last words about it; also where it is again what it was first."""
        self._reported.add(tool.name)
        beginning = f"Not from the user: the tool {tool.name} has changed. It is now "
        told = beginning + _encode(tool).decode()
        if told != last_reminder(view.context.records(), beginning):
            view.context.emit(Reminded(told))


def _is_same(one: ToolSpec, other: ToolSpec) -> bool:
    """A spec that was kept has been through JSON."""
    return one == other or _encode(one) == _encode(other)


def _encode(tool: ToolSpec) -> bytes:
    return msgspec.json.encode({"description": tool.description, "parameters": tool.schema}, order="sorted")
