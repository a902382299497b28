"""A tool source whose tools a test sets."""

from collections.abc import Callable
from typing import Any

from ostler.core.events import Event
from ostler.core.protocols import BackendContext, Tool


class FakeToolSource:
    """Has the tools of a dictionary, which the test changes; `change` also reports the change."""

    def __init__(self, tools: dict[str, Tool[Any]] | None = None, closing_error: Exception | None = None) -> None:
        self.is_open = False
        self._tools = {} if tools is None else tools
        self._closing_error = closing_error
        self._context: BackendContext
        self._on_change: Callable[[], None]

    def open(self, context: BackendContext, on_change: Callable[[], None]) -> None:
        self.is_open = True
        self._context = context
        self._on_change = on_change

    def tools(self) -> dict[str, Tool[Any]]:
        return self._tools

    def change(self, *tools: Tool[Any]) -> None:
        """Replace the tools and report the change."""
        self._tools = {tool.spec.name: tool for tool in tools}
        self._on_change()

    def emit(self, event: Event) -> None:
        self._context.emit(event)

    async def aclose(self) -> None:
        self.is_open = False
        if self._closing_error:
            raise self._closing_error
