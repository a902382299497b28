"""The tool that lists a directory, or the tree below it."""

from collections import Counter
from typing import Annotated, Any

import msgspec

from ostler.tools.declared import Declared
from ostler.tools.places import reading
from ostler.tools.search import tree_below
from ostler.vocabulary.display import Display
from ostler.vocabulary.errors import PathRefused
from ostler.vocabulary.permission import Permission
from ostler.vocabulary.seams import Entry, Ground, ToolContext
from ostler.vocabulary.tools import ToolResult

LIMIT = 1000


class ListParams(msgspec.Struct):
    path: str = "."
    depth: Annotated[int, msgspec.Meta(ge=1, le=20)] = 1
    limit: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = LIMIT

    def __post_init__(self) -> None:
        self.path = self.path or "."


class List(Declared[ListParams]):
    name = "list"
    kind = "read"
    effects = False
    unlisted = ("limit",)
    params = ListParams

    async def permission(self, params: ListParams, ground: Ground) -> Permission:
        place, needs = reading("list", params.path, ground)
        return Permission(f"list {place.shown}", needs)

    async def run(self, params: ListParams, context: ToolContext) -> ToolResult:
        if (await context.ground.stat(params.path)).kind == "file":
            shown = context.ground.place(params.path).shown
            raise PathRefused("not_a_directory", shown, "this is a file", hint="read it instead")
        if params.depth == 1:
            return await listing(context.ground, params.path, params.limit)
        return await _tree(context.ground, params)


async def listing(ground: Ground, path: str, limit: int = LIMIT) -> ToolResult:
    """What a directory holds, git's own folder left out."""
    entries = [entry for entry in await ground.entries(path) if entry.name != ".git"]
    shown = ground.place(path).shown
    base = "" if shown == "." else f"{shown}/"
    items = [_item(base + entry.name, entry.kind == "directory", entry.size) for entry in entries[:limit]]
    return _result(shown, [_line(entry) for entry in entries[:limit]], items, len(entries))


def _line(entry: Entry) -> str:
    mark = {"directory": "/", "link": "@", "other": "?"}.get(entry.kind, "")
    size = f"  {entry.size}" if entry.kind == "file" else ""
    return f"{entry.name}{mark}{size}"


async def _tree(ground: Ground, params: ListParams) -> ToolResult:
    """What there is down to a depth, each below its own; a directory that is not entered tells its count."""
    await ground.entries(params.path)  # refuses what is no directory
    shown = ground.place(params.path).shown
    base = "" if shown == "." else f"{shown}/"
    lines, items = [], []
    for path, files in _nodes(await tree_below(ground, params.path), params.depth).items():
        plain, mark = path.rstrip("/"), "@" if path.endswith("//") else "/" if path.endswith("/") else ""
        name = "  " * plain.count("/") + plain.rpartition("/")[2]
        lines.append(f"{name}{mark}  ({files} files)" if files else f"{name}{mark}")
        items.append(_item(base + plain, mark == "/", None))
    return _result(shown, lines[: params.limit], items[: params.limit], len(lines))


def _nodes(paths: list[str], depth: int) -> dict[str, int]:
    """The paths (folders with a slash, links with two) down to a depth, with how many files a closed one holds."""
    nodes: Counter[str] = Counter()
    for path in sorted(paths):
        parts = path.rstrip("/").split("/")
        if len(parts) <= depth:
            nodes[path] += 0
        else:
            nodes["/".join(parts[:depth]) + "/"] += not path.endswith("/")
    return dict(nodes)


def _item(path: str, is_directory: bool, size: int | None) -> dict[str, Any]:
    return {"name": path.rpartition("/")[2], "path": path, "is_dir": is_directory, "size_bytes": size}


def _result(shown: str, lines: list[str], items: list[dict[str, Any]], total: int) -> ToolResult:
    left = f"\n[{total - len(lines)} more entries]" if total > len(lines) else ""
    text = "\n".join(lines) + left
    data = {"path": shown, "items": items, "count": total, "truncated": bool(left)}
    return ToolResult("", "ok", text or "(empty)", Display(f"{total} entries"), data)
