"""The tool that writes a whole file."""

import msgspec

from ostler.tools.changes import change_preview, change_result
from ostler.tools.declared import Declared
from ostler.tools.places import writing
from ostler.vocabulary.permission import Permission
from ostler.vocabulary.seams import Ground, ToolContext
from ostler.vocabulary.tools import ToolResult
from ostler.workspace.newlines import in_style


class WriteParams(msgspec.Struct):
    path: str
    content: str
    hunks: list[int] | None = None


class Write(Declared[WriteParams]):
    name = "write"
    kind = "edit"
    params = WriteParams
    unlisted = ("hunks",)

    async def permission(self, params: WriteParams, ground: Ground) -> Permission:
        place, needs = writing("write", params.path, ground)
        return Permission(
            f"write {place.shown}", needs, await change_preview(ground, place, await _content(params, ground))
        )

    async def run(self, params: WriteParams, context: ToolContext) -> ToolResult:
        content = await _content(params, context.ground)
        return change_result(await context.ground.write_text(params.path, content))


async def _content(params: WriteParams, ground: Ground) -> str:
    """All of it, or what the hunks that were taken make of the file."""
    if params.hunks is None:
        return params.content
    from ostler.text.diff import unified
    from ostler.tools.editing.chosen import chosen_text

    file = await ground.read_to_change(params.path)
    after = in_style(params.content, file.newline)
    return chosen_text(params.hunks, file.text, unified(file.text, after, params.path).text)
