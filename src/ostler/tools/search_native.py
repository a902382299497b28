"""Search without ripgrep: own directory walk and RE2."""

import asyncio
import os
import re
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, takewhile
from typing import Any, TypeVar

from ostler.core.protocols import Workspace
from ostler.tools.legacy_encodings import guess_encoding, to_utf8
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
from ostler.workspace.paths import unescape_path

T = TypeVar("T")
SearchPath = tuple[str, str]  # display path and real path of a file
_MAX_FILE_BYTES = 64 * 1024 * 1024
_CHUNK_BYTES = 1024 * 1024
_FIRST_READ_BYTES = 32 * 1024
_REGEX_SPECIAL = re.compile(r"[\\.^$*+?{}\[\]|()\n]")
_ESCAPE_SEQUENCE = re.compile(r"\\.")
_OPEN_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_BOMS = ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"), (b"\xef\xbb\xbf", "utf-8"))
_BOM_FIRST_BYTES = (b"\xff", b"\xfe", b"\xef")


async def search_tree(
    workspace: Workspace, root: SearchRoot, query: SearchQuery, file_filter: FileFilter, *, count_only: bool
) -> SearchResult:
    """Return the matching lines of the files below a root, or only their number per file."""
    return await _run_in_thread(
        lambda stop: _NativeSearch(query, _candidate_paths(workspace, root, file_filter, stop)).run(count_only)
    )


async def search_paths(paths: Sequence[SearchPath], query: SearchQuery, *, count_only: bool) -> SearchResult:
    """Search the given files for matching lines, or count them."""
    return await _run_in_thread(
        lambda stop: _NativeSearch(query, takewhile(lambda _: not stop.is_set(), paths)).run(count_only)
    )


async def walk_files(workspace: Workspace, root: SearchRoot, *, include_folders: bool = False) -> list[str]:
    """Return the files in a directory tree, optionally with its folders and links."""
    return await _run_in_thread(
        lambda stop: list(islice(_iter_paths(workspace, root, stop, include_folders=include_folders), MAX_FILES))
    )


async def _run_in_thread(work: Callable[[threading.Event], T]) -> T:
    """Run a search in a thread; cancelling stops it at the next file."""
    stop = threading.Event()
    try:
        return await asyncio.to_thread(work, stop)
    finally:
        stop.set()


def _iter_paths(
    workspace: Workspace, root: SearchRoot, stop: threading.Event, *, include_folders: bool = False
) -> Iterator[str]:
    """Yield the paths in a folder; if git ignores this folder itself, yield all of its files."""
    if _is_ignored(workspace.root, root.real_path):
        paths = _walk_unfiltered(os.path.join(workspace.root, root.real_path), include_folders=include_folders)
    else:
        paths = workspace.iter_files(root.display_path, hidden=True, folders=include_folders)
    return takewhile(lambda _: not stop.is_set(), paths)


def _is_ignored(root: str, real_path: str) -> bool:
    from ostler.workspace.gitignore import IgnoreRules
    from ostler.workspace.jail import DIRECTORY_FLAGS, closing_fd

    if real_path == "." or real_path.startswith("/"):
        return False
    rules, above = IgnoreRules(), ""
    for part in real_path.split("/"):
        with closing_fd(os.open(f"{root}/{above}", DIRECTORY_FLAGS | os.O_CLOEXEC)) as fd:
            rules = rules.for_subfolder(fd, above)
        if rules.is_ignored(above + part, is_directory=True):
            return True
        above += f"{part}/"
    return False


def _walk_unfiltered(folder: str, *, include_folders: bool) -> Iterator[str]:
    from ostler.workspace.paths import escape_path

    for above, below, files in os.walk(folder):
        links = {name for name in (*below, *files) if os.path.islink(f"{above}/{name}")}
        below[:] = sorted(name for name in below if name != ".git" and name not in links)
        base = f"{above[len(folder) + 1 :]}/".lstrip("/")
        names = [name for name in files if name not in links]
        if include_folders:
            names += [*(f"{name}/" for name in below), *(f"{name}//" for name in links)]
        for name in sorted(names):
            yield escape_path(base + name)


class _NativeSearch:
    """One search over files, with a time limit."""

    def __init__(self, query: SearchQuery, paths: Iterable[SearchPath]) -> None:
        self._paths = paths
        self._has_non_ascii = query.has_non_ascii
        self._context = query.context
        self._regex = _compile_regex(query)
        self._needle = _literal_bytes(query)
        self._deadline = time.monotonic() + TIMEOUT_SECONDS
        self._result = SearchResult()

    def run(self, count_only: bool) -> SearchResult:
        if count_only:
            self._count_lines()
        else:
            self._find_lines()
        return self._result

    def _find_lines(self) -> None:
        for name, data in self._matching_texts():
            matches = list(islice(_iter_matches(self._regex, data), MAX_LINES - len(self._result.lines)))
            if matches:
                self._result.counts[name] = len(matches)
                self._result.lines += _lines_with_context(name, data, matches, self._context)
            if len(self._result.lines) >= MAX_LINES:
                self._result.stop_reason = f"stopped after {MAX_LINES:,} lines"
                break

    def _count_lines(self) -> None:
        for name, data in self._matching_texts():
            count = sum(1 for _ in _iter_matches(self._regex, data))
            if count:
                self._result.counts[name] = count

    def _matching_texts(self) -> Iterator[tuple[str, bytes]]:
        """Yield the display path and the content (UTF-8, LF) of each file with a match."""
        for name, path in self._paths:
            if time.monotonic() > self._deadline:
                self._result.stop_reason = f"stopped after {TIMEOUT_SECONDS:g} seconds"
                return
            data = read_text_bytes(path)
            if self._has_non_ascii:
                data = to_utf8(data)
            if (self._needle in data) if self._needle else (data and self._regex.search(data)):
                yield name, data


