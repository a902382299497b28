"""Reads a text file for an agent, whole or a window of its lines, to the letter."""

import msgspec

from ostler.tools.places import reading
from ostler.tools.protocol.declared import ProtocolTool
from ostler.vocabulary.display import Display
from ostler.vocabulary.permission import Permission
from ostler.vocabulary.seams import Ground, ToolContext
from ostler.vocabulary.tools import ToolResult


class ReadTextFileParams(msgspec.Struct):
    path: str
    line: int | None = None
    limit: int | None = None


class ReadTextFile(ProtocolTool[ReadTextFileParams]):
    name = "read_text_file"
    kind = "read"
    effects = False
    params = ReadTextFileParams

    async def permission(self, params: ReadTextFileParams, ground: Ground) -> Permission:
        place, needs = reading("read", params.path, ground)
        return Permission(f"read {place.shown}", needs)

    async def run(self, params: ReadTextFileParams, context: ToolContext) -> ToolResult:
        file = await context.ground.read_text(params.path)
        text = window(file.text, params.line, params.limit)
        told = f"{len(text)} characters of {file.path}"
        return ToolResult("", "ok", told, Display(told), {"content": text})


def window(text: str, line: int | None, limit: int | None) -> str:
    """The text from a line on, counted from 1, and as many lines of it; each with its end."""
    if not line and limit is None:
        return text
    first = max((line or 1) - 1, 0)
    lines = text.split("\n")
    last = len(lines) if limit is None else first + max(limit, 0)
    cut = "\n".join(lines[first:last])
    return cut + "\n" if first < last < len(lines) else cut
