"""Tool that shows a path's type, size, mode and modification time."""

import time

import msgspec

from ostler.core.display import Display
from ostler.core.permission import Permission
from ostler.core.protocols import ToolContext, Workspace
from ostler.core.tools import ToolResult
from ostler.tools.base_tool import BaseTool
from ostler.tools.path_needs import read_needs


class StatParams(msgspec.Struct):
    path: str


class StatTool(BaseTool[StatParams]):
    name = "stat"
    params = StatParams

    async def permission(self, params: StatParams, workspace: Workspace) -> Permission:
        place, needs = read_needs("stat", params.path, workspace)
        return Permission(f"stat {place.display_path}", needs)

    async def run(self, params: StatParams, context: ToolContext) -> ToolResult:
        info = await context.workspace.stat(params.path)
        changed = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(info.modified))
        text = f"{info.path}: {info.kind}, {info.size:,} bytes, mode {info.mode:04o}, changed {changed}"
        data = {
            "path": info.path,
            "kind": info.kind,
            "is_dir": info.kind == "directory",
            "size_bytes": info.size,
            "mode": f"{info.mode:04o}",
            "modified": changed,
        }
        return ToolResult("", "ok", text, Display(text), data)
