"""Searching by ripgrep: one process that prints into our memory, and is ended as soon as there is enough."""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from ostler.tools.search import LINE_WIDTH, MOST, MOST_FILES, SECONDS, Found, Line, Query, Top, bad_pattern
from ostler.tools.search_globs import Files
from ostler.tools.search_output import printed
from ostler.vocabulary.seams import Ground

_COMPLAINS = 2
_LINE = re.compile(rb"(?m)^([^\0\n]+)\0(\d+)([:-])([^\n]*)$")
_COUNT = re.compile(rb"(?m)^([^\0\n]+)\0(\d+)\r?$")


async def find(program: str, ground: Ground, top: Top, query: Query, files: Files) -> Found:
    """The lines that match."""
    shown = ["--line-number", "--with-filename", "--no-heading", f"--max-columns={4 * LINE_WIDTH}"]
    around = [f"--context={query.context}"] if query.context else []
    found, names = Found(), _Names(top, files)

    def take(raw: bytes) -> bool:
        for path, lines in _by_file(raw, names):
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
    found, names = Found(), _Names(top, files)

    def take(raw: bytes) -> bool:
        for path, number in _COUNT.findall(raw):
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
    prefix = "\0./" if top.shown == "." else f"\0{top.shown}/"

    def take(raw: bytes) -> bool:
        text = "\0" + raw.decode("utf-8", "backslashreplace")
        paths = text.replace(prefix, "\0").split("\0")[1:-1]
        found.extend(paths if "".join(paths).isprintable() else filter(str.isprintable, paths))
        return len(found) < MOST_FILES

    argv = [program, "--files", *_everywhere(ground), *_hints(names), "--", top.shown]
    await _read(argv, ground.root, take, end=b"\0")
    return found[:MOST_FILES]


class _Names:
    """Paths as they are shown, and whether their files are meant; each is looked at once, not with each line."""

    def __init__(self, top: Top, files: Files) -> None:
        self._top = top
        self._files = files
        self._prefix = len(top.shown) + 1 if top.shown != "." else 0
        self._known: dict[bytes, str] = {}

    def meant(self, raw: bytes) -> str:
        """The name of a file that is meant, nothing for another."""
        known = self._known.get(raw)
        if known is None:
            name = _name(raw, self._top)
            known = self._known[raw] = name if self._files.allow(name, name[self._prefix :]) else ""
        return known


def _asked(ground: Ground, top: Top, query: Query, files: Files) -> list[str]:
    names = [] if top.is_file else files.last_names()
    # A name with a line end in it would read as two names, so such files are left out.
    case = ["--ignore-case"] if query.ignore_case else []
    literal = ["--fixed-strings"] if query.literal else []
    where = ["--glob=!*\n*", "--crlf", "--regexp", query.pattern, "--", top.shown]
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


def _by_file(raw: bytes, names: _Names) -> Iterator[tuple[str, list[Line]]]:
    """The lines that were printed, in runs of one file."""
    for path, run in groupby(_LINE.findall(raw), itemgetter(0)):
        name = names.meant(path)
        if name:
            yield name, [_line(name, *rest) for _, *rest in run]


def _line(path: str, number: bytes, mark: bytes, text: bytes) -> Line:
    return Line(path, int(number), text.rstrip(b"\r").decode("utf-8", "replace"), mark == b":")


def _name(raw: bytes, top: Top) -> str:
    name = raw.decode("utf-8", "backslashreplace")
    return name.removeprefix("./") if top.shown == "." else name


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
