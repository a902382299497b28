"""The tool that writes a whole file."""

import msgspec

from ostler.tools.changes import change_preview, change_result
from ostler.tools.declared import Declared
from ostler.tools.places import writing
from ostler.vocabulary.permission import Permission
from ostler.vocabulary.seams import Ground, ToolContext
from ostler.vocabulary.tools import ToolResult


class WriteParams(msgspec.Struct):
    path: str
    content: str


class Write(Declared[WriteParams]):
    name = "write"
    kind = "edit"
    params = WriteParams

    async def permission(self, params: WriteParams, ground: Ground) -> Permission:
        place, needs = writing("write", params.path, ground)
        return Permission(f"write {place.shown}", needs, await change_preview(ground, place, params.content))

    async def run(self, params: WriteParams, context: ToolContext) -> ToolResult:
        return change_result(await context.ground.write_text(params.path, params.content))
