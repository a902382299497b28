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

from ostler.tools.foreign import as_utf8, encoding_of
from ostler.tools.search import LINE_WIDTH, MOST, MOST_FILES, SECONDS, Found, Line, Query, Top, bad_pattern
from ostler.tools.search_globs import Files
from ostler.vocabulary.seams import Ground
from ostler.workspace.paths import meant

T = TypeVar("T")
Path = tuple[str, str]  # of a file: as it is shown, and as the system names it
_LARGEST = 64 * 1024 * 1024
_PIECE = 1024 * 1024
_SMALL = 32 * 1024
_SPECIAL = re.compile(r"[\\.^$*+?{}\[\]|()\n]")
_BORDER = re.compile(r"\\.")
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_MARKS = ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"), (b"\xef\xbb\xbf", "utf-8"))
_FIRST_OF_MARKS = (b"\xff", b"\xfe", b"\xef")


async def find_lines(ground: Ground, top: Top, query: Query, files: Files) -> Found:
    """The lines that match."""
    return await _in_thread(lambda stop: _Search(query, _paths(ground, top, files, stop)).lines())


async def count_lines(ground: Ground, top: Top, query: Query, files: Files) -> Found:
    """How many lines match in each file."""
    return await _in_thread(lambda stop: _Search(query, _paths(ground, top, files, stop)).counts())


async def search_in(paths: Sequence[Path], query: Query, *, counted: bool) -> Found:
    """The lines that match in some files, or how many there are."""

    def search(stop: threading.Event) -> Found:
        found = _Search(query, takewhile(lambda _: not stop.is_set(), paths))
        return found.counts() if counted else found.lines()

    return await _in_thread(search)


async def files_of(ground: Ground, top: Top, *, folders: bool = False) -> list[str]:
    """The files below a directory, if asked with its folders and links."""
    return await _in_thread(lambda stop: list(islice(_walk(ground, top, stop, folders=folders), MOST_FILES)))


async def _in_thread(work: Callable[[threading.Event], T]) -> T:
    """Run the search in a thread; whoever is cancelled makes it stop at the next file."""
    stop = threading.Event()
    try:
        return await asyncio.to_thread(work, stop)
    finally:
        stop.set()


def _walk(ground: Ground, top: Top, stop: threading.Event, *, folders: bool = False) -> Iterator[str]:
    """What is below a folder; when git ignores the very folder that was named, all of its files are meant."""
    if _is_ignored(ground.root, top.real):
        paths = _everything(os.path.join(ground.root, top.real), folders=folders)
    else:
        paths = ground.iter_files(top.shown, hidden=True, folders=folders)
    return takewhile(lambda _: not stop.is_set(), paths)


def _is_ignored(root: str, real: str) -> bool:
    from ostler.workspace.ignores import Ignores

    if real == "." or real.startswith("/"):
        return False
    rules, above = Ignores(), ""
    for part in real.split("/"):
        fd = os.open(f"{root}/{above}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            rules = rules.below(fd, above)
        finally:
            os.close(fd)
        if rules.leave_out(above + part, is_directory=True):
            return True
        above += f"{part}/"
    return False


def _everything(folder: str, *, folders: bool) -> Iterator[str]:
    from ostler.workspace.paths import escaped

    for above, below, files in os.walk(folder):
        links = {name for name in (*below, *files) if os.path.islink(f"{above}/{name}")}
        below[:] = sorted(name for name in below if name != ".git" and name not in links)
        base = f"{above[len(folder) + 1 :]}/".lstrip("/")
        names = [name for name in files if name not in links]
        if folders:
            names += [*(f"{name}/" for name in below), *(f"{name}//" for name in links)]
        for name in sorted(names):
            yield escaped(base + name)


class _Search:
    """One search over files, within its time."""

    def __init__(self, query: Query, paths: Iterable[Path]) -> None:
        self._paths = paths
        self._beyond_ascii = query.beyond_ascii
        self._context = query.context
        self._regex = _regex(query)
        self._needle = _needle(query)
        self._ends = time.monotonic() + SECONDS
        self._found = Found()

    def lines(self) -> Found:
        for name, data in self._texts():
            hits = list(islice(_hits(self._regex, data), MOST - len(self._found.lines)))
            if hits:
                self._found.counts[name] = len(hits)
                self._found.lines += _with_context(name, data, hits, self._context)
            if len(self._found.lines) >= MOST:
                self._found.stopped = f"stopped after {MOST:,} lines"
                break
        return self._found

    def counts(self) -> Found:
        for name, data in self._texts():
            number = sum(1 for _ in _hits(self._regex, data))
            if number:
                self._found.counts[name] = number
        return self._found

    def _texts(self) -> Iterator[tuple[str, bytes]]:
        """The files that hold a match, as shown and as UTF-8 with plain line ends."""
        for name, path in self._paths:
            if time.monotonic() > self._ends:
                self._found.stopped = f"stopped after {SECONDS:g} seconds"
                return
            data = text_of(path)
            if self._beyond_ascii:
                data = as_utf8(data)
            if (self._needle in data) if self._needle else (data and self._regex.search(data)):
                yield name, data


def _paths(ground: Ground, top: Top, files: Files, stop: threading.Event) -> Iterator[Path]:
    absolute = os.path.join(ground.root, top.real)
    if top.is_file:
        yield top.shown, absolute
        return
    for below in _walk(ground, top, stop):
        name = top.named(below)
        if files.allow(name, below):
            yield name, meant(f"{absolute}/{below}", ground.root)


def _regex(query: Query) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    options.never_nl = True
    options.case_sensitive = not query.ignore_case
    options.literal = query.literal
    try:
        return re2.compile(query.pattern if query.literal else f"(?m){_BORDER.sub(_border, query.pattern)}", options)
    except re2.error as error:
        said = error.args[0] if error.args else "it makes no sense"
        raise bad_pattern(said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)) from None


