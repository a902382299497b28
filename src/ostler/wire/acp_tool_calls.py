"""The tool calls of a session as they stand, put together from everything that told of them."""

import msgspec

from ostler.wire.acp import ToolCallFields

FINAL_STATUSES = ("completed", "failed")


class ToolCallTracker:
    """Calls by id. A call may first be heard of in an update or in a permission request, and be begun twice."""

    def __init__(self) -> None:
        self._calls: dict[str, ToolCallFields] = {}

    def upsert(self, update: ToolCallFields) -> ToolCallFields:
        """The call as it stands now: what was told anew, and of the rest what was known."""
        known = self._calls.get(update.tool_call_id)
        news = {name: value for name in update.__struct_fields__ if (value := getattr(update, name)) is not None}
        merged = ToolCallFields(**news) if known is None else msgspec.structs.replace(known, **news)
        self._calls[update.tool_call_id] = merged
        return merged

    def get(self, call_id: str) -> ToolCallFields | None:
        return self._calls.get(call_id)
