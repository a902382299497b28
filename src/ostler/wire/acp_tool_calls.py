"""Tracks the tool calls of an ACP session as updates arrive."""

import msgspec

from ostler.wire.acp import ToolCallFields

FINAL_STATUSES = ("completed", "failed")


class ToolCallTracker:
    """Tool calls by id. A call may first appear in an update or a permission request, and may be announced twice."""

    def __init__(self) -> None:
        self._calls: dict[str, ToolCallFields] = {}

    def upsert(self, update: ToolCallFields) -> ToolCallFields:
        """Merge an update into its call and return the result; fields that are None keep their value."""
        known = self._calls.get(update.tool_call_id)
        changes = {name: value for name in update.__struct_fields__ if (value := getattr(update, name)) is not None}
        merged = ToolCallFields(**changes) if known is None else msgspec.structs.replace(known, **changes)
        self._calls[update.tool_call_id] = merged
        return merged

    def get(self, call_id: str) -> ToolCallFields | None:
        return self._calls.get(call_id)
