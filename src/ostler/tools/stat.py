"""The tool that tells what a path is, without reading it."""

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
    kind = "read"
    effects = False
    params = StatParams

    async def permission(self, params: StatParams, workspace: Workspace) -> Permission:
        place, needs = read_needs("stat", params.path, workspace)
        return Permission(f"look at {place.display_path}", needs)

    async def run(self, params: StatParams, context: ToolContext) -> ToolResult:
        found = await context.workspace.stat(params.path)
        changed = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(found.modified))
        told = f"{found.path}: {found.kind}, {found.size:,} bytes, mode {found.mode:04o}, changed {changed}"
        data = {
            "path": found.path,
            "kind": found.kind,
            "is_dir": found.kind == "directory",
            "size_bytes": found.size,
            "mode": f"{found.mode:04o}",
            "modified": changed,
        }
        return ToolResult("", "ok", told, Display(told), data)
