"""A source of tools that come and go while a session is open, such as an MCP server."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from ostler.core.protocols import BackendContext, Tool


class ToolSource(Protocol):
    """Provides tools to the tool host from `open` to `aclose`."""

    def open(self, context: BackendContext, on_change: Callable[[], None]) -> None:
        """Start the source in a task of its own, and return at once: a session does not wait for its servers.

        The source calls `on_change` whenever `tools` has changed, and emits `ServerStateChanged` on the context.
        """

    def tools(self) -> Mapping[str, Tool[Any]]:
        """Return the tools that can be called now, by the names under which they are called."""

    async def aclose(self) -> None:
        """Stop the source; it may not have been opened. Neither the context nor `on_change` is used afterwards."""
