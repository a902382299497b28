"""Searching the workspace for lines and files: by ripgrep where there is one, else by ourselves."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ostler.text.regex import regex
from ostler.tools.search_globs import Files
from ostler.vocabulary.errors import PathRefused, ToolFailure
from ostler.vocabulary.seams import Ground
from ostler.workspace.paths import meant

MOST = 10_000
MOST_FILES = 100_000
LINE_WIDTH = 500
SECONDS = 30.0
_BEYOND_ASCII = regex(r"\\[xupP]")


class Query(msgspec.Struct, frozen=True):
    """What is looked for, and where."""

    pattern: str
    path: str = "."
    include: str = ""
    type: str = ""
    ignore_case: bool = False
    literal: bool = False
    context: int = 0

    @property
    def beyond_ascii(self) -> bool:
        """Whether it asks for letters that other encodings write in other bytes."""
        return not self.pattern.isascii() or (not self.literal and bool(_BEYOND_ASCII.search(self.pattern)))


class Top(msgspec.Struct, frozen=True):
    """Where a search begins: a path as it is shown, how the system names it, and whether it is one file."""

    shown: str
    real: str
    is_file: bool

    def named(self, below: str) -> str:
        """How a file is shown that lies at a path below."""
        return below if self.shown == "." else f"{self.shown}/{below}"


class Line(msgspec.Struct, frozen=True):
    """A line that matched, or one of the lines around it."""

    path: str
    number: int
    text: str
    hit: bool = True


class Found(msgspec.Struct):
    """What a search found; `stopped` says why it ended before it had seen everything."""

    lines: list[Line] = []
    counts: dict[str, int] = {}
    stopped: str = ""

    @property
    def hits(self) -> int:
        return sum(self.counts.values())


async def matching_lines(ground: Ground, query: Query) -> Found:
    """The lines below a path that match, by path and number; at most so many."""
    top = await top_of(ground, query.path)
    files = Files(query.include, query.type)
    program = ripgrep(ground.root)
    if program:
        from ostler.tools.search_ripgrep import find

        found = await find(program, ground, top, query, files)
    else:
        from ostler.tools.search_native import find_lines

        found = await find_lines(ground, top, query, files)
    found.lines.sort(key=lambda line: line.path)
    return found


async def matching_files(ground: Ground, query: Query) -> Found:
    """How many lines match in each file below a path, by path."""
    top = await top_of(ground, query.path)
    files = Files(query.include, query.type)
    program = ripgrep(ground.root)
    if program:
        from ostler.tools.search_ripgrep import count

        found = await count(program, ground, top, query, files)
    else:
        from ostler.tools.search_native import count_lines

        found = await count_lines(ground, top, query, files)
    found.counts = dict(sorted(found.counts.items()))
    return found


async def files_below(ground: Ground, path: str) -> list[str]:
    """The files below a directory as paths from it, sorted, without what git ignores; at most so many."""
    return sorted(await files_named(ground, path, ()))


async def files_named(ground: Ground, path: str, names: Sequence[str]) -> list[str]:
    """The same in any order; those whose names match none of these globs may be left out, if there are globs."""
    top = await top_of(ground, path)
    if top.is_file:
        return []
    program = ripgrep(ground.root)
    if program:
        from ostler.tools.search_ripgrep import files

        return await files(program, ground, top, names)
    from ostler.tools.search_native import files_of

    return await files_of(ground, top)


async def tree_below(ground: Ground, path: str) -> list[str]:
    """The files, folders (`name/`) and links (`name//`) below a directory, by name, without what git ignores."""
    from ostler.tools.search_native import files_of

    return await files_of(ground, await top_of(ground, path), folders=True)


async def is_about_no_file(ground: Ground, query: Query) -> bool:
    """Whether the globs and the type of a search leave nothing to look at."""
    top, files = await top_of(ground, query.path), Files(query.include, query.type)
    if top.is_file:
        return not files.allow(top.shown)
    return not any(
        files.allow(top.named(below), below) for below in await files_named(ground, query.path, files.last_names())
    )


async def top_of(ground: Ground, path: str) -> Top:
    """The place a search begins at; refused like any other read."""
    place, found = ground.place(path), await ground.stat(path)
    if found.kind not in ("file", "directory"):
        raise PathRefused("not_a_file", place.shown, "this is a pipe, a socket or a device, which is never searched")
    return Top(place.shown, meant(place.shown, ground.root), found.kind == "file")


def bad_pattern(why: str) -> ToolFailure:
    """The failure of a pattern that is no regular expression as both searches read one."""
    hint = "look-around and back-references do not exist here; for a text as it stands set literal"
    return ToolFailure(f"the pattern cannot be used: {why}", code="bad_pattern", hint=hint)


def ripgrep(workspace: str = "") -> str | None:
    """The ripgrep that came with us, else the machine's; never one that the workspace brings along."""
    import shutil

    from ostler.processes.environment import path_without

    folders = path_without(os.environ.get("PATH", ""), [workspace] if workspace else [])
    return shutil.which("rg", path=os.pathsep.join([str(Path(sys.executable).parent), folders]))
