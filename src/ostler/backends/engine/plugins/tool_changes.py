"""Plugin that tells the model about tools that were added or changed during the session."""

from collections.abc import Callable, Sequence

import msgspec

from ostler.backends.engine.plugins.plugin import LoopPlugin, TurnView
from ostler.backends.engine.role import last_reminder
from ostler.core.events import Reminded, TurnEnded
from ostler.core.tools import ToolSpec


class ToolChangesPlugin(LoopPlugin):
    """Works for one turn. New tools are appended to the prefix; a changed one is described in a reminder.

    Removed tools are refused by the tool host.
    """

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
        """Remind the model of the tool's current form, unless the last reminder about it said the same."""
        self._reported.add(tool.name)
        prefix = f"Not from the user: the tool {tool.name} has changed. It is now "
        text = prefix + _encode(tool).decode()
        if text != last_reminder(view.context.records(), prefix):
            view.context.emit(Reminded(text))


def _is_same(first: ToolSpec, second: ToolSpec) -> bool:
    """Compare two specs; a persisted one has been through JSON."""
    return first == second or _encode(first) == _encode(second)


def _encode(tool: ToolSpec) -> bytes:
    return msgspec.json.encode({"description": tool.description, "parameters": tool.schema}, order="sorted")
