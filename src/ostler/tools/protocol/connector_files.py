"""Tools for the file operations that an Agent Zero server requests over its connector.

Their results describe the file as Agent Zero's own client does, with lines that end at LF, CR or both.
"""

import io
from typing import Any

import msgspec

from ostler.core.display import Display
from ostler.core.errors import ToolError
from ostler.core.permission import Permission
from ostler.core.protocols import ToolContext, Workspace
from ostler.core.tools import ToolResult
from ostler.tools.change_display import change_preview, change_result
from ostler.tools.patch import PatchParams, PatchTool
from ostler.tools.path_needs import read_needs, write_needs
from ostler.tools.protocol.protocol_tool import ProtocolTool


class ConnectorReadParams(msgspec.Struct):
    path: str
    line_from: int | None = None
    line_to: int | None = None
    metadata_only: bool = False


class ConnectorReadTool(ProtocolTool[ConnectorReadParams]):
    """Returns numbered lines of a text file, and its metadata, by which the server detects changes."""

    name = "connector_read"
    kind = "read"
    effects = False
    params = ConnectorReadParams

    async def permission(self, params: ConnectorReadParams, workspace: Workspace) -> Permission:
        place, needs = read_needs("read", params.path, workspace)
        return Permission(f"read {place.display_path}", needs)

    async def run(self, params: ConnectorReadParams, context: ToolContext) -> ToolResult:
        file = await context.workspace.read_text(params.path)
        lines = _split_lines(file.text)
        first = max(params.line_from or 1, 1)
        last = min(params.line_to or len(lines), len(lines))
        numbers = range(first, last + 1)
        shown = () if params.metadata_only else numbers
        text = "".join(f"{number:>4} | {_with_lf(lines[number - 1])}" for number in shown)
        data = {
            "total_lines": len(lines),
            "line_from": first,
            "line_to": last,
            "file": await _describe_file(params.path, len(lines), context.workspace),
        }
        return ToolResult("", "ok", text, Display(f"{len(numbers)} lines of {file.path}"), data)


class LineEdit(msgspec.Struct, rename={"first": "from", "last": "to"}):
    """Replaces lines; without `to` the content is inserted before the line, without content the lines are deleted."""

    first: int
    last: int | None = None
    content: str | None = None


class ConnectorWriteParams(msgspec.Struct):
    path: str
    content: str | None = None
    edits: list[LineEdit] | None = None


class ConnectorWriteTool(ProtocolTool[ConnectorWriteParams]):
    """Writes a whole file, or replaces lines by number."""

    name = "connector_write"
    kind = "edit"
    reach = "files"
    params = ConnectorWriteParams

    async def permission(self, params: ConnectorWriteParams, workspace: Workspace) -> Permission:
        place, needs = write_needs("write", params.path, workspace)
        title = f"write {place.display_path}"
        if not place.in_workspace:
            return Permission(title, needs)
        return Permission(title, needs, await change_preview(workspace, place, await _new_text(params, workspace)))

    async def run(self, params: ConnectorWriteParams, context: ToolContext) -> ToolResult:
        text = await _new_text(params, context.workspace)
        written = change_result(await context.workspace.write_text(params.path, text))
        return await _with_description(written, params.path, text, context.workspace)


class ConnectorPatchParams(PatchParams, weakref=True, eq=False, kw_only=True):
    path: str


class ConnectorPatchTool(ProtocolTool[ConnectorPatchParams]):
    """Applies a patch to the file `path`."""

    name = "connector_patch"
    kind = "edit"
    reach = "files"
    params = ConnectorPatchParams
    unlisted = PatchTool.unlisted

    def __init__(self) -> None:
        self._patch = PatchTool()

    async def permission(self, params: ConnectorPatchParams, workspace: Workspace) -> Permission:
        return await self._patch.permission(params, workspace)

    async def run(self, params: ConnectorPatchParams, context: ToolContext) -> ToolResult:
        result = await self._patch.run(params, context)
        file = await context.workspace.read_text(params.path)
        return await _with_description(result, params.path, file.text, context.workspace)


async def _new_text(params: ConnectorWriteParams, workspace: Workspace) -> str:
    if (params.content is None) == (params.edits is None):
        raise ToolError("give either content or edits", code="bad_arguments")
    if params.edits is None:
        return params.content or ""
    file = await workspace.read_for_edit(params.path)
    return edit_lines(file.text, params.edits)


def edit_lines(text: str, edits: list[LineEdit]) -> str:
    """Return the text with the lines replaced. Raises `ToolError` for lines that do not exist or are edited twice."""
    lines = _split_lines(text)
    if not edits:
        raise ToolError("edits must not be empty", code="bad_arguments")
    upper = len(lines) + 2
    for edit in sorted(edits, key=lambda edit: edit.first, reverse=True):
        inserts = edit.last is None and edit.content is not None
        last = edit.first - 1 if inserts else (edit.last or edit.first)
        if edit.first < 1 or (not inserts and last < edit.first) or last > len(lines) or edit.first > len(lines) + 1:
            raise ToolError(f"there are no lines {edit.first} to {last}", code="bad_arguments")
        if last >= upper:
            raise ToolError(f"line {last} is edited twice", code="bad_arguments")
        upper = edit.first
        if edit.first > 1 and edit.content and not lines[edit.first - 2].endswith(("\n", "\r")):
            lines[edit.first - 2] += "\n"
        lines[edit.first - 1 : last] = [edit.content] if edit.content else []
    return "".join(lines)


def _split_lines(text: str) -> list[str]:
    return io.StringIO(text, newline="").readlines()


def _with_lf(line: str) -> str:
    ending = "\n" if line.endswith(("\n", "\r")) else ""
    return line.rstrip("\r\n") + ending


async def _with_description(result: ToolResult, path: str, text: str, workspace: Workspace) -> ToolResult:
    """Return the result of a change with the description of the file, whose text is now `text`."""
    data = result.data if isinstance(result.data, dict) else {}
    file = await _describe_file(path, len(_split_lines(text)), workspace)
    return msgspec.structs.replace(result, data={**data, "file": file})


async def _describe_file(path: str, lines: int, workspace: Workspace) -> dict[str, Any]:
    info = await workspace.stat(path)
    return {"realpath": workspace.resolve(path).absolute, "mtime": info.modified, "total_lines": lines}
