"""Collects which files the calls of a turn wrote, for a line at its end."""

from ostler.core.display import DisplayDiff
from ostler.core.tools import ToolResult

MAX_SHOWN = 20


class WrittenFiles:
    """The files that a turn wrote, each with its last operation, in order."""

    def __init__(self) -> None:
        self._operations: dict[str, str] = {}

    def add(self, result: ToolResult) -> tuple[str, ...]:
        """Add the files of a result. Return their paths."""
        found = {
            block.path: f"{block.operation} {block.path} (+{block.additions} -{block.deletions})"
            for block in result.for_human.blocks
            if isinstance(block, DisplayDiff) and block.operation != "unchanged"
        }
        if not found and result.status == "ok" and isinstance(result.data, dict):
            path, operation = result.data.get("path"), result.data.get("operation")
            if isinstance(path, str) and operation in ("created", "updated", "appended", "deleted", "renamed"):
                found = {path: f"{operation} {path}"}
        if result.status == "ok":
            self._operations.update(found)
        return tuple(found) if result.status == "ok" else ()

    def summary(self) -> str:
        """Return a line with the files, or an empty text if there are none."""
        lines = list(self._operations.values())
        more = f", and {len(lines) - MAX_SHOWN} more" if len(lines) > MAX_SHOWN else ""
        return f"on this machine: {', '.join(lines[:MAX_SHOWN])}{more}" if lines else ""
