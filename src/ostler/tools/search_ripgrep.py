"""Searching by ripgrep: one process that prints into our memory, and is ended as soon as there is enough."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from ostler.tools.foreign import NO_UTF8, encoding_of
from ostler.tools.search import LINE_WIDTH, MOST, MOST_FILES, SECONDS, Found, Line, Query, Top, bad_pattern
from ostler.tools.search_globs import Files
from ostler.tools.search_native import is_binary, search_in, text_of
from ostler.tools.search_output import printed
from ostler.vocabulary.seams import Ground
from ostler.workspace.paths import escaped

_COMPLAINS = 2
_LINE = rb"(\d+)([:-])([^\n]*)"
_COUNT = rb"(\d+)\r?"
_BINARY = re.compile(
    rb"(.+): (?:WARNING: stopped searching binary file after match|binary file matches) \(found .* byte around.*\)"
)


async def find(program: str, ground: Ground, top: Top, query: Query, files: Files) -> Found:
    """The lines that match."""
    shown = ["--line-number", "--with-filename", "--no-heading", f"--max-columns={4 * LINE_WIDTH}"]
    around = [f"--context={query.context}", "--no-context-separator"] if query.context else []
    found, names, records = Found(), _Names(top, files), _Records(ground, top, _LINE)
    encodings = _Encodings(ground.root)

    def take(raw: bytes) -> bool:
        for path, lines in _by_file(records.whole(raw), names, encodings):
            room = MOST - len(found.lines)
            found.lines += lines[:room]
            hits = sum(line.hit for line in lines[:room])
            if hits:
                found.counts[path] = found.counts.get(path, 0) + hits
            if len(lines) >= room:
                return False
        return True

    argv = [program, *shown, "--max-columns-preview", *around, *_asked(ground, top, query, files)]
    found.stopped = await _read(argv, ground.root, take)
    _leave_out(found, {names.meant(path) for path in records.binaries()})
    _leave_out_named(found, ground, top)
    return await _with_foreign(found, program, ground, top, query, files)


async def count(program: str, ground: Ground, top: Top, query: Query, files: Files) -> Found:
    """How many lines match in each file."""
    found, names, records = Found(), _Names(top, files), _Records(ground, top, _COUNT)

    def take(raw: bytes) -> bool:
        for path, number in records.whole(raw):
            name = names.meant(path)
            if name:
                found.counts[name] = int(number)
        return True

    argv = [program, "--count", "--with-filename", *_asked(ground, top, query, files)]
    found.stopped = await _read(argv, ground.root, take)
    _leave_out_named(found, ground, top)
    return await _with_foreign(found, program, ground, top, query, files, counted=True)


async def _with_foreign(
    found: Found, program: str, ground: Ground, top: Top, query: Query, files: Files, *, counted: bool = False
) -> Found:
    """What was found, with files that are no UTF-8 searched in their own encoding, of which ripgrep knows nothing."""
    if not query.beyond_ascii:
        return found
    paths, names = [], _Names(top, files)

    def take(raw: bytes) -> bool:
        for path in raw.split(b"\0"):
            if path and (name := names.meant(path)):
                paths.append((name, os.path.join(ground.root, os.fsdecode(path))))
        return len(paths) < MOST_FILES

    hints = [] if top.is_file else _hints(files.last_names())
    asked = [*_everywhere(ground), *hints, "--regexp", NO_UTF8, "--", top.real]
    await _read([program, "--files-with-matches", *asked], ground.root, take, end=b"\0")
    other = await search_in(paths, query, counted=counted)
    _leave_out(found, {name for name, _ in paths})
    stopped = found.stopped or other.stopped
    return Found(found.lines + other.lines, found.counts | other.counts, stopped)


def _leave_out_named(found: Found, ground: Ground, top: Top) -> None:
    """Take back what was found in a file that was named and is no text: there ripgrep goes on behind a zero byte."""
    if top.is_file and found.counts and is_binary(os.path.join(ground.root, top.real)):
        _leave_out(found, {top.shown})


def _leave_out(found: Found, names: set[str]) -> None:
    """Take back what was found in some files."""
    if names:
        found.lines = [line for line in found.lines if line.path not in names]
        found.counts = {name: count for name, count in found.counts.items() if name not in names}


async def files(program: str, ground: Ground, top: Top, names: Sequence[str]) -> list[str]:
    """The files below a directory, in any order."""
    found: list[str] = []
    prefix = f"\0{_beginning(top)}"

    def take(raw: bytes) -> bool:
        text = "\0" + raw.decode("utf-8", "surrogateescape")
        paths = text.replace(prefix, "\0").split("\0")[1:-1]
        plain = "".join(paths).isprintable() and "\\" not in text
        found.extend(paths if plain else map(escaped, paths))
        return len(found) < MOST_FILES

    argv = [program, "--files", *_everywhere(ground), *_hints(names), "--", top.real]
    await _read(argv, ground.root, take, end=b"\0")
    return found[:MOST_FILES]


def _beginning(top: Top) -> str:
    """How each path begins that ripgrep prints: with the one it was given."""
    return top.real if top.is_file else f"{top.real}/"


class _Records:
    """What is printed as records: a path, a zero byte, and what a pattern says; a path may hold line ends."""

    def __init__(self, ground: Ground, top: Top, fields: bytes) -> None:
        self._root = os.fsencode(ground.root)
        self._begin = os.fsencode(_beginning(top))
        self._lines = re.compile(rb"(?m)^(%b[^\0\n]*)\0%b$" % (re.escape(self._begin), fields))
        self._fields = re.compile(rb"\0%b\n" % fields)
        self._rest = b""
        self._binaries: list[bytes] = []

    def binaries(self) -> list[bytes]:
        """The files that turned out to be no text after some of their lines were printed."""
        self._hear(self._rest.split(b"\n"))
        return self._binaries

    def _hear(self, remarks: list[bytes]) -> None:
        self._binaries += [found[1] for remark in remarks if (found := _BINARY.fullmatch(remark))]

    def whole(self, raw: bytes) -> list[tuple[bytes, ...]]:
        """The records that are complete; a path that is cut at a line end waits for its other half."""
        if not self._rest:
            found: list[tuple[bytes, ...]] = self._lines.findall(raw)
            if len(found) == raw.count(b"\n"):
                return found
        raw, at, found = self._rest + raw, 0, []
        for match in self._fields.finditer(raw):
            path = self._path(raw[at : match.start()])
            if path:
                found.append((path, *match.groups()))
            at = match.end()
        self._rest = raw[at:]
        return found

    def _path(self, said: bytes) -> bytes:
        """The path at the end of what stands before a zero byte; lines before it are remarks on other files."""
        lines = said.split(b"\n")
        for first in range(len(lines)):
            path = b"\n".join(lines[first:])
            if path.startswith(self._begin) and os.path.lexists(os.path.join(self._root, path)):
                self._hear(lines[:first])
                return path
        return b""


class _Names:
    """Paths as they are shown, and whether their files are meant; each is looked at once, not with each line."""

    def __init__(self, top: Top, files: Files) -> None:
        self._top = top
        self._files = files
        self._begin = len(os.fsencode(_beginning(top)))
        self._known: dict[bytes, str] = {}

    def meant(self, raw: bytes) -> str:
        """The name of a file that is meant, nothing for another."""
        known = self._known.get(raw)
        if known is None:
            below = escaped(raw[self._begin :].decode("utf-8", "surrogateescape"))
            name = self._top.shown if self._top.is_file else self._top.named(below)
            known = self._known[raw] = name if self._files.allow(name, below) else ""
        return known


def _asked(ground: Ground, top: Top, query: Query, files: Files) -> list[str]:
    names = [] if top.is_file else files.last_names()
    case = ["--ignore-case"] if query.ignore_case else []
    literal = ["--fixed-strings"] if query.literal else []
    where = ["--crlf", "--regexp", query.pattern, "--", top.real]
    return [*_everywhere(ground), *_hints(names), *case, *literal, *where]


def _hints(names: Sequence[str]) -> list[str]:
    """Arguments for a quicker search that looks at no file of another name."""
    return [f"--type-add=ostler:{name}" for name in names] + (["--type=ostler"] if names else [])


def _everywhere(ground: Ground) -> list[str]:
    """Hidden files too, but not git's own; what git would ignore is left out, in a repository or not."""
    flags = ["--no-config", "--null", "--color=never", "--hidden", "--no-require-git", "--no-ignore-dot"]
    above = [] if _owns_its_ignores(Path(ground.root)) else ["--no-ignore-parent"]
    return [*flags, *above, "--glob=!.git"]


