"""A tool of an MCP server, as a tool of the tool host."""

import time
from collections.abc import Mapping
from typing import Any

import msgspec

from ostler.core.display import Display, DisplayDiff, DisplayFields, DisplayText
from ostler.core.errors import Fault, ToolError
from ostler.core.permission import Need, Permission
from ostler.core.protocols import ToolContext, Workspace
from ostler.core.tools import SERVER_NOTE, ToolResult, ToolSpec
from ostler.mcp.approved_tools import ApprovedTools, digest
from ostler.mcp.connection import OnProgress, Progress, ServerGone
from ostler.mcp.server import McpServer
from ostler.mcp.tool_results import convert_result
from ostler.mcp.tool_schema import clean_description, clean_schema
from ostler.text.sanitise import sanitise
from ostler.wire.mcp import ServerTool

MAX_SUBJECT = 500
MAX_PREVIEW = 4000
PROGRESS_SECONDS = 0.2  # between two progress lines


class McpTool:
    """One tool of a server. Its permission key is its name; its subject are the arguments."""

    def __init__(
        self,
        server: McpServer,
        tool: ServerTool,
        name: str,
        prefix: str,
        approved: ApprovedTools,
        read_tool: str = "",
    ) -> None:
        """`read_tool` is the tool that reads the server's resources."""
        self._server = server
        self._read_tool = read_tool
        self._tool = tool
        self._approved = approved
        description = clean_description(tool.description) or f"{tool.name} of the MCP server {server.entry.name}"
        self.spec = ToolSpec(name, "other", description, clean_schema(tool.schema), namespace=prefix)

    def parse(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        missing = [name for name in self.spec.schema.get("required", ()) if name not in arguments]
        if missing:
            names = ", ".join(self.spec.schema["properties"])
            raise ToolError(f"{self.spec.name} needs {missing[0]!r}; it takes {names}", code="bad_arguments")
        return dict(arguments)

    async def permission(self, params: dict[str, Any], workspace: Workspace) -> Permission:
        arguments = msgspec.json.encode(params).decode("utf-8", "replace")
        reason, diff = self._approved.change(self._tool)
        need = Need(
            self.spec.name,
            arguments[:MAX_SUBJECT],
            "confirm" if reason else "ordinary",
            f"{self.spec.name}: {reason}" if reason else "",
            "*",
        )
        return Permission(self._title, (need,), self._preview(params, reason, diff), reason=reason)

    @property
    def _title(self) -> str:
        return f"call {sanitise(self._tool.name)[:80]} of the MCP server {sanitise(self._server.entry.name)[:80]}"

    def _preview(self, params: dict[str, Any], reason: str, diff: str) -> Display:
        text = msgspec.json.format(msgspec.json.encode(params), indent=2).decode("utf-8", "replace")
        fields = DisplayFields((("server", sanitise(self._server.entry.place)[:200]),))
        blocks = (fields, DisplayText(sanitise(text)[:MAX_PREVIEW], "output"))
        if not reason:
            return Display(self._title, blocks)
        lines = diff.splitlines()
        added = sum(line.startswith("+") for line in lines[2:])
        removed = sum(line.startswith("-") for line in lines[2:])
        change = DisplayDiff(self.spec.name, sanitise(diff), "updated", added, removed)
        return Display(self._title, (*blocks, DisplayText(reason), change))

    async def run(self, params: dict[str, Any], context: ToolContext) -> ToolResult:
        """Call the tool, unless its declaration is no longer the approved one.

        A call whose server ended is repeated once if the server declares that this does no harm.
        """
        await self._check_current()
        self._approved.approve(self._tool, self._server.tools)
        on_progress = _progress_reporter(context)
        for is_last in (False, True):
            try:
                result = await self._server.call(self._tool.name, params, context.ask, on_progress)
                return self._with_instructions(convert_result(result, self._read_tool))
            except ServerGone as error:
                hints = self._tool.hints
                if is_last or not (hints.read_only or hints.idempotent):
                    return _unknown_result(error)
                await self._check_current()
        raise AssertionError("unreachable")

    def _with_instructions(self, result: ToolResult) -> ToolResult:
        """Append the server's instructions to the first result, so that the beginning of requests stays the same."""
        instructions = self._server.take_instructions()
        if not instructions:
            return result
        note = f"{SERVER_NOTE}{sanitise(self._server.entry.name)[:80]} says about its tools: {instructions}]"
        return msgspec.structs.replace(result, for_model=f"{result.for_model}{note}")

    async def _check_current(self) -> None:
        """Start the server if necessary. Raises `ToolError` if the tool is gone or has changed meanwhile."""
        await self._server.client()
        current = self._server.find_tool(self._tool.name)
        if current is None:
            raise ToolError(f"the MCP server no longer has {self._tool.name[:80]!r}", code="no_such_tool")
        if digest(current) != digest(self._tool):
            raise ToolError(
                f"the declaration of {self.spec.name} changed; nothing was called",
                code="tool_changed",
                hint="check its current description, then call it again",
            )


def _progress_reporter(context: ToolContext) -> OnProgress:
    last = 0.0

    def report(progress: Progress) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < PROGRESS_SECONDS:
            return
        last = now
        share = f"{progress.progress:g}/{progress.total:g}" if progress.total else f"{progress.progress:g}"
        context.progress(Display(f"{share} {sanitise(progress.message)}".strip()))

    return report


def _unknown_result(error: ServerGone) -> ToolResult:
    text = f"The server ended during the call ({error.fault.message}). Whether the call had an effect is unknown."
    return ToolResult("", "unknown", text, Display(text), fault=Fault("server_gone", error.fault.message))
