"""The tool that reads a file: text in numbered windows, images as images, a directory as its listing."""

from typing import Annotated

import msgspec

from ostler.core.display import Display
from ostler.core.errors import PathError
from ostler.core.permission import Permission
from ostler.core.prompt import ImageContent
from ostler.core.protocols import TextFile, ToolContext, Workspace
from ostler.core.tools import ToolResult
from ostler.tools.base_tool import BaseTool
from ostler.tools.list import list_directory
from ostler.tools.path_needs import read_needs
from ostler.tools.similar_paths import similar_paths

LINE_LIMIT = 2000
LINE_WIDTH = 2000
MAX_CHARACTERS = 48_000
MAX_IMAGE_BYTES = 5 * 1024 * 1024
_IMAGE_SIGNATURES = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF8", "image/gif"),
    (8, b"WEBP", "image/webp"),
)


class ReadParams(msgspec.Struct):
    path: str
    line: Annotated[int, msgspec.Meta(ge=1, description="first line to read, from 1")] = 1
    limit: Annotated[int, msgspec.Meta(ge=1, description="how many lines")] = LINE_LIMIT
    max_bytes: Annotated[int, msgspec.Meta(ge=0)] = 0


class ReadTool(BaseTool[ReadParams]):
    name = "read"
    kind = "read"
    effects = False
    unlisted = ("max_bytes",)
    params = ReadParams

    async def permission(self, params: ReadParams, workspace: Workspace) -> Permission:
        place, needs = read_needs("read", params.path, workspace)
        return Permission(f"read {place.display_path}", needs)

    async def run(self, params: ReadParams, context: ToolContext) -> ToolResult:
        workspace = context.workspace
        try:
            return _window_result(await workspace.read_text(params.path), params)
        except PathError as refusal:
            return await _read_non_text(params.path, workspace, refusal)


async def _read_non_text(path: str, workspace: Workspace, error: PathError) -> ToolResult:
    """What there is to tell of a path that is no text: its entries, its picture, or names that are like it."""
    if error.fault.code == "not_a_file" and (await workspace.stat(path)).kind == "directory":
        return await list_directory(workspace, path)
    if error.fault.code == "binary":
        image = await _read_image(path, workspace)
        if image is not None:
            return image
    if error.fault.code == "not_found" and (near := await similar_paths(workspace, path)):
        raise PathError("not_found", error.path, error.reason, hint=f"did you mean {' or '.join(near)}?")
    raise error


async def _read_image(path: str, workspace: Workspace) -> ToolResult | None:
    raw = await workspace.read_bytes(path, MAX_IMAGE_BYTES + 1)
    mime = next((mime for offset, sign, mime in _IMAGE_SIGNATURES if raw.startswith(sign, offset)), "")
    if not mime:
        return None
    shown = workspace.resolve(path).display_path
    if len(raw) > MAX_IMAGE_BYTES:
        hint = "make a smaller copy of it with a command"
        raise PathError("too_large", shown, f"the image is larger than {MAX_IMAGE_BYTES:,} bytes", hint=hint)
    import base64

    image = ImageContent(mime, base64.b64encode(raw).decode(), shown)
    told = f"{shown}: {mime}, {len(raw):,} bytes"
    return ToolResult("", "ok", told, Display(told), {"path": shown, "mime": mime, "size": len(raw)}, (image,))


def _window_result(file: TextFile, params: ReadParams) -> ToolResult:
    lines = split_lines(file.text, file.newline)
    window = _fit_lines(lines[params.line - 1 : params.line - 1 + params.limit], params.max_bytes or MAX_CHARACTERS)
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
    told = _number_lines(file, window, params.line, len(lines))
    return ToolResult("", "ok", told, Display(f"{len(window)} of {len(lines)} lines"), data)


def split_lines(text: str, newline: str) -> list[str]:
    """The lines of a text as editors and compilers count them; a lone CR ends one only in a file of such lines."""
    if newline != "\n":
        text = text.replace("\r\n", "\n")
    if newline == "\r":
        text = text.replace("\r", "\n")
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def _fit_lines(lines: list[str], max_characters: int) -> list[str]:
    """As many of the lines as the budget holds, at least one, each cut to a bearable width."""
    kept: list[str] = []
    for line in lines:
        max_characters -= min(len(line), LINE_WIDTH) + 8
        if max_characters < 0 and kept:
            break
        kept.append(line if len(line) <= LINE_WIDTH else f"{line[:LINE_WIDTH]}… [{len(line) - LINE_WIDTH} more]")
    return kept


def _number_lines(file: TextFile, window: list[str], first: int, total: int) -> str:
    if not total:
        return f"{file.path} is empty."
    if not window:
        return f"{file.path} ends with line {total}; there is no line {first}."
    body = "\n".join(f"{number:6}\t{line}" for number, line in enumerate(window, first))
    last = first + len(window) - 1
    left = f"\n[{total - last} more lines; read on with line={last + 1}]" if last < total else ""
    return f"{_format_note(file)}{body}{left}"


def _format_note(file: TextFile) -> str:
    """What is worth knowing of how the text is stored; nothing for the usual."""
    plain = file.encoding in ("utf-8", "ascii")
    named = {"\r\n": "CRLF line ends", "\r": "CR line ends", "mixed": "mixed line ends"}.get(file.newline, "")
    said = [part for part in ("" if plain else file.encoding, "BOM" if file.bom and plain else "", named) if part]
    return f"[{', '.join(said)}]\n" if said else ""
