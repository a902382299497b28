"""Tool that writes a large file in several calls."""

from typing import Literal

import msgspec

from ostler.core.display import Display, DisplayText
from ostler.core.errors import ToolError
from ostler.core.permission import Permission
from ostler.core.protocols import ToolContext, Workspace
from ostler.core.tools import ToolResult
from ostler.tools.base_tool import BaseTool
from ostler.tools.change_display import change_result
from ostler.tools.path_needs import write_needs

MAX_CHARACTERS = 20 * 1024 * 1024
MAX_FILES = 16
_PREVIEW_LENGTH = 2000


class WriteChunkParams(msgspec.Struct):
    path: str
    content: str
    final: bool = False
    restart: bool = False
    mode: Literal["gather", "append", "overwrite"] = "gather"


class WriteChunkTool(BaseTool[WriteChunkParams]):
    """Collects the pieces of each file in memory until the final one; unfinished files end with the session."""

    name = "write_chunk"
    unlisted = ("mode",)
    params = WriteChunkParams

    def __init__(self) -> None:
        self._pending: dict[str, list[str]] = {}
        self._text_formats: dict[str, tuple[str, str]] = {}
        self._appended_stamps: dict[str, tuple[int, float]] = {}

    async def permission(self, params: WriteChunkParams, workspace: Workspace) -> Permission:
        place, needs = write_needs("write_chunk", params.path, workspace)
        needs = (*write_needs("write", params.path, workspace)[1], *needs)  # a rule against `write` also applies here
        preview = Display(
            f"{len(params.content):,} characters", (DisplayText(params.content[:_PREVIEW_LENGTH], "output"),)
        )
        return Permission(f"write a piece of {place.display_path}", needs, preview)

    async def run(self, params: WriteChunkParams, context: ToolContext) -> ToolResult:
        workspace = context.workspace
        if params.mode == "overwrite":
            return await self._overwrite(params, workspace)
        if params.mode == "append":
            return await self._append(params, workspace)
        return await self._gather(params, workspace)

    async def _gather(self, params: WriteChunkParams, workspace: Workspace) -> ToolResult:
        place = workspace.resolve(params.path)
        if params.restart:
            self._pending.pop(place.absolute, None)
        pieces = [*self._pending.get(place.absolute, ()), params.content]
        size = sum(map(len, pieces))
        if size > MAX_CHARACTERS:
            message = f"{place.display_path} would have {size:,} characters; the maximum is {MAX_CHARACTERS:,}"
            raise ToolError(message, code="too_large", hint="split it into several files")
        if params.final:
            written = await workspace.write_text(params.path, "".join(pieces))
            self._pending.pop(place.absolute, None)
            return change_result(written, [f"{len(pieces)} piece{'' if len(pieces) == 1 else 's'}"])
        if len(self._pending) >= MAX_FILES and place.absolute not in self._pending:
            names = ", ".join(sorted(self._pending))
            raise ToolError(f"{MAX_FILES} files are unfinished: {names}", hint="finish one with final")
        self._pending[place.absolute] = pieces
        text = (
            f"received piece {len(pieces)} of {place.display_path} ({size:,} characters so far); set final on the last"
        )
        return ToolResult(
            "", "ok", text, Display(text), {"path": place.display_path, "pieces": len(pieces), "size": size}
        )

    async def _overwrite(self, params: WriteChunkParams, workspace: Workspace) -> ToolResult:
        """Write the complete file. A file that only this tool changed since does not need to be read first."""
        place = workspace.resolve(params.path)
        stamp = self._appended_stamps.pop(place.absolute, None)
        if stamp and place.exists and stamp == await _file_stamp(params.path, workspace):
            await workspace.read_text(params.path)
        written = await workspace.write_text(params.path, params.content)
        self._text_formats.pop(place.absolute, None)
        return change_result(written)

    async def _append(self, params: WriteChunkParams, workspace: Workspace) -> ToolResult:
        """Append to the file in its own encoding and line endings; on disk when this returns."""
        place = workspace.resolve(params.path)
        if place.exists and place.absolute not in self._text_formats:
            file = await workspace.read_text(params.path)
            self._text_formats[place.absolute] = (file.encoding, file.newline if file.newline == "\r\n" else "\n")
        encoding, newline = self._text_formats.setdefault(place.absolute, ("utf-8", "\n"))
        text = params.content.replace("\r\n", "\n").replace("\n", newline) if newline == "\r\n" else params.content
        try:
            data = text.encode(encoding)
        except (UnicodeEncodeError, LookupError):
            message = f"{place.display_path} uses the encoding {encoding}, which cannot represent this text"
            raise ToolError(message, code="unencodable") from None
        size = await workspace.append_bytes(params.path, data)
        self._appended_stamps[place.absolute] = await _file_stamp(params.path, workspace)
        message = f"appended {len(params.content):,} characters to {place.display_path} ({size:,} bytes now)"
        return ToolResult(
            "", "ok", message, Display(message), {"path": place.display_path, "size": size, "operation": "appended"}
        )


async def _file_stamp(path: str, workspace: Workspace) -> tuple[int, float]:
    info = await workspace.stat(path)
    return info.size, info.modified
