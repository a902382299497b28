"""The tool that reads a file: text in numbered windows, images as images, a directory as its listing."""

from typing import Annotated

import msgspec

from ostler.tools.declared import Declared
from ostler.tools.list import listing
from ostler.tools.near import near_paths
from ostler.tools.places import reading
from ostler.vocabulary.display import Display
from ostler.vocabulary.errors import PathRefused
from ostler.vocabulary.permission import Permission
from ostler.vocabulary.prompt import Image
from ostler.vocabulary.seams import Ground, TextFile, ToolContext
from ostler.vocabulary.tools import ToolResult

LINE_LIMIT = 2000
LINE_WIDTH = 2000
MOST_CHARACTERS = 48_000
LARGEST_IMAGE = 5 * 1024 * 1024
_IMAGES = (
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


class Read(Declared[ReadParams]):
    name = "read"
    kind = "read"
    effects = False
    unlisted = ("max_bytes",)
    params = ReadParams

    async def permission(self, params: ReadParams, ground: Ground) -> Permission:
        place, needs = reading("read", params.path, ground)
        return Permission(f"read {place.shown}", needs)

    async def run(self, params: ReadParams, context: ToolContext) -> ToolResult:
        ground = context.ground
        try:
            return _window(await ground.read_text(params.path), params)
        except PathRefused as refusal:
            return await _instead(params.path, ground, refusal)


async def _instead(path: str, ground: Ground, refusal: PathRefused) -> ToolResult:
    """What there is to tell of a path that is no text: its entries, its picture, or names that are like it."""
    if refusal.fault.code == "not_a_file" and (await ground.stat(path)).kind == "directory":
        return await listing(ground, path)
    if refusal.fault.code == "binary":
        image = await _image(path, ground)
        if image is not None:
            return image
    if refusal.fault.code == "not_found" and (near := await near_paths(ground, path)):
        raise PathRefused("not_found", refusal.path, refusal.reason, hint=f"did you mean {' or '.join(near)}?")
    raise refusal


async def _image(path: str, ground: Ground) -> ToolResult | None:
    raw = await ground.read_bytes(path, LARGEST_IMAGE + 1)
    mime = next((mime for offset, sign, mime in _IMAGES if raw.startswith(sign, offset)), "")
    if not mime:
        return None
    shown = ground.place(path).shown
    if len(raw) > LARGEST_IMAGE:
        hint = "make a smaller copy of it with a command"
        raise PathRefused("too_large", shown, f"the image is larger than {LARGEST_IMAGE:,} bytes", hint=hint)
    import base64

    image = Image(mime, base64.b64encode(raw).decode(), shown)
    told = f"{shown}: {mime}, {len(raw):,} bytes"
    return ToolResult("", "ok", told, Display(told), {"path": shown, "mime": mime, "size": len(raw)}, (image,))


def _window(file: TextFile, params: ReadParams) -> ToolResult:
    lines = split_lines(file.text, file.newline)
    window = _within(lines[params.line - 1 : params.line - 1 + params.limit], params.max_bytes or MOST_CHARACTERS)
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
    told = _numbered(file, window, params.line, len(lines))
    return ToolResult("", "ok", told, Display(f"{len(window)} of {len(lines)} lines"), data)


def split_lines(text: str, newline: str) -> list[str]:
    """The lines of a text as editors and compilers count them; a lone CR ends one only in a file of such lines."""
    if newline != "\n":
        text = text.replace("\r\n", "\n")
    if newline == "\r":
        text = text.replace("\r", "\n")
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def _within(lines: list[str], most: int) -> list[str]:
    """As many of the lines as the budget holds, at least one, each cut to a bearable width."""
    kept: list[str] = []
    for line in lines:
        most -= min(len(line), LINE_WIDTH) + 8
        if most < 0 and kept:
            break
        kept.append(line if len(line) <= LINE_WIDTH else f"{line[:LINE_WIDTH]}… [{len(line) - LINE_WIDTH} more]")
    return kept


def _numbered(file: TextFile, window: list[str], first: int, total: int) -> str:
    if not total:
        return f"{file.path} is empty."
    if not window:
        return f"{file.path} ends with line {total}; there is no line {first}."
    body = "\n".join(f"{number:6}\t{line}" for number, line in enumerate(window, first))
    last = first + len(window) - 1
    left = f"\n[{total - last} more lines; read on with line={last + 1}]" if last < total else ""
    return f"{_form(file)}{body}{left}"


def _form(file: TextFile) -> str:
    """What is worth knowing of how the text is stored; nothing for the usual."""
    plain = file.encoding in ("utf-8", "ascii")
    named = {"\r\n": "CRLF line ends", "\r": "CR line ends", "mixed": "mixed line ends"}.get(file.newline, "")
    said = [part for part in ("" if plain else file.encoding, "BOM" if file.bom and plain else "", named) if part]
    return f"[{', '.join(said)}]\n" if said else ""
