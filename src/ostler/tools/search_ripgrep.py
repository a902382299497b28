"""Searching by ripgrep: one process that prints into our memory, and is ended as soon as there is enough."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from ostler.tools.search import LINE_WIDTH, MOST, MOST_FILES, SECONDS, Found, Line, Query, Top, bad_pattern
from ostler.tools.search_globs import Files
from ostler.tools.search_output import printed
from ostler.vocabulary.seams import Ground
from ostler.workspace.paths import escaped

_COMPLAINS = 2
_LINE = rb"(\d+)([:-])([^\n]*)"
_COUNT = rb"(\d+)\r?"


async def find(program: str, ground: Ground, top: Top, query: Query, files: Files) -> Found:
    """The lines that match."""
    shown = ["--line-number", "--with-filename", "--no-heading", f"--max-columns={4 * LINE_WIDTH}"]
    around = [f"--context={query.context}", "--no-context-separator"] if query.context else []
    found, names, records = Found(), _Names(top, files), _Records(ground, top, _LINE)

    def take(raw: bytes) -> bool:
        for path, lines in _by_file(records.whole(raw), names):
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
    return found


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
    return found


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


def _by_file(records: list[tuple[bytes, ...]], names: _Names) -> Iterator[tuple[str, list[Line]]]:
    """The lines that were printed, in runs of one file."""
    for path, run in groupby(records, itemgetter(0)):
        name = names.meant(path)
        if name:
            yield name, [_line(name, *rest) for _, *rest in run]


def _line(path: str, number: bytes, mark: bytes, text: bytes) -> Line:
    return Line(path, int(number), text.rstrip(b"\r").decode("utf-8", "replace"), mark == b":")


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
