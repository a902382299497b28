"""The tool sources of a tool host: opened and closed with it."""

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any

from ostler.core.protocols import BackendContext, Tool
from ostler.core.tool_source import ToolSource


class ToolSources:
    """Tools that may change, from several sources. If two sources have a name, the first source's tool is used."""

    def __init__(self, sources: Sequence[ToolSource], on_change: Callable[[], None]) -> None:
        self._sources = sources
        self._on_change = on_change

    def open(self, context: BackendContext) -> None:
        for source in self._sources:
            source.open(context, self._on_change)

    def tools(self) -> dict[str, Tool[Any]]:
        tools: dict[str, Tool[Any]] = {}
        for source in self._sources:
            tools = {**source.tools(), **tools}
        return tools

    async def aclose(self) -> None:
        """Close all sources, even if closing one fails."""
        async with AsyncExitStack() as closing:
            for source in self._sources:
                closing.push_async_callback(source.aclose)
