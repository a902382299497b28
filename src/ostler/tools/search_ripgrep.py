"""Searching by ripgrep: one process that prints into our memory, and is ended as soon as there is enough."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from ostler.core.protocols import Workspace
from ostler.tools.legacy_encodings import NOT_UTF8, guess_encoding
from ostler.tools.search import (
    LINE_WIDTH,
    MAX_FILES,
    MAX_LINES,
    TIMEOUT_SECONDS,
    SearchLine,
    SearchQuery,
    SearchResult,
    SearchRoot,
    bad_pattern_error,
)
from ostler.tools.search_globs import FileFilter
from ostler.tools.search_native import is_binary, read_text_bytes, search_paths
from ostler.tools.search_output import run_and_read
from ostler.workspace.paths import escape_path

_EXIT_ERROR = 2
_LINE_FIELDS = rb"(\d+)([:-])([^\n]*)"
_COUNT_FIELDS = rb"(\d+)\r?"
_BINARY_WARNING = re.compile(
    rb"(.+): (?:WARNING: stopped searching binary file after match|binary file matches) \(found .* byte around.*\)"
)


async def rg_find_lines(
    program: str, workspace: Workspace, root: SearchRoot, query: SearchQuery, file_filter: FileFilter
) -> SearchResult:
    """The lines that match."""
    shown = ["--line-number", "--with-filename", "--no-heading", f"--max-columns={4 * LINE_WIDTH}"]
    around = [f"--context={query.context}", "--no-context-separator"] if query.context else []
    found, names, records = (
        SearchResult(),
        _NameFilter(root, file_filter),
        _RipgrepRecords(workspace, root, _LINE_FIELDS),
    )
    encodings = _LineDecoder(workspace.root)

    def take(raw: bytes) -> bool:
        for path, lines in _group_by_file(records.parse(raw), names, encodings):
            room = MAX_LINES - len(found.lines)
            found.lines += lines[:room]
            hits = sum(line.is_match for line in lines[:room])
            if hits:
                found.counts[path] = found.counts.get(path, 0) + hits
            if len(lines) >= room:
                return False
        return True

    argv = [program, *shown, "--max-columns-preview", *around, *_search_arguments(workspace, root, query, file_filter)]
    found.stop_reason = await _run_ripgrep(argv, workspace.root, take)
    _drop_files(found, {names.display_name(path) for path in records.binary_files()})
    _drop_if_binary(found, workspace, root)
    return await _add_legacy_encoded(found, program, workspace, root, query, file_filter)


async def rg_count_lines(
    program: str, workspace: Workspace, root: SearchRoot, query: SearchQuery, file_filter: FileFilter
) -> SearchResult:
    """How many lines match in each file."""
    found, names, records = (
        SearchResult(),
        _NameFilter(root, file_filter),
        _RipgrepRecords(workspace, root, _COUNT_FIELDS),
    )

    def take(raw: bytes) -> bool:
        for path, number in records.parse(raw):
            name = names.display_name(path)
            if name:
                found.counts[name] = int(number)
        return True

    argv = [program, "--count", "--with-filename", *_search_arguments(workspace, root, query, file_filter)]
    found.stop_reason = await _run_ripgrep(argv, workspace.root, take)
    _drop_if_binary(found, workspace, root)
    return await _add_legacy_encoded(found, program, workspace, root, query, file_filter, count_only=True)


async def _add_legacy_encoded(
    found: SearchResult,
    program: str,
    workspace: Workspace,
    root: SearchRoot,
    query: SearchQuery,
    file_filter: FileFilter,
    *,
    count_only: bool = False,
) -> SearchResult:
    """What was found, with files that are no UTF-8 searched in their own encoding, of which ripgrep knows nothing."""
    if not query.has_non_ascii:
        return found
    paths, names = [], _NameFilter(root, file_filter)

    def take(raw: bytes) -> bool:
        for path in raw.split(b"\0"):
            if path and (name := names.display_name(path)):
                paths.append((name, os.path.join(workspace.root, os.fsdecode(path))))
        return len(paths) < MAX_FILES

    hints = [] if root.is_file else _type_arguments(file_filter.name_globs())
    asked = [*_common_arguments(workspace), *hints, "--regexp", NOT_UTF8, "--", root.real_path]
    await _run_ripgrep([program, "--files-with-matches", *asked], workspace.root, take, separator=b"\0")
    other = await search_paths(paths, query, count_only=count_only)
    _drop_files(found, {name for name, _ in paths})
    stopped = found.stop_reason or other.stop_reason
    return SearchResult(found.lines + other.lines, found.counts | other.counts, stopped)


def _drop_if_binary(found: SearchResult, workspace: Workspace, root: SearchRoot) -> None:
    """Take back what was found in a file that was named and is no text: there ripgrep goes on behind a zero byte."""
    if root.is_file and found.counts and is_binary(os.path.join(workspace.root, root.real_path)):
        _drop_files(found, {root.display_path})


def _drop_files(found: SearchResult, names: set[str]) -> None:
    """Take back what was found in some files."""
    if names:
        found.lines = [line for line in found.lines if line.path not in names]
        found.counts = {name: count for name, count in found.counts.items() if name not in names}


async def rg_list_files(program: str, workspace: Workspace, root: SearchRoot, names: Sequence[str]) -> list[str]:
    """The files below a directory, in any order."""
    found: list[str] = []
    prefix = f"\0{_path_prefix(root)}"

    def take(raw: bytes) -> bool:
        text = "\0" + raw.decode("utf-8", "surrogateescape")
        paths = text.replace(prefix, "\0").split("\0")[1:-1]
        plain = "".join(paths).isprintable() and "\\" not in text
        found.extend(paths if plain else map(escape_path, paths))
        return len(found) < MAX_FILES

    argv = [program, "--files", *_common_arguments(workspace), *_type_arguments(names), "--", root.real_path]
    await _run_ripgrep(argv, workspace.root, take, separator=b"\0")
    return found[:MAX_FILES]


def _path_prefix(root: SearchRoot) -> str:
    """How each path begins that ripgrep prints: with the one it was given."""
    return root.real_path if root.is_file else f"{root.real_path}/"


class _RipgrepRecords:
    """What is printed as records: a path, a zero byte, and what a pattern says; a path may hold line ends."""

    def __init__(self, workspace: Workspace, root: SearchRoot, fields: bytes) -> None:
        self._root = os.fsencode(workspace.root)
        self._prefix = os.fsencode(_path_prefix(root))
        self._lines = re.compile(rb"(?m)^(%b[^\0\n]*)\0%b$" % (re.escape(self._prefix), fields))
        self._fields = re.compile(rb"\0%b\n" % fields)
        self._incomplete = b""
        self._binary_files: list[bytes] = []

    def binary_files(self) -> list[bytes]:
        """The files that turned out to be no text after some of their lines were printed."""
        self._read_warnings(self._incomplete.split(b"\n"))
        return self._binary_files

    def _read_warnings(self, lines: list[bytes]) -> None:
        self._binary_files += [found[1] for remark in lines if (found := _BINARY_WARNING.fullmatch(remark))]

    def parse(self, raw: bytes) -> list[tuple[bytes, ...]]:
        """The records that are complete; a path that is cut at a line end waits for its other half."""
        if not self._incomplete:
            found: list[tuple[bytes, ...]] = self._lines.findall(raw)
            if len(found) == raw.count(b"\n"):
                return found
        raw, at, found = self._incomplete + raw, 0, []
        for match in self._fields.finditer(raw):
            path = self._extract_path(raw[at : match.start()])
            if path:
                found.append((path, *match.groups()))
            at = match.end()
        self._incomplete = raw[at:]
        return found

    def _extract_path(self, text: bytes) -> bytes:
        """The path at the end of what stands before a zero byte; lines before it are remarks on other files."""
        lines = text.split(b"\n")
        for first in range(len(lines)):
            path = b"\n".join(lines[first:])
            if path.startswith(self._prefix) and os.path.lexists(os.path.join(self._root, path)):
                self._read_warnings(lines[:first])
                return path
        return b""


class _NameFilter:
    """Paths as they are shown, and whether their files are meant; each is looked at once, not with each line."""

    def __init__(self, root: SearchRoot, file_filter: FileFilter) -> None:
        self._root = root
        self._file_filter = file_filter
        self._prefix_length = len(os.fsencode(_path_prefix(root)))
        self._cache: dict[bytes, str] = {}

    def display_name(self, raw: bytes) -> str:
        """The name of a file that is meant, nothing for another."""
        known = self._cache.get(raw)
        if known is None:
            below = escape_path(raw[self._prefix_length :].decode("utf-8", "surrogateescape"))
            name = self._root.display_path if self._root.is_file else self._root.display_path_of(below)
            known = self._cache[raw] = name if self._file_filter.matches(name, below) else ""
        return known


def _search_arguments(workspace: Workspace, root: SearchRoot, query: SearchQuery, file_filter: FileFilter) -> list[str]:
    names = [] if root.is_file else file_filter.name_globs()
    case = ["--ignore-case"] if query.ignore_case else []
    literal = ["--fixed-strings"] if query.literal else []
    where = ["--crlf", "--regexp", query.pattern, "--", root.real_path]
    return [*_common_arguments(workspace), *_type_arguments(names), *case, *literal, *where]


def _type_arguments(names: Sequence[str]) -> list[str]:
    """Arguments for a quicker search that looks at no file of another name."""
    return [f"--type-add=ostler:{name}" for name in names] + (["--type=ostler"] if names else [])


def _common_arguments(workspace: Workspace) -> list[str]:
    """Hidden files too, but not git's own; what git would ignore is left out, in a repository or not."""
    flags = ["--no-config", "--null", "--color=never", "--hidden", "--no-require-git", "--no-ignore-dot"]
    above = [] if _has_own_ignore_rules(Path(workspace.root)) else ["--no-ignore-parent"]
    return [*flags, *above, "--glob=!.git"]


