"""Tool that reads a file: text with line numbers, images, or a directory listing."""

from typing import Annotated

import msgspec

from ostler.core.display import Display
from ostler.core.errors import PathError
from ostler.core.permission import Permission
from ostler.core.protocols import TextFile, ToolContext, Workspace
from ostler.core.tools import ToolResult
from ostler.tools.base_tool import BaseTool
from ostler.tools.list import list_directory
from ostler.tools.path_needs import read_needs
from ostler.tools.search import list_files

LINE_LIMIT = 2000
LINE_WIDTH = 2000
MAX_CHARACTERS = 48_000
_MAX_SUGGESTIONS = 3


class ReadParams(msgspec.Struct):
    path: str
    line: Annotated[int, msgspec.Meta(ge=1, description="first line to read, from 1")] = 1
    limit: Annotated[int, msgspec.Meta(ge=1, description="how many lines")] = LINE_LIMIT
    max_bytes: Annotated[int, msgspec.Meta(ge=0)] = 0


class ReadTool(BaseTool[ReadParams]):
    name = "read"
    unlisted = ("max_bytes",)
    params = ReadParams

    async def permission(self, params: ReadParams, workspace: Workspace) -> Permission:
        place, needs = read_needs("read", params.path, workspace)
        return Permission(f"read {place.display_path}", needs)

    async def run(self, params: ReadParams, context: ToolContext) -> ToolResult:
        workspace = context.workspace
        try:
            return _window_result(await workspace.read_text(params.path), params)
        except PathError as error:
            return await _read_non_text(params.path, workspace, error)


async def _read_non_text(path: str, workspace: Workspace, error: PathError) -> ToolResult:
    """Return a directory listing or an image; otherwise raise the error, with similar paths if it was not found."""
    if error.fault.code == "not_a_file" and (await workspace.stat(path)).kind == "directory":
        return await list_directory(workspace, path)
    if error.fault.code == "binary":
        image = await _read_image(path, workspace)
        if image is not None:
            return image
    if error.fault.code == "not_found" and (suggestions := await _similar_paths(workspace, path)):
        raise PathError("not_found", error.path, error.reason, hint=f"did you mean {' or '.join(suggestions)}?")
    raise error


async def _similar_paths(workspace: Workspace, path: str) -> list[str]:
    """Return a few paths of the workspace that may have been intended, best first."""
    place = workspace.resolve(path)
    if not place.in_workspace:
        return []
    folder, _, name = place.display_path.rpartition("/")
    candidates = [await _similar_neighbour(workspace, folder, name)]
    same_name = [file for file in await list_files(workspace, ".") if file.rpartition("/")[2].lower() == name.lower()]
    candidates += sorted(same_name, key=lambda file: (_count_different_folders(file, place.display_path), file))
    return list(dict.fromkeys(file for file in candidates if file))[:_MAX_SUGGESTIONS]


async def _similar_neighbour(workspace: Workspace, folder: str, name: str) -> str:
    from ostler.text.closest_name import closest_name

    try:
        entries = await workspace.entries(folder or ".")
    except PathError:
        return ""
    suggestion = closest_name(name, (entry.name for entry in entries))
    return f"{folder}/{suggestion}".lstrip("/") if suggestion else ""


def _count_different_folders(path: str, other: str) -> int:
    return len(set(path.split("/")) ^ set(other.split("/")))


async def _read_image(path: str, workspace: Workspace) -> ToolResult | None:
    from ostler.workspace.images import read_image  # imported late: most calls read text

    if (found := await read_image(path, workspace)) is None:
        return None
    image, size = found
    text = f"{image.name}: {image.mime}, {size:,} bytes"
    return ToolResult("", "ok", text, Display(text), {"path": image.name, "mime": image.mime, "size": size}, (image,))


def _window_result(file: TextFile, params: ReadParams) -> ToolResult:
    lines = split_lines(file.text, file.newline)
    window = _fit_lines(lines[params.line - 1 : params.line - 1 + params.limit], MAX_CHARACTERS)
    if params.max_bytes:
        window = _fit_bytes(window, params.max_bytes)
    last = params.line + len(window) - 1
    data = {
        "path": file.path,
        "content": "\n".join(window),
        "line": params.line,
        "lines": len(lines),
        "encoding": file.encoding,
        "newline": file.newline,
        "truncated": last < len(lines),
    }
    text = _number_lines(file, window, params.line, len(lines))
    return ToolResult("", "ok", text, Display(f"{len(window)} of {len(lines)} lines"), data)


def split_lines(text: str, newline: str) -> list[str]:
    """Split a text into lines as editors and compilers do; a lone CR ends a line only if `newline` is CR."""
    if newline != "\n":
        text = text.replace("\r\n", "\n")
    if newline == "\r":
        text = text.replace("\r", "\n")
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def _fit_lines(lines: list[str], max_characters: int) -> list[str]:
    """Return the lines that fit the character budget, at least one; long lines are truncated."""
    fitting: list[str] = []
    for line in lines:
        max_characters -= min(len(line), LINE_WIDTH) + 8
        if max_characters < 0 and fitting:
            break
        fitting.append(line if len(line) <= LINE_WIDTH else f"{line[:LINE_WIDTH]}… [{len(line) - LINE_WIDTH} more]")
    return fitting


def _fit_bytes(lines: list[str], max_bytes: int) -> list[str]:
    """Return the lines that fit, or else the part of the first one that does."""
    fitting: list[str] = []
    for line in lines:
        data = line.encode("utf-8", "replace")
        if len(data) > max_bytes:
            note = f"… [{len(data) - max_bytes} more bytes]"
            return fitting or [data[:max_bytes].decode("utf-8", "ignore") + note]
        fitting.append(line)
        max_bytes -= len(data) + 1
    return fitting


def _number_lines(file: TextFile, window: list[str], first: int, total: int) -> str:
    if not total:
        return f"{file.path} is empty."
    if not window:
        return f"{file.path} ends with line {total}; there is no line {first}."
    body = "\n".join(f"{number:6}\t{line}" for number, line in enumerate(window, first))
    last = first + len(window) - 1
    more = f"\n[{total - last} more lines; continue with line={last + 1}]" if last < total else ""
    return f"{_format_note(file)}{body}{more}"


def _format_note(file: TextFile) -> str:
    """Return a note about an unusual encoding or line endings, or an empty string."""
    is_utf8 = file.encoding in ("utf-8", "ascii")
    newlines = {"\r\n": "CRLF line endings", "\r": "CR line endings", "mixed": "mixed line endings"}.get(
        file.newline, ""
    )
    notes = ["" if is_utf8 else file.encoding, "BOM" if file.bom and is_utf8 else "", newlines]
    return f"[{', '.join(filter(None, notes))}]\n" if any(notes) else ""
