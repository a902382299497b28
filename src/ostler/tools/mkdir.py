"""The tool that makes a directory."""

import msgspec

from ostler.tools.declared import Declared
from ostler.tools.places import writing
from ostler.vocabulary.display import Display
from ostler.vocabulary.permission import Permission
from ostler.vocabulary.seams import Ground, ToolContext
from ostler.vocabulary.tools import ToolResult


class MkdirParams(msgspec.Struct):
    path: str


class Mkdir(Declared[MkdirParams]):
    name = "mkdir"
    kind = "edit"
    params = MkdirParams

    async def permission(self, params: MkdirParams, ground: Ground) -> Permission:
        place, needs = writing("mkdir", params.path, ground)
        return Permission(f"make {place.shown}/", needs)

    async def run(self, params: MkdirParams, context: ToolContext) -> ToolResult:
        made = await context.ground.make_directory(params.path)
        shown = context.ground.place(params.path).shown
        told = f"made {shown}/" if made else f"{shown}/ was there already"
        return ToolResult("", "ok", told, Display(told), {"path": shown, "created": made})
