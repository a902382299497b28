"""Searching without any other program: our own walk, and RE2, whose time is linear whatever the pattern says."""

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
SearchPath = tuple[str, str]  # of a file: as it is shown, and as the system names it
_MAX_FILE_BYTES = 64 * 1024 * 1024
_CHUNK_BYTES = 1024 * 1024
_FIRST_READ_BYTES = 32 * 1024
_REGEX_SPECIAL = re.compile(r"[\\.^$*+?{}\[\]|()\n]")
_ESCAPE_SEQUENCE = re.compile(r"\\.")
_OPEN_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_BOMS = ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"), (b"\xef\xbb\xbf", "utf-8"))
_BOM_FIRST_BYTES = (b"\xff", b"\xfe", b"\xef")


async def find_lines(
    workspace: Workspace, root: SearchRoot, query: SearchQuery, file_filter: FileFilter
) -> SearchResult:
    """The lines that match."""
    return await _run_in_thread(
        lambda stop: _NativeSearch(query, _candidate_paths(workspace, root, file_filter, stop)).find_lines()
    )


async def count_lines(
    workspace: Workspace, root: SearchRoot, query: SearchQuery, file_filter: FileFilter
) -> SearchResult:
    """How many lines match in each file."""
    return await _run_in_thread(
        lambda stop: _NativeSearch(query, _candidate_paths(workspace, root, file_filter, stop)).count_lines()
    )


async def search_paths(paths: Sequence[SearchPath], query: SearchQuery, *, count_only: bool) -> SearchResult:
    """The lines that match in some files, or how many there are."""

    def search(stop: threading.Event) -> SearchResult:
        found = _NativeSearch(query, takewhile(lambda _: not stop.is_set(), paths))
        return found.count_lines() if count_only else found.find_lines()

    return await _run_in_thread(search)


async def walk_files(workspace: Workspace, root: SearchRoot, *, include_folders: bool = False) -> list[str]:
    """The files below a directory, if asked with its folders and links."""
    return await _run_in_thread(
        lambda stop: list(islice(_iter_paths(workspace, root, stop, include_folders=include_folders), MAX_FILES))
    )


async def _run_in_thread(work: Callable[[threading.Event], T]) -> T:
    """Run the search in a thread; whoever is cancelled makes it stop at the next file."""
    stop = threading.Event()
    try:
        return await asyncio.to_thread(work, stop)
    finally:
        stop.set()


def _iter_paths(
    workspace: Workspace, root: SearchRoot, stop: threading.Event, *, include_folders: bool = False
) -> Iterator[str]:
    """What is below a folder; when git ignores the very folder that was named, all of its files are meant."""
    if _is_ignored(workspace.root, root.real_path):
        paths = _walk_unfiltered(os.path.join(workspace.root, root.real_path), include_folders=include_folders)
    else:
        paths = workspace.iter_files(root.display_path, hidden=True, folders=include_folders)
    return takewhile(lambda _: not stop.is_set(), paths)


def _is_ignored(root: str, real_path: str) -> bool:
    from ostler.workspace.gitignore import IgnoreRules

    if real_path == "." or real_path.startswith("/"):
        return False
    rules, above = IgnoreRules(), ""
    for part in real_path.split("/"):
        fd = os.open(f"{root}/{above}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            rules = rules.for_subfolder(fd, above)
        finally:
            os.close(fd)
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
    """One search over files, within its time."""

    def __init__(self, query: SearchQuery, paths: Iterable[SearchPath]) -> None:
        self._paths = paths
        self._has_non_ascii = query.has_non_ascii
        self._context = query.context
        self._regex = _compile_regex(query)
        self._needle = _literal_bytes(query)
        self._deadline = time.monotonic() + TIMEOUT_SECONDS
        self._result = SearchResult()

    def find_lines(self) -> SearchResult:
        for name, data in self._matching_texts():
            hits = list(islice(_iter_matches(self._regex, data), MAX_LINES - len(self._result.lines)))
            if hits:
                self._result.counts[name] = len(hits)
                self._result.lines += _lines_with_context(name, data, hits, self._context)
            if len(self._result.lines) >= MAX_LINES:
                self._result.stop_reason = f"stopped after {MAX_LINES:,} lines"
                break
        return self._result

    def count_lines(self) -> SearchResult:
        for name, data in self._matching_texts():
            number = sum(1 for _ in _iter_matches(self._regex, data))
            if number:
                self._result.counts[name] = number
        return self._result

    def _matching_texts(self) -> Iterator[tuple[str, bytes]]:
        """The files that hold a match, as shown and as UTF-8 with plain line ends."""
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
    for below in _iter_paths(workspace, root, stop):
        name = root.display_path_of(below)
        if file_filter.matches(name, below):
            yield name, unescape_path(f"{absolute}/{below}", workspace.root)


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
        said = error.args[0] if error.args else "it makes no sense"
        raise bad_pattern_error(said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)) from None


