"""Tool that writes a complete file."""

import msgspec

from ostler.core.permission import Permission
from ostler.core.protocols import ToolContext, Workspace
from ostler.core.tools import ToolResult
from ostler.tools.base_tool import BaseTool
from ostler.tools.change_display import change_preview, change_result
from ostler.tools.path_needs import write_needs
from ostler.workspace.newlines import with_newline


class WriteParams(msgspec.Struct):
    path: str
    content: str
    hunks: list[int] | None = None


class WriteTool(BaseTool[WriteParams]):
    name = "write"
    params = WriteParams
    unlisted = ("hunks",)

    async def permission(self, params: WriteParams, workspace: Workspace) -> Permission:
        place, needs = write_needs("write", params.path, workspace)
        return Permission(
            f"write {place.display_path}",
            needs,
            await change_preview(workspace, place, await _new_content(params, workspace)),
        )

    async def run(self, params: WriteParams, context: ToolContext) -> ToolResult:
        content = await _new_content(params, context.workspace)
        return change_result(await context.workspace.write_text(params.path, content))


async def _new_content(params: WriteParams, workspace: Workspace) -> str:
    """Return the new content of the file, with only the selected hunks applied if there is a selection."""
    if params.hunks is None:
        return params.content
    from ostler.text.diff import unified_diff
    from ostler.tools.editing.selected_hunks import text_with_hunks

    file = await workspace.read_for_edit(params.path)
    after = with_newline(params.content, file.newline)
    return text_with_hunks(params.hunks, file.text, unified_diff(file.text, after, params.path).text)
