"""Lets a write pass once if the user approved exactly this edit before."""

from typing import Any, cast

import msgspec

from ostler.core.permission import Decision, Permission
from ostler.core.protocols import BackendContext, ToolRunner, Workspace
from ostler.core.tools import ToolCall, ToolResult

WRITE_TOOL = "write_text_file"
_MAX_EDITS = 200


class Approvals:
    """The approved edits that were not written yet: paths and their new text."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._edits: list[tuple[str, str]] = []

    def add(self, path: str, text: str) -> None:
        self._edits = [*self._edits, (self._workspace.resolve(path).absolute, text)][-_MAX_EDITS:]

    def consume(self, path: str, text: str) -> bool:
        """Return whether exactly this edit was approved, and remove it."""
        edit = (self._workspace.resolve(path).absolute, text)
        if edit not in self._edits:
            return False
        self._edits.remove(edit)
        return True

    def clear(self) -> None:
        """Remove all approvals, at the end of a turn."""
        self._edits = []


class PreApprovedToolRunner:
    """A tool runner that does not ask again for a write that was already approved."""

    def __init__(self, tool_runner: ToolRunner, approvals: Approvals) -> None:
        self._tool_runner = tool_runner
        self._approvals = approvals

    async def open(self, context: BackendContext) -> None:
        await self._tool_runner.open(context)

    def specs(self) -> Any:
        return self._tool_runner.specs()

    async def run(self, call: ToolCall, context: BackendContext) -> ToolResult:
        path, text = call.arguments.get("path"), call.arguments.get("content")
        if (
            call.tool == WRITE_TOOL
            and isinstance(path, str)
            and isinstance(text, str)
            and self._approvals.consume(path, text)
        ):
            context = cast(BackendContext, _PreApprovedContext(context))
        return await self._tool_runner.run(call, context)

    async def aclose(self) -> None:
        await self._tool_runner.aclose()


class _PreApprovedContext:
    """A context in which the user's earlier approval is used, unless the rules deny the call by now."""

    def __init__(self, context: BackendContext) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    async def decide(self, permission: Permission) -> Decision:
        return await self._context.decide(msgspec.structs.replace(permission, is_approved=True))
