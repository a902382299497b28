"""Truncates a tool result to the size that is sent to the model."""

import msgspec

from ostler.core.tools import ToolResult

LIMIT = 50_000


def limit_output(result: ToolResult) -> ToolResult:
    """Return the result with the middle of `for_model` replaced by a marker if it is too long."""
    if len(result.for_model) <= LIMIT:
        return result
    from ostler.text.truncate import truncate_middle  # imported late: only large results need it

    return msgspec.structs.replace(result, for_model=truncate_middle(result.for_model, LIMIT).text)