def _border(found: re.Match[str]) -> str:
    """The borders of words as `grep` writes them, which RE2 would take for the signs."""
    return r"\b" if found.group() in (r"\<", r"\>") else found.group()


def _needle(query: Query) -> bytes:
    """The bytes a file must hold to match, if the pattern is plain text: looked for quicker than any expression."""
    plain = query.literal or not _SPECIAL.search(query.pattern)
    return query.pattern.encode("utf-8", "replace") if plain and not query.ignore_case else b""


def text_of(path: str) -> bytes:
    """A file's bytes if it is a text, else nothing."""
    try:
        fd = os.open(path, _OPEN)
    except OSError:
        return b""
    try:
        data = _bytes(fd)
    except OSError:
        return b""
    finally:
        os.close(fd)
    if data[:1] in _FIRST_OF_MARKS:
        data = _without_mark(data)
    if b"\0" in data:
        return b""
    return data.replace(b"\r\n", b"\n") if b"\r" in data else data


def is_binary(path: str) -> bool:
    """Whether a file of any size holds a zero byte that no encoding explains."""
    try:
        with open(os.open(path, _OPEN), "rb") as file:
            piece = file.read(_PIECE)
            if piece.startswith(tuple(mark for mark, _ in _MARKS)):
                return b"\0" in _without_mark(piece)
            while piece and b"\0" not in piece:
                piece = file.read(_PIECE)
            return bool(piece)
    except OSError:
        return False


def _without_mark(data: bytes) -> bytes:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace").encode("utf-8", "replace")
    return data


def _bytes(fd: int) -> bytes:
    data = os.read(fd, _SMALL)  # one look is enough for most files, and a large buffer for each would cost more
    if len(data) < _SMALL or not stat.S_ISREG(os.fstat(fd).st_mode):
        return data
    pieces, size = [data], len(data)
    while size < _LARGEST and (piece := os.read(fd, _PIECE)):
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces)


def _hits(regex: Any, data: bytes) -> Iterator[tuple[int, int, int]]:
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


def _with_context(name: str, data: bytes, hits: list[tuple[int, int, int]], context: int) -> list[Line]:
    if not context:
        told = _told([data[start:end] for _, start, end in hits], data)
        return [Line(name, number, text) for (number, _, _), text in zip(hits, told, strict=True)]
    numbers = {number for number, _, _ in hits}
    lines = data.split(b"\n")
    last = len(lines) - (not lines[-1])
    near = {near for number in numbers for near in range(number - context, number + context + 1)}
    wanted = sorted(number for number in near if 1 <= number <= last)
    told = _told([lines[number - 1] for number in wanted], data)
    return [Line(name, number, text, number in numbers) for number, text in zip(wanted, told, strict=True)]


def _told(lines: list[bytes], data: bytes) -> list[str]:
    """Some lines of a file as text, in its encoding."""
    shown = [line[: 4 * LINE_WIDTH].rstrip(b"\r") for line in lines]
    try:
        return [line.decode() for line in shown]
    except UnicodeDecodeError:
        encoding = encoding_of(data)
        return [line.decode(encoding, "replace") for line in shown]
