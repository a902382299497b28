"""Search with ripgrep; stops the process as soon as there are enough results."""

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


async def rg_search(
    program: str,
    workspace: Workspace,
    root: SearchRoot,
    query: SearchQuery,
    file_filter: FileFilter,
    *,
    count_only: bool,
) -> SearchResult:
    """Return the matching lines, or only their number per file."""
    result, names = SearchResult(), _NameFilter(root, file_filter)
    records = _RipgrepRecords(workspace, root, _COUNT_FIELDS if count_only else _LINE_FIELDS)
    decoder = _LineDecoder(workspace.root)

    def add_counts(raw: bytes) -> bool:
        for path, count in records.parse(raw):
            if name := names.display_name(path):
                result.counts[name] = int(count)
        return True

    def add_lines(raw: bytes) -> bool:
        for path, lines in _group_by_file(records.parse(raw), names, decoder):
            remaining = MAX_LINES - len(result.lines)
            result.lines += lines[:remaining]
            matches = sum(line.is_match for line in lines[:remaining])
            if matches:
                result.counts[path] = result.counts.get(path, 0) + matches
            if len(lines) >= remaining:
                return False
        return True

    options = ["--count"] if count_only else _line_options(query)
    argv = [program, "--with-filename", *options, *_search_arguments(workspace, root, query, file_filter)]
    result.stop_reason = await _run_ripgrep(argv, workspace.root, add_counts if count_only else add_lines)
    if not count_only:
        _drop_files(result, {names.display_name(path) for path in records.binary_files()})
    _drop_if_binary(result, workspace, root)
    return await _add_legacy_encoded(result, program, workspace, root, query, file_filter, count_only=count_only)


async def _add_legacy_encoded(
    result: SearchResult,
    program: str,
    workspace: Workspace,
    root: SearchRoot,
    query: SearchQuery,
    file_filter: FileFilter,
    *,
    count_only: bool,
) -> SearchResult:
    """Search non-UTF-8 files again in their own encoding, which ripgrep does not detect, and merge the results."""
    if not query.has_non_ascii:
        return result
    paths, names = [], _NameFilter(root, file_filter)

    def on_records(raw: bytes) -> bool:
        for path in raw.split(b"\0"):
            if path and (name := names.display_name(path)):
                paths.append((name, os.path.join(workspace.root, os.fsdecode(path))))
        return len(paths) < MAX_FILES

    type_options = [] if root.is_file else _type_arguments(file_filter.name_globs())
    arguments = [*_common_arguments(workspace), *type_options, "--regexp", NOT_UTF8, "--", root.real_path]
    await _run_ripgrep([program, "--files-with-matches", *arguments], workspace.root, on_records, separator=b"\0")
    other = await search_paths(paths, query, count_only=count_only)
    _drop_files(result, {name for name, _ in paths})
    stop_reason = result.stop_reason or other.stop_reason
    return SearchResult(result.lines + other.lines, result.counts | other.counts, stop_reason)


def _drop_if_binary(result: SearchResult, workspace: Workspace, root: SearchRoot) -> None:
    """Drop the matches if the searched file is binary; ripgrep searches a file given by name past zero bytes."""
    if root.is_file and result.counts and is_binary(os.path.join(workspace.root, root.real_path)):
        _drop_files(result, {root.display_path})


def _drop_files(result: SearchResult, names: set[str]) -> None:
    if names:
        result.lines = [line for line in result.lines if line.path not in names]
        result.counts = {name: count for name, count in result.counts.items() if name not in names}


async def rg_list_files(program: str, workspace: Workspace, root: SearchRoot, names: Sequence[str]) -> list[str]:
    """Return the files in a directory tree, in any order."""
    files: list[str] = []
    prefix = f"\0{_path_prefix(root)}"

    def on_records(raw: bytes) -> bool:
        text = "\0" + raw.decode("utf-8", "surrogateescape")
        paths = text.replace(prefix, "\0").split("\0")[1:-1]
        is_plain = "".join(paths).isprintable() and "\\" not in text
        files.extend(paths if is_plain else map(escape_path, paths))
        return len(files) < MAX_FILES

    argv = [program, "--files", *_common_arguments(workspace), *_type_arguments(names), "--", root.real_path]
    await _run_ripgrep(argv, workspace.root, on_records, separator=b"\0")
    return files[:MAX_FILES]


def _path_prefix(root: SearchRoot) -> str:
    """Return the prefix of every path that ripgrep prints: the path it was given."""
    return root.real_path if root.is_file else f"{root.real_path}/"


