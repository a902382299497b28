"""Writes a whole text file for an agent, inside the workspace."""

import msgspec

from ostler.tools.changes import change_preview, change_result
from ostler.tools.places import writing
from ostler.tools.protocol.declared import ProtocolTool
from ostler.vocabulary.permission import Permission
from ostler.vocabulary.seams import Ground, ToolContext
from ostler.vocabulary.tools import ToolResult


class WriteTextFileParams(msgspec.Struct):
    path: str
    content: str


class WriteTextFile(ProtocolTool[WriteTextFileParams]):
    name = "write_text_file"
    kind = "edit"
    params = WriteTextFileParams

    async def permission(self, params: WriteTextFileParams, ground: Ground) -> Permission:
        place, needs = writing("write", params.path, ground)
        return Permission(f"write {place.shown}", needs, await change_preview(ground, place, params.content))

    async def run(self, params: WriteTextFileParams, context: ToolContext) -> ToolResult:
        return change_result(await context.ground.write_text(params.path, params.content))
