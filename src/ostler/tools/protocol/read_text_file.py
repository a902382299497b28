"""Tool that reads a text file, or a range of its lines, for an ACP agent."""

import msgspec

from ostler.core.display import Display
from ostler.core.permission import Permission
from ostler.core.protocols import ToolContext, Workspace
from ostler.core.tools import ToolResult
from ostler.tools.path_needs import read_needs
from ostler.tools.protocol.protocol_tool import ProtocolTool


class ReadTextFileParams(msgspec.Struct):
    path: str
    line: int | None = None
    limit: int | None = None


class ReadTextFileTool(ProtocolTool[ReadTextFileParams]):
    name = "read_text_file"
    kind = "read"
    effects = False
    params = ReadTextFileParams

    async def permission(self, params: ReadTextFileParams, workspace: Workspace) -> Permission:
        place, needs = read_needs("read", params.path, workspace)
        return Permission(f"read {place.display_path}", needs)

    async def run(self, params: ReadTextFileParams, context: ToolContext) -> ToolResult:
        file = await context.workspace.read_text(params.path)
        text = select_lines(file.text, params.line, params.limit)
        summary = f"{len(text)} characters of {file.path}"
        return ToolResult("", "ok", summary, Display(summary), {"content": text})


def select_lines(text: str, line: int | None, limit: int | None) -> str:
    """Return at most `limit` lines from `line` (counted from 1) on, with their line endings."""
    if not line and limit is None:
        return text
    first = max((line or 1) - 1, 0)
    lines = text.split("\n")
    last = len(lines) if limit is None else first + max(limit, 0)
    selected = "\n".join(lines[first:last])
    return selected + "\n" if first < last < len(lines) else selected
