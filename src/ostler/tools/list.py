"""Tool that lists a directory or the tree below it."""

from collections import Counter
from typing import Annotated, Any

import msgspec

from ostler.core.display import Display
from ostler.core.errors import PathError
from ostler.core.permission import Permission
from ostler.core.protocols import DirectoryEntry, ToolContext, Workspace
from ostler.core.tools import ToolResult
from ostler.tools.base_tool import BaseTool
from ostler.tools.path_needs import read_needs
from ostler.tools.search import list_tree

LIMIT = 1000


class ListParams(msgspec.Struct):
    path: str = "."
    depth: Annotated[int, msgspec.Meta(ge=1, le=20)] = 1
    limit: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = LIMIT

    def __post_init__(self) -> None:
        self.path = self.path or "."


class ListTool(BaseTool[ListParams]):
    name = "list"
    unlisted = ("limit",)
    params = ListParams

    async def permission(self, params: ListParams, workspace: Workspace) -> Permission:
        place, needs = read_needs("list", params.path, workspace)
        return Permission(f"list {place.display_path}", needs)

    async def run(self, params: ListParams, context: ToolContext) -> ToolResult:
        if (await context.workspace.stat(params.path)).kind == "file":
            display_path = context.workspace.resolve(params.path).display_path
            raise PathError("not_a_directory", display_path, "this is a file", hint="read it instead")
        if params.depth == 1:
            return await list_directory(context.workspace, params.path, params.limit)
        return await _tree_result(context.workspace, params)


async def list_directory(workspace: Workspace, path: str, limit: int = LIMIT) -> ToolResult:
    """Return the listing of a directory, without `.git`."""
    entries = [entry for entry in await workspace.entries(path) if entry.name != ".git"]
    display_path = workspace.resolve(path).display_path
    base = "" if display_path == "." else f"{display_path}/"
    items = [_item_data(base + entry.name, entry.kind == "directory", entry.size) for entry in entries[:limit]]
    return _listing_result(display_path, [_entry_line(entry) for entry in entries[:limit]], items, len(entries))


def _entry_line(entry: DirectoryEntry) -> str:
    mark = {"directory": "/", "link": "@", "other": "?"}.get(entry.kind, "")
    size = f"  {entry.size}" if entry.kind == "file" else ""
    return f"{entry.name}{mark}{size}"


async def _tree_result(workspace: Workspace, params: ListParams) -> ToolResult:
    """Return the tree down to a depth; a folder at that depth shows its number of files."""
    await workspace.entries(params.path)  # raises if it is not a directory
    display_path = workspace.resolve(params.path).display_path
    base = "" if display_path == "." else f"{display_path}/"
    lines, items = [], []
    for path, files in _collapse_tree(await list_tree(workspace, params.path), params.depth).items():
        plain, mark = path.rstrip("/"), "@" if path.endswith("//") else "/" if path.endswith("/") else ""
        name = "  " * plain.count("/") + plain.rpartition("/")[2]
        lines.append(f"{name}{mark}  ({files} files)" if files else f"{name}{mark}")
        items.append(_item_data(base + plain, mark == "/", None))
    return _listing_result(display_path, lines[: params.limit], items[: params.limit], len(lines))


def _collapse_tree(paths: list[str], depth: int) -> dict[str, int]:
    """Return the paths down to a depth (`folder/`, `link//`), with the file count of folders at that depth."""
    nodes: Counter[str] = Counter()
    for path in sorted(paths):
        parts = path.rstrip("/").split("/")
        if len(parts) <= depth:
            nodes[path] += 0
        else:
            nodes["/".join(parts[:depth]) + "/"] += not path.endswith("/")
    return dict(nodes)


def _item_data(path: str, is_directory: bool, size: int | None) -> dict[str, Any]:
    return {"name": path.rpartition("/")[2], "path": path, "is_dir": is_directory, "size_bytes": size}


def _listing_result(display_path: str, lines: list[str], items: list[dict[str, Any]], total: int) -> ToolResult:
    more = f"\n[{total - len(lines)} more entries]" if total > len(lines) else ""
    text = "\n".join(lines) + more
    data = {"path": display_path, "items": items, "count": total, "truncated": bool(more)}
    return ToolResult("", "ok", text or "(empty)", Display(f"{total} entries"), data)