def _has_own_ignore_rules(root: Path) -> bool:
    """Whether no .gitignore of a folder above counts but those of the repository the workspace is in."""
    for folder in (root, *root.parents):
        if (folder / ".git").exists():
            return True
        if folder != root and (folder / ".gitignore").exists():
            return False
    return True


def _group_by_file(
    records: list[tuple[bytes, ...]], names: _NameFilter, encodings: "_LineDecoder"
) -> Iterator[tuple[str, list[SearchLine]]]:
    """The lines that were printed, in runs of one file."""
    for path, run in groupby(records, itemgetter(0)):
        name = names.display_name(path)
        if name:
            rows = [(int(number), text.rstrip(b"\r"), mark == b":") for _, number, mark, text in run]
            told = encodings.decode(path, [text for _, text, _ in rows])
            yield name, [SearchLine(name, row[0], text, row[2]) for row, text in zip(rows, told, strict=True)]


class _LineDecoder:
    """Lines as text; the encoding of a file that is no UTF-8 is looked for once."""

    def __init__(self, root: str) -> None:
        self._root = os.fsencode(root)
        self._encodings: dict[bytes, str] = {}

    def decode(self, path: bytes, lines: list[bytes]) -> list[str]:
        try:
            return [line.decode() for line in lines]
        except UnicodeDecodeError:
            if path not in self._encodings:
                self._encodings[path] = guess_encoding(read_text_bytes(os.fsdecode(os.path.join(self._root, path))))
            return [line.decode(self._encodings[path], "replace") for line in lines]


async def _run_ripgrep(
    argv: Sequence[str], cwd: str, on_records: Callable[[bytes], bool], separator: bytes = b"\n"
) -> str:
    """Hand over what ripgrep prints, many records at once, while more is wanted; why it ended early, if it did."""
    ended = await run_and_read(
        argv, cwd=cwd, separator=separator, on_records=on_records, timeout_seconds=TIMEOUT_SECONDS
    )
    if ended.timed_out:
        return f"stopped after {TIMEOUT_SECONDS:g} seconds"
    if ended.status is None:
        return f"stopped after {MAX_LINES:,} lines"
    if ended.status == _EXIT_ERROR:
        _raise_pattern_error(ended.stderr)
    return f"ripgrep ended early, with {ended.status}" if ended.status > _EXIT_ERROR else ""


def _raise_pattern_error(stderr: str) -> None:
    """Raise what ripgrep said of the pattern; files that could not be read are no reason to fail."""
    lines = [line for line in stderr.splitlines() if line and "(os error" not in line]
    told = next((line for line in lines if line.startswith("error:")), lines[0] if lines else "")
    if told:
        raise bad_pattern_error(told.removeprefix("error:").removeprefix("rg:").strip())
