"""Tool that creates a directory."""

import msgspec

from ostler.core.display import Display
from ostler.core.permission import Permission
from ostler.core.protocols import ToolContext, Workspace
from ostler.core.tools import ToolResult
from ostler.tools.base_tool import BaseTool
from ostler.tools.path_needs import write_needs


class MkdirParams(msgspec.Struct):
    path: str


class MkdirTool(BaseTool[MkdirParams]):
    name = "mkdir"
    params = MkdirParams

    async def permission(self, params: MkdirParams, workspace: Workspace) -> Permission:
        place, needs = write_needs("mkdir", params.path, workspace)
        return Permission(f"create {place.display_path}/", needs)

    async def run(self, params: MkdirParams, context: ToolContext) -> ToolResult:
        created = await context.workspace.make_directory(params.path)
        path = context.workspace.resolve(params.path).display_path
        text = f"created {path}/" if created else f"{path}/ already exists"
        return ToolResult("", "ok", text, Display(text), {"path": path, "created": created})