class _RipgrepRecords:
    """Parses records of a path, a zero byte and fields; a path may contain line breaks."""

    def __init__(self, workspace: Workspace, root: SearchRoot, fields: bytes) -> None:
        self._root = os.fsencode(workspace.root)
        self._prefix = os.fsencode(_path_prefix(root))
        self._lines = re.compile(rb"(?m)^(%b[^\0\n]*)\0%b$" % (re.escape(self._prefix), fields))
        self._fields = re.compile(rb"\0%b\n" % fields)
        self._incomplete = b""
        self._binary_files: list[bytes] = []

    def binary_files(self) -> list[bytes]:
        """Return the files that turned out to be binary after some of their lines were printed."""
        self._read_warnings(self._incomplete.split(b"\n"))
        return self._binary_files

    def _read_warnings(self, lines: list[bytes]) -> None:
        self._binary_files += [match[1] for line in lines if (match := _BINARY_WARNING.fullmatch(line))]

    def parse(self, raw: bytes) -> list[tuple[bytes, ...]]:
        """Return the complete records; the rest waits for the next call."""
        if not self._incomplete:
            found: list[tuple[bytes, ...]] = self._lines.findall(raw)
            if len(found) == raw.count(b"\n"):
                return found
        raw, offset, found = self._incomplete + raw, 0, []
        for match in self._fields.finditer(raw):
            path = self._extract_path(raw[offset : match.start()])
            if path:
                found.append((path, *match.groups()))
            offset = match.end()
        self._incomplete = raw[offset:]
        return found

    def _extract_path(self, text: bytes) -> bytes:
        """Return the path at the end of the text before a zero byte; lines before it are warnings about other files."""
        lines = text.split(b"\n")
        for first in range(len(lines)):
            path = b"\n".join(lines[first:])
            if path.startswith(self._prefix) and os.path.lexists(os.path.join(self._root, path)):
                self._read_warnings(lines[:first])
                return path
        return b""


class _NameFilter:
    """Converts paths to display paths and filters them; cached per file."""

    def __init__(self, root: SearchRoot, file_filter: FileFilter) -> None:
        self._root = root
        self._file_filter = file_filter
        self._prefix_length = len(os.fsencode(_path_prefix(root)))
        self._cache: dict[bytes, str] = {}

    def display_name(self, raw: bytes) -> str:
        """Return the display path of a file, or an empty string if it does not match the filter."""
        name = self._cache.get(raw)
        if name is None:
            relative_path = escape_path(raw[self._prefix_length :].decode("utf-8", "surrogateescape"))
            name = self._root.display_path if self._root.is_file else self._root.display_path_of(relative_path)
            name = self._cache[raw] = name if self._file_filter.matches(name, relative_path) else ""
        return name


def _line_options(query: SearchQuery) -> list[str]:
    options = ["--line-number", "--no-heading", f"--max-columns={4 * LINE_WIDTH}", "--max-columns-preview"]
    return [*options, f"--context={query.context}", "--no-context-separator"] if query.context else options


def _search_arguments(workspace: Workspace, root: SearchRoot, query: SearchQuery, file_filter: FileFilter) -> list[str]:
    names = [] if root.is_file else file_filter.name_globs()
    case = ["--ignore-case"] if query.ignore_case else []
    literal = ["--fixed-strings"] if query.literal else []
    pattern_and_path = ["--crlf", "--regexp", query.pattern, "--", root.real_path]
    return [*_common_arguments(workspace), *_type_arguments(names), *case, *literal, *pattern_and_path]


def _type_arguments(names: Sequence[str]) -> list[str]:
    """Return arguments that limit the search to files with these names."""
    return [f"--type-add=ostler:{name}" for name in names] + (["--type=ostler"] if names else [])


def _common_arguments(workspace: Workspace) -> list[str]:
    """Return arguments that include hidden files, but not `.git` and git-ignored files (also without a repository)."""
    flags = ["--no-config", "--null", "--color=never", "--hidden", "--no-require-git", "--no-ignore-dot"]
    parents = [] if _has_own_ignore_rules(Path(workspace.root)) else ["--no-ignore-parent"]
    return [*flags, *parents, "--glob=!.git"]


def _has_own_ignore_rules(root: Path) -> bool:
    """Return whether all `.gitignore` files in parent folders belong to the workspace's repository."""
    for folder in (root, *root.parents):
        if (folder / ".git").exists():
            return True
        if folder != root and (folder / ".gitignore").exists():
            return False
    return True


def _group_by_file(
    records: list[tuple[bytes, ...]], names: _NameFilter, decoder: "_LineDecoder"
) -> Iterator[tuple[str, list[SearchLine]]]:
    """Yield the lines of consecutive records of the same file."""
    for path, group in groupby(records, itemgetter(0)):
        name = names.display_name(path)
        if name:
            rows = [(int(number), text.rstrip(b"\r"), mark == b":") for _, number, mark, text in group]
            texts = decoder.decode(path, [text for _, text, _ in rows])
            yield name, [SearchLine(name, row[0], text, row[2]) for row, text in zip(rows, texts, strict=True)]


class _LineDecoder:
    """Decodes lines; the encoding of a non-UTF-8 file is detected once."""

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
    """Run ripgrep, pass its records to `on_records`, and return why it stopped early, or an empty string."""
    result = await run_and_read(
        argv, cwd=cwd, separator=separator, on_records=on_records, timeout_seconds=TIMEOUT_SECONDS
    )
    if result.timed_out:
        return f"stopped after {TIMEOUT_SECONDS:g} seconds"
    if result.status is None:
        return f"stopped after {MAX_LINES:,} lines"
    if result.status == _EXIT_ERROR:
        _raise_pattern_error(result.stderr)
    return f"ripgrep ended early, with {result.status}" if result.status > _EXIT_ERROR else ""


def _raise_pattern_error(stderr: str) -> None:
    """Raise ripgrep's error about the pattern; errors about unreadable files are ignored."""
    lines = [line for line in stderr.splitlines() if line and "(os error" not in line]
    message = next((line for line in lines if line.startswith("error:")), lines[0] if lines else "")
    if message:
        raise bad_pattern_error(message.removeprefix("error:").removeprefix("rg:").strip())
