"""The protocol of tools whose calls another process can repeat."""

from typing import Protocol, runtime_checkable

from ostler.core.tools import ToolCall


@runtime_checkable
class RepeatableTools(Protocol):
    """A `ToolRunner` whose calls may be sent twice, because the machine that runs them runs each id once."""

    def repeats(self, call: ToolCall) -> bool:
        """Return whether a call that another process has started can be run again without a second effect."""
