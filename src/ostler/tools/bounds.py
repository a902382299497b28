"""How much of a tool's output a model is given; the rest stays readable where it came from."""

import msgspec

from ostler.vocabulary.tools import ToolResult

LIMIT = 50_000


def bound(result: ToolResult, limit: int = LIMIT) -> ToolResult:
    """The result with `for_model` cut to the budget, head and tail kept, and a marker that says so."""
    if len(result.for_model) <= limit:
        return result
    from ostler.text.cut import cut_middle  # only a large result pays for it

    return msgspec.structs.replace(result, for_model=cut_middle(result.for_model, limit).text)
