"""The guest that tells of tools that come, go or change in a turn: at the end, so that no earlier byte changes."""

from collections.abc import Callable, Sequence

import msgspec

from ostler.backends.engine.guests.guest import Guest, View
from ostler.backends.engine.role import last_told
from ostler.vocabulary.events import Reminded, TurnEnded
from ostler.vocabulary.tools import ToolSpec


class OfferGuest(Guest):
    """For one turn. A new tool follows the others; one that is another now is told of in words; one that went is
    refused at the door."""

    def __init__(
        self, tools: Callable[[], Sequence[ToolSpec]], extend: Callable[[View, Sequence[ToolSpec]], None]
    ) -> None:
        self._tools = tools
        self._extend = extend
        self._told: set[str] = set()

    async def before_step(self, view: View) -> TurnEnded | None:
        tools = self._tools()
        self._extend(view, tools)
        first = {tool.name: tool for tool in view.offered}
        for tool in tools:
            if tool.name in first and (tool.name in self._told or not _same(tool, first[tool.name])):
                self._tell(tool, view)
        return None

    def _tell(self, tool: ToolSpec, view: View) -> None:
        """Unless these were the last words about it; also where it is again what it was first."""
        self._told.add(tool.name)
        beginning = f"Not from the user: the tool {tool.name} has changed. It is now "
        told = beginning + _encoded(tool).decode()
        if told != last_told(view.stage.records(), beginning):
            view.stage.emit(Reminded(told))


def _same(one: ToolSpec, other: ToolSpec) -> bool:
    """A spec that was kept has been through JSON."""
    return one == other or _encoded(one) == _encoded(other)


def _encoded(tool: ToolSpec) -> bytes:
    return msgspec.json.encode({"description": tool.description, "parameters": tool.schema}, order="sorted")
