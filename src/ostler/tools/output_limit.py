"""How much of a tool's output a model is given; the rest stays readable where it came from."""

import msgspec

from ostler.core.tools import ToolResult

LIMIT = 50_000


def limit_output(result: ToolResult, limit: int = LIMIT) -> ToolResult:
    """The result with `for_model` cut to the budget, head and tail kept, and a marker that says so."""
    if len(result.for_model) <= limit:
        return result
    from ostler.text.truncate import truncate_middle  # only a large result pays for it

    return msgspec.structs.replace(result, for_model=truncate_middle(result.for_model, limit).text)
