"""Tool that writes a text file inside the workspace for an ACP agent."""

import msgspec

from ostler.core.permission import Permission
from ostler.core.protocols import ToolContext, Workspace
from ostler.core.tools import ToolResult
from ostler.tools.change_display import change_preview, change_result
from ostler.tools.path_needs import write_needs
from ostler.tools.protocol.protocol_tool import ProtocolTool


class WriteTextFileParams(msgspec.Struct):
    path: str
    content: str


class WriteTextFileTool(ProtocolTool[WriteTextFileParams]):
    name = "write_text_file"
    kind = "edit"
    reach = "files"
    params = WriteTextFileParams

    async def permission(self, params: WriteTextFileParams, workspace: Workspace) -> Permission:
        place, needs = write_needs("write", params.path, workspace)
        return Permission(f"write {place.display_path}", needs, await change_preview(workspace, place, params.content))

    async def run(self, params: WriteTextFileParams, context: ToolContext) -> ToolResult:
        return change_result(await context.workspace.write_text(params.path, params.content))