def _owns_its_ignores(root: Path) -> bool:
    """Whether no .gitignore of a folder above counts but those of the repository the workspace is in."""
    for folder in (root, *root.parents):
        if (folder / ".git").exists():
            return True
        if folder != root and (folder / ".gitignore").exists():
            return False
    return True


def _by_file(
    records: list[tuple[bytes, ...]], names: _Names, encodings: "_Encodings"
) -> Iterator[tuple[str, list[Line]]]:
    """The lines that were printed, in runs of one file."""
    for path, run in groupby(records, itemgetter(0)):
        name = names.meant(path)
        if name:
            rows = [(int(number), text.rstrip(b"\r"), mark == b":") for _, number, mark, text in run]
            told = encodings.told(path, [text for _, text, _ in rows])
            yield name, [Line(name, row[0], text, row[2]) for row, text in zip(rows, told, strict=True)]


class _Encodings:
    """Lines as text; the encoding of a file that is no UTF-8 is looked for once."""

    def __init__(self, root: str) -> None:
        self._root = os.fsencode(root)
        self._known: dict[bytes, str] = {}

    def told(self, path: bytes, lines: list[bytes]) -> list[str]:
        try:
            return [line.decode() for line in lines]
        except UnicodeDecodeError:
            if path not in self._known:
                self._known[path] = encoding_of(text_of(os.fsdecode(os.path.join(self._root, path))))
            return [line.decode(self._known[path], "replace") for line in lines]


async def _read(argv: Sequence[str], cwd: str, take: Callable[[bytes], bool], end: bytes = b"\n") -> str:
    """Hand over what ripgrep prints, many records at once, while more is wanted; why it ended early, if it did."""
    ended = await printed(argv, cwd=cwd, end=end, take=take, seconds=SECONDS)
    if ended.timed_out:
        return f"stopped after {SECONDS:g} seconds"
    if ended.status is None:
        return f"stopped after {MOST:,} lines"
    if ended.status == _COMPLAINS:
        _complain(ended.errors)
    return f"ripgrep ended early, with {ended.status}" if ended.status > _COMPLAINS else ""


def _complain(said: str) -> None:
    """Raise what ripgrep said of the pattern; files that could not be read are no reason to fail."""
    lines = [line for line in said.splitlines() if line and "(os error" not in line]
    told = next((line for line in lines if line.startswith("error:")), lines[0] if lines else "")
    if told:
        raise bad_pattern(told.removeprefix("error:").removeprefix("rg:").strip())
