"""Searching the workspace for lines and files: by ripgrep where there is one, else by ourselves."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ostler.core.errors import PathError, ToolError
from ostler.core.protocols import Workspace
from ostler.text.lazy_regex import lazy_regex
from ostler.tools.search_globs import FileFilter
from ostler.workspace.paths import unescape_path

MAX_LINES = 10_000
MAX_FILES = 100_000
LINE_WIDTH = 500
TIMEOUT_SECONDS = 30.0
_NON_ASCII_ESCAPE = lazy_regex(r"\\[xupP]")


class SearchQuery(msgspec.Struct, frozen=True):
    """What is looked for, and where."""

    pattern: str
    path: str = "."
    include: str = ""
    type: str = ""
    ignore_case: bool = False
    literal: bool = False
    context: int = 0

    @property
    def has_non_ascii(self) -> bool:
        """Whether it asks for letters that other encodings write in other bytes."""
        return not self.pattern.isascii() or (not self.literal and bool(_NON_ASCII_ESCAPE.search(self.pattern)))


class SearchRoot(msgspec.Struct, frozen=True):
    """Where a search begins: a path as it is shown, how the system names it, and whether it is one file."""

    display_path: str
    real_path: str
    is_file: bool

    def display_path_of(self, relative_path: str) -> str:
        """How a file is shown that lies at a path below."""
        return relative_path if self.display_path == "." else f"{self.display_path}/{relative_path}"


class SearchLine(msgspec.Struct, frozen=True):
    """A line that matched, or one of the lines around it."""

    path: str
    number: int
    text: str
    is_match: bool = True


class SearchResult(msgspec.Struct):
    """What a search found; `stopped` says why it ended before it had seen everything."""

    lines: list[SearchLine] = []
    counts: dict[str, int] = {}
    stop_reason: str = ""

    @property
    def match_count(self) -> int:
        return sum(self.counts.values())


async def search_lines(workspace: Workspace, query: SearchQuery) -> SearchResult:
    """The lines below a path that match, by path and number; at most so many."""
    top = await resolve_root(workspace, query.path)
    files = FileFilter(query.include, query.type)
    program = find_ripgrep(workspace.root)
    if program:
        from ostler.tools.search_ripgrep import rg_find_lines

        found = await rg_find_lines(program, workspace, top, query, files)
    else:
        from ostler.tools.search_native import find_lines

        found = await find_lines(workspace, top, query, files)
    found.lines.sort(key=lambda line: line.path)
    return found


async def search_counts(workspace: Workspace, query: SearchQuery) -> SearchResult:
    """How many lines match in each file below a path, by path."""
    top = await resolve_root(workspace, query.path)
    files = FileFilter(query.include, query.type)
    program = find_ripgrep(workspace.root)
    if program:
        from ostler.tools.search_ripgrep import rg_count_lines

        found = await rg_count_lines(program, workspace, top, query, files)
    else:
        from ostler.tools.search_native import count_lines

        found = await count_lines(workspace, top, query, files)
    found.counts = dict(sorted(found.counts.items()))
    return found


async def list_files(workspace: Workspace, path: str) -> list[str]:
    """The files below a directory as paths from it, sorted, without what git ignores; at most so many."""
    return sorted(await list_files_named(workspace, path, ()))


async def list_files_named(workspace: Workspace, path: str, names: Sequence[str]) -> list[str]:
    """The same in any order; those whose names match none of these globs may be left out, if there are globs."""
    top = await resolve_root(workspace, path)
    if top.is_file:
        return []
    program = find_ripgrep(workspace.root)
    if program:
        from ostler.tools.search_ripgrep import rg_list_files

        return await rg_list_files(program, workspace, top, names)
    from ostler.tools.search_native import walk_files

    return await walk_files(workspace, top)


async def list_tree(workspace: Workspace, path: str) -> list[str]:
    """The files, folders (`name/`) and links (`name//`) below a directory, by name, without what git ignores."""
    from ostler.tools.search_native import walk_files

    return await walk_files(workspace, await resolve_root(workspace, path), include_folders=True)


async def has_no_candidate_files(workspace: Workspace, query: SearchQuery) -> bool:
    """Whether the globs and the type of a search leave nothing to look at."""
    top, files = await resolve_root(workspace, query.path), FileFilter(query.include, query.type)
    if top.is_file:
        return not files.matches(top.display_path)
    return not any(
        files.matches(top.display_path_of(below), below)
        for below in await list_files_named(workspace, query.path, files.name_globs())
    )


async def resolve_root(workspace: Workspace, path: str) -> SearchRoot:
    """The place a search begins at; refused like any other read."""
    place, found = workspace.resolve(path), await workspace.stat(path)
    if found.kind not in ("file", "directory"):
        raise PathError(
            "not_a_file", place.display_path, "this is a pipe, a socket or a device, which is never searched"
        )
    return SearchRoot(place.display_path, unescape_path(place.display_path, workspace.root), found.kind == "file")


def bad_pattern_error(reason: str) -> ToolError:
    """The failure of a pattern that is no regular expression as both searches read one."""
    hint = "look-around and back-references do not exist here; for a text as it stands set literal"
    return ToolError(f"the pattern cannot be used: {reason}", code="bad_pattern", hint=hint)


def find_ripgrep(workspace: str = "") -> str | None:
    """The ripgrep that came with us, else the machine's; never one that the workspace brings along."""
    import shutil

    from ostler.processes.command_environment import path_without

    folders = path_without(os.environ.get("PATH", ""), [workspace] if workspace else [])
    return shutil.which("rg", path=os.pathsep.join([str(Path(sys.executable).parent), folders]))