def _translate_word_boundary(found: re.Match[str]) -> str:
    """The borders of words as `grep` writes them, which RE2 would take for the signs."""
    return r"\b" if found.group() in (r"\<", r"\>") else found.group()


def _literal_bytes(query: SearchQuery) -> bytes:
    """The bytes a file must hold to match, if the pattern is plain text: looked for quicker than any expression."""
    plain = query.literal or not _REGEX_SPECIAL.search(query.pattern)
    return query.pattern.encode("utf-8", "replace") if plain and not query.ignore_case else b""


def read_text_bytes(path: str) -> bytes:
    """A file's bytes if it is a text, else nothing."""
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
    """Whether a file of any size holds a zero byte that no encoding explains."""
    try:
        with open(os.open(path, _OPEN_FLAGS), "rb") as file:
            piece = file.read(_CHUNK_BYTES)
            if piece.startswith(tuple(mark for mark, _ in _BOMS)):
                return b"\0" in _strip_bom(piece)
            while piece and b"\0" not in piece:
                piece = file.read(_CHUNK_BYTES)
            return bool(piece)
    except OSError:
        return False


def _strip_bom(data: bytes) -> bytes:
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace").encode("utf-8", "replace")
    return data


def _read_bytes(fd: int) -> bytes:
    data = os.read(
        fd, _FIRST_READ_BYTES
    )  # one look is enough for most files, and a large buffer for each would cost more
    if len(data) < _FIRST_READ_BYTES or not stat.S_ISREG(os.fstat(fd).st_mode):
        return data
    pieces, size = [data], len(data)
    while size < _MAX_FILE_BYTES and (piece := os.read(fd, _CHUNK_BYTES)):
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces)


def _iter_matches(regex: Any, data: bytes) -> Iterator[tuple[int, int, int]]:
    """Each line that matches: its number and where it begins and ends."""
    at, number = 0, 1
    while at <= len(data) and (match := regex.search(data, at)):
        start = data.rfind(b"\n", 0, match.start()) + 1
        end = data.find(b"\n", match.start())
        end = len(data) if end < 0 else end
        if start == len(data) and data:
            return  # behind the last line end there is no line
        number += data.count(b"\n", at, start)
        yield number, start, end
        at, number = end + 1, number + 1


def _lines_with_context(name: str, data: bytes, matches: list[tuple[int, int, int]], context: int) -> list[SearchLine]:
    if not context:
        told = _decode_lines([data[start:end] for _, start, end in matches], data)
        return [SearchLine(name, number, text) for (number, _, _), text in zip(matches, told, strict=True)]
    numbers = {number for number, _, _ in matches}
    lines = data.split(b"\n")
    last = len(lines) - (not lines[-1])
    near = {near for number in numbers for near in range(number - context, number + context + 1)}
    wanted = sorted(number for number in near if 1 <= number <= last)
    told = _decode_lines([lines[number - 1] for number in wanted], data)
    return [SearchLine(name, number, text, number in numbers) for number, text in zip(wanted, told, strict=True)]


def _decode_lines(lines: list[bytes], data: bytes) -> list[str]:
    """Some lines of a file as text, in its encoding."""
    shown = [line[: 4 * LINE_WIDTH].rstrip(b"\r") for line in lines]
    try:
        return [line.decode() for line in shown]
    except UnicodeDecodeError:
        encoding = guess_encoding(data)
        return [line.decode(encoding, "replace") for line in shown]