def _candidate_paths(
    workspace: Workspace, root: SearchRoot, file_filter: FileFilter, stop: threading.Event
) -> Iterator[SearchPath]:
    absolute = os.path.join(workspace.root, root.real_path)
    if root.is_file:
        yield root.display_path, absolute
        return
    for relative_path in _iter_paths(workspace, root, stop):
        name = root.display_path_of(relative_path)
        if file_filter.matches(name, relative_path):
            yield name, unescape_path(f"{absolute}/{relative_path}", workspace.root)


def _compile_regex(query: SearchQuery) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    options.never_nl = True
    options.case_sensitive = not query.ignore_case
    options.literal = query.literal
    try:
        return re2.compile(
            query.pattern if query.literal else f"(?m){_ESCAPE_SEQUENCE.sub(_translate_word_boundary, query.pattern)}",
            options,
        )
    except re2.error as error:
        reason = error.args[0] if error.args else "it is not a regular expression"
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise bad_pattern_error(text) from None


def _translate_word_boundary(match: re.Match[str]) -> str:
    r"""Replace the word boundaries `\<` and `\>` of grep, which RE2 does not support, with `\b`."""
    return r"\b" if match.group() in (r"\<", r"\>") else match.group()


def _literal_bytes(query: SearchQuery) -> bytes:
    """Return the bytes to search for if the pattern is plain text, which is faster than a regular expression."""
    plain = query.literal or not _REGEX_SPECIAL.search(query.pattern)
    return query.pattern.encode("utf-8", "replace") if plain and not query.ignore_case else b""


def read_text_bytes(path: str) -> bytes:
    """Return the bytes of a text file, or nothing for a binary or unreadable one."""
    try:
        fd = os.open(path, _OPEN_FLAGS)
    except OSError:
        return b""
    try:
        data = _read_bytes(fd)
    except OSError:
        return b""
    finally:
        os.close(fd)
    if data[:1] in _BOM_FIRST_BYTES:
        data = _strip_bom(data)
    if b"\0" in data:
        return b""
    return data.replace(b"\r\n", b"\n") if b"\r" in data else data


def is_binary(path: str) -> bool:
    """Return whether a file of any size contains a zero byte that its BOM does not explain."""
    try:
        with open(os.open(path, _OPEN_FLAGS), "rb") as file:
            chunk = file.read(_CHUNK_BYTES)
            if chunk.startswith(tuple(bom for bom, _ in _BOMS)):
                return b"\0" in _strip_bom(chunk)
            while chunk and b"\0" not in chunk:
                chunk = file.read(_CHUNK_BYTES)
            return bool(chunk)
    except OSError:
        return False


def _strip_bom(data: bytes) -> bytes:
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return data[len(bom) :].decode(encoding, "replace").encode("utf-8", "replace")
    return data


def _read_bytes(fd: int) -> bytes:
    data = os.read(fd, _FIRST_READ_BYTES)  # enough for most files, and cheaper than a large buffer for each
    if len(data) < _FIRST_READ_BYTES or not stat.S_ISREG(os.fstat(fd).st_mode):
        return data
    chunks, size = [data], len(data)
    while size < _MAX_FILE_BYTES and (chunk := os.read(fd, _CHUNK_BYTES)):
        chunks.append(chunk)
        size += len(chunk)
    return b"".join(chunks)


def _iter_matches(regex: Any, data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield the number, start and end of each matching line."""
    offset, number = 0, 1
    while offset <= len(data) and (match := regex.search(data, offset)):
        start = data.rfind(b"\n", 0, match.start()) + 1
        end = data.find(b"\n", match.start())
        end = len(data) if end < 0 else end
        if start == len(data) and data:
            return  # there is no line after the last line break
        number += data.count(b"\n", offset, start)
        yield number, start, end
        offset, number = end + 1, number + 1


def _lines_with_context(name: str, data: bytes, matches: list[tuple[int, int, int]], context: int) -> list[SearchLine]:
    if not context:
        texts = _decode_lines([data[start:end] for _, start, end in matches], data)
        return [SearchLine(name, number, text) for (number, _, _), text in zip(matches, texts, strict=True)]
    numbers = {number for number, _, _ in matches}
    lines = data.split(b"\n")
    last = len(lines) - (not lines[-1])
    nearby = {near for number in numbers for near in range(number - context, number + context + 1)}
    shown = sorted(number for number in nearby if 1 <= number <= last)
    texts = _decode_lines([lines[number - 1] for number in shown], data)
    return [SearchLine(name, number, text, number in numbers) for number, text in zip(shown, texts, strict=True)]


def _decode_lines(lines: list[bytes], data: bytes) -> list[str]:
    """Decode lines of a file in its encoding; long lines are truncated."""
    truncated = [line[: 4 * LINE_WIDTH].rstrip(b"\r") for line in lines]
    try:
        return [line.decode() for line in truncated]
    except UnicodeDecodeError:
        encoding = guess_encoding(data)
        return [line.decode(encoding, "replace") for line in truncated]
