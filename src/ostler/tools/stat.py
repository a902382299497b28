"""The tool that tells what a path is, without reading it."""

import time

import msgspec

from ostler.tools.declared import Declared
from ostler.tools.places import reading
from ostler.vocabulary.display import Display
from ostler.vocabulary.permission import Permission
from ostler.vocabulary.seams import Ground, ToolContext
from ostler.vocabulary.tools import ToolResult


class StatParams(msgspec.Struct):
    path: str


class Stat(Declared[StatParams]):
    name = "stat"
    kind = "read"
    effects = False
    params = StatParams

    async def permission(self, params: StatParams, ground: Ground) -> Permission:
        place, needs = reading("stat", params.path, ground)
        return Permission(f"look at {place.shown}", needs)

    async def run(self, params: StatParams, context: ToolContext) -> ToolResult:
        found = await context.ground.stat(params.path)
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
