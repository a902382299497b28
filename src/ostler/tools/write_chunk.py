"""The tool that writes a large file in pieces: gathered until the last one, or put on disk one by one."""

from typing import Literal

import msgspec

from ostler.tools.changes import change_result
from ostler.tools.declared import Declared
from ostler.tools.places import writing
from ostler.vocabulary.display import Display, Note
from ostler.vocabulary.errors import ToolFailure
from ostler.vocabulary.permission import Permission
from ostler.vocabulary.seams import Ground, ToolContext
from ostler.vocabulary.tools import ToolResult

MOST_CHARACTERS = 20 * 1024 * 1024
MOST_FILES = 16
_PREVIEW = 2000


class WriteChunkParams(msgspec.Struct):
    path: str
    content: str
    final: bool = False
    restart: bool = False
    mode: Literal["gather", "append", "overwrite"] = "gather"


class WriteChunk(Declared[WriteChunkParams]):
    """Pieces wait in memory, per file, until their last; with the session they are gone."""

    name = "write_chunk"
    kind = "edit"
    unlisted = ("mode",)
    params = WriteChunkParams

    def __init__(self) -> None:
        self._waiting: dict[str, list[str]] = {}
        self._forms: dict[str, tuple[str, str]] = {}
        self._appended: dict[str, tuple[int, float]] = {}

    async def permission(self, params: WriteChunkParams, ground: Ground) -> Permission:
        place, needs = writing("write_chunk", params.path, ground)
        needs = (*writing("write", params.path, ground)[1], *needs)  # whoever forbids writing forbids this too
        preview = Display(f"{len(params.content):,} characters", (Note(params.content[:_PREVIEW], "output"),))
        return Permission(f"write a piece of {place.shown}", needs, preview)

    async def run(self, params: WriteChunkParams, context: ToolContext) -> ToolResult:
        ground = context.ground
        if params.mode == "overwrite":
            return await self._overwrite(params, ground)
        if params.mode == "append":
            return await self._append(params, ground)
        return await self._gather(params, ground)

    async def _gather(self, params: WriteChunkParams, ground: Ground) -> ToolResult:
        place = ground.place(params.path)
        if params.restart:
            self._waiting.pop(place.absolute, None)
        pieces = [*self._waiting.get(place.absolute, ()), params.content]
        size = sum(map(len, pieces))
        if size > MOST_CHARACTERS:
            said = f"{place.shown} would have {size:,} characters, and {MOST_CHARACTERS:,} is the most"
            raise ToolFailure(said, code="too_large", hint="make several files of it")
        if params.final:
            written = await ground.write_text(params.path, "".join(pieces))
            self._waiting.pop(place.absolute, None)
            return change_result(written, [f"{len(pieces)} pieces"])
        if len(self._waiting) >= MOST_FILES and place.absolute not in self._waiting:
            names = ", ".join(sorted(self._waiting))
            raise ToolFailure(f"{MOST_FILES} files wait for their last piece: {names}", hint="finish one with final")
        self._waiting[place.absolute] = pieces
        told = f"piece {len(pieces)} of {place.shown} waits ({size:,} characters in all) for the final one"
        return ToolResult("", "ok", told, Display(told), {"path": place.shown, "pieces": len(pieces), "size": size})

    async def _overwrite(self, params: WriteChunkParams, ground: Ground) -> ToolResult:
        """The whole file; one that stands as our own pieces left it counts as read."""
        place = ground.place(params.path)
        mine = self._appended.pop(place.absolute, None)
        if mine and place.exists and mine == await _stamp(params.path, ground):
            await ground.read_text(params.path)
        written = await ground.write_text(params.path, params.content)
        self._forms.pop(place.absolute, None)
        return change_result(written)

    async def _append(self, params: WriteChunkParams, ground: Ground) -> ToolResult:
        """At the end of the file, in the form it has; on disk when this returns."""
        place = ground.place(params.path)
        if place.exists and place.absolute not in self._forms:
            file = await ground.read_text(params.path)
            self._forms[place.absolute] = (file.encoding, file.newline if file.newline == "\r\n" else "\n")
        encoding, newline = self._forms.setdefault(place.absolute, ("utf-8", "\n"))
        text = params.content.replace("\r\n", "\n").replace("\n", newline) if newline == "\r\n" else params.content
        try:
            data = text.encode(encoding)
        except (UnicodeEncodeError, LookupError):
            said = f"{place.shown} is stored as {encoding}, which cannot hold this text"
            raise ToolFailure(said, code="unencodable") from None
        size = await ground.append_bytes(params.path, data)
        self._appended[place.absolute] = await _stamp(params.path, ground)
        told = f"appended {len(params.content):,} characters to {place.shown} ({size:,} bytes now)"
        return ToolResult("", "ok", told, Display(told), {"path": place.shown, "size": size, "operation": "appended"})


async def _stamp(path: str, ground: Ground) -> tuple[int, float]:
    found = await ground.stat(path)
    return found.size, found.modified
