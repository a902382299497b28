"""Shows what a server says about its tool requests in the approval requests, and keeps a disabled shell off."""

from typing import Any, cast

import msgspec

from ostler.core.display import Display, DisplayFields
from ostler.core.errors import Fault
from ostler.core.events import Event, ToolCalled
from ostler.core.permission import Decision, Permission
from ostler.core.protocols import BackendContext, ToolRunner
from ostler.core.tool_aliases import resolve_tool_name
from ostler.core.tools import ToolCall, ToolResult

SHELL_TOOLS = ("bash", "connector_shell")
_MAX_STATED = 1000


class StatedReasons:
    """The words of the server by call id. They describe a call and never decide what runs."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._fields: dict[str, tuple[tuple[str, str], ...]] = {}

    def add(self, call_id: str, command: str, reason: str) -> None:
        if len(self._fields) >= _MAX_STATED:
            del self._fields[next(iter(self._fields))]
        words = (("command (the server's words)", command), ("reason (the server's words)", reason))
        self._fields[call_id] = (*((name, text) for name, text in words if text), ("runs on", self._host))

    def title(self, call: ToolCall, title: str) -> str:
        """Return the title of a call with the name of the host."""
        return f"{title or call.tool} on {self._host}" if call.id in self._fields else title

    def describe(self, permission: Permission) -> Permission:
        """Return the permission with the server's words below its own preview."""
        fields = self._fields.get(permission.call_id)
        if not fields:
            return permission
        preview = permission.preview
        shown = Display(preview.summary, (*preview.blocks, DisplayFields(fields)))
        return msgspec.structs.replace(permission, preview=shown)


class StatedReasonToolRunner:
    """A tool runner whose approval requests show the server's words. With `allow_shell` false it runs no commands."""

    def __init__(self, tool_runner: ToolRunner, reasons: StatedReasons, *, allow_shell: bool) -> None:
        self._tool_runner = tool_runner
        self._reasons = reasons
        self._allow_shell = allow_shell

    async def open(self, context: BackendContext) -> None:
        await self._tool_runner.open(context)

    def specs(self) -> Any:
        return [spec for spec in self._tool_runner.specs() if self._allow_shell or spec.name not in SHELL_TOOLS]

    async def run(self, call: ToolCall, context: BackendContext) -> ToolResult:
        if (
            call.origin == "model"
            and not self._allow_shell
            and resolve_tool_name(call.tool, SHELL_TOOLS) in SHELL_TOOLS
        ):
            reason = "the shell is switched off; the user can enable it with security.allow_shell"
            fault = Fault("denied", reason)
            return ToolResult(call.id, "denied", f"Denied: {reason}.", Display(reason), fault=fault)
        described = cast(BackendContext, _DescribingContext(context, self._reasons))
        return await self._tool_runner.run(call, described)

    async def aclose(self) -> None:
        await self._tool_runner.aclose()


class _DescribingContext:
    """A context whose approval requests show the server's words, and whose calls name the host."""

    def __init__(self, context: BackendContext, reasons: StatedReasons) -> None:
        self._context = context
        self._reasons = reasons

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def emit(self, event: Event) -> None:
        """Emit an event; the title of a call keeps the name of the host if the tool host changes it."""
        if isinstance(event, ToolCalled):
            event = msgspec.structs.replace(event, title=self._reasons.title(event.call, event.title))
        self._context.emit(event)

    async def decide(self, permission: Permission) -> Decision:
        return await self._context.decide(self._reasons.describe(permission))
