"""Searches file contents and names, with ripgrep if available."""

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
    """A pattern, a path, and options of a search."""

    pattern: str
    path: str = "."
    include: str = ""
    type: str = ""
    ignore_case: bool = False
    literal: bool = False
    context: int = 0

    @property
    def has_non_ascii(self) -> bool:
        """Whether the pattern has characters that other encodings store as different bytes."""
        return not self.pattern.isascii() or (not self.literal and bool(_NON_ASCII_ESCAPE.search(self.pattern)))


class SearchRoot(msgspec.Struct, frozen=True):
    """The file or folder to search. `real_path` is its unescaped name in the file system."""

    display_path: str
    real_path: str
    is_file: bool

    def display_path_of(self, relative_path: str) -> str:
        """Return the display path of a file below the root."""
        return relative_path if self.display_path == "." else f"{self.display_path}/{relative_path}"


class SearchLine(msgspec.Struct, frozen=True):
    """A matching line, or a context line if `is_match` is false."""

    path: str
    number: int
    text: str
    is_match: bool = True


class SearchResult(msgspec.Struct):
    """The matches of a search. `stop_reason` is set if it ended early."""

    lines: list[SearchLine] = []
    counts: dict[str, int] = {}
    stop_reason: str = ""

    @property
    def match_count(self) -> int:
        return sum(self.counts.values())


async def search_contents(workspace: Workspace, query: SearchQuery, *, count_only: bool = False) -> SearchResult:
    """Return the matching lines, at most `MAX_LINES`, or only their number per file, sorted by path."""
    root = await resolve_root(workspace, query.path)
    files = FileFilter(query.include, query.type)
    if program := find_ripgrep(workspace.root):
        from ostler.tools.search_ripgrep import rg_search

        result = await rg_search(program, workspace, root, query, files, count_only=count_only)
    else:
        from ostler.tools.search_native import search_tree

        result = await search_tree(workspace, root, query, files, count_only=count_only)
    result.lines.sort(key=lambda line: line.path)
    result.counts = dict(sorted(result.counts.items()))
    return result


async def list_files(workspace: Workspace, path: str) -> list[str]:
    """Return the sorted relative paths of the files in a tree, without git-ignored ones; at most `MAX_FILES`."""
    return sorted(await list_files_named(workspace, path, ()))


async def list_files_named(workspace: Workspace, path: str, names: Sequence[str]) -> list[str]:
    """Return the files in any order; with name globs, files that match none of them may be omitted."""
    root = await resolve_root(workspace, path)
    if root.is_file:
        return []
    program = find_ripgrep(workspace.root)
    if program:
        from ostler.tools.search_ripgrep import rg_list_files

        return await rg_list_files(program, workspace, root, names)
    from ostler.tools.search_native import walk_files

    return await walk_files(workspace, root)


async def list_tree(workspace: Workspace, path: str) -> list[str]:
    """Return the files, folders (`name/`) and links (`name//`) in a directory tree, without git-ignored ones."""
    from ostler.tools.search_native import walk_files

    return await walk_files(workspace, await resolve_root(workspace, path), include_folders=True)


async def has_no_candidate_files(workspace: Workspace, query: SearchQuery) -> bool:
    """Return whether no file matches the globs and the type of a search."""
    root, files = await resolve_root(workspace, query.path), FileFilter(query.include, query.type)
    if root.is_file:
        return not files.matches(root.display_path)
    return not any(
        files.matches(root.display_path_of(path), path)
        for path in await list_files_named(workspace, query.path, files.name_globs())
    )


async def resolve_root(workspace: Workspace, path: str) -> SearchRoot:
    """Resolve the path to search. Raises `PathError` if it cannot be read."""
    place, info = workspace.resolve(path), await workspace.stat(path)
    if info.kind not in ("file", "directory"):
        raise PathError(
            "not_a_file", place.display_path, "this is a pipe, a socket or a device, which is never searched"
        )
    return SearchRoot(place.display_path, unescape_path(place.display_path, workspace.root), info.kind == "file")


def bad_pattern_error(reason: str) -> ToolError:
    """Return the error for an invalid regular expression."""
    hint = "look-around and back-references are not supported; for plain text set literal"
    return ToolError(f"the pattern cannot be used: {reason}", code="bad_pattern", hint=hint)


def find_ripgrep(workspace: str = "") -> str | None:
    """Return the path of the bundled or installed ripgrep, or None; programs in the workspace are ignored."""
    import shutil

    from ostler.processes.command_environment import path_without

    folders = path_without(os.environ.get("PATH", ""), [workspace] if workspace else [])
    return shutil.which("rg", path=os.pathsep.join([str(Path(sys.executable).parent), folders]))
