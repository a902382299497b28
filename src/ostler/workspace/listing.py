"""What lies in directories: one listed, or a whole tree walked in order, with what git ignores left out."""

import os
import stat
from collections.abc import Generator, Iterator
from itertools import islice
from typing import Literal

from ostler.vocabulary.errors import PathRefused
from ostler.vocabulary.seams import Entry
from ostler.workspace.ignores import Ignores
from ostler.workspace.jail import DIRECTORY
from ostler.workspace.paths import escaped

MOST_ENTRIES = 100_000
DEEPEST = 200
Kind = Literal["file", "directory", "link", "other"]


def kind_of(mode: int) -> Kind:
    """The kind of entry a mode tells of."""
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "link" if stat.S_ISLNK(mode) else "other"


def entries(fd: int, path: str) -> list[Entry]:
    """What an open directory holds, by name."""
    found: list[Entry] = []
    with os.scandir(fd) as scan:
        for entry in scan:
            if len(found) == MOST_ENTRIES:
                reason = f"the directory has more than {MOST_ENTRIES:,} entries"
                raise PathRefused("too_large", path, reason, hint="search it by pattern instead")
            found.append(_entry(entry))
    found.sort(key=lambda entry: entry.name)
    return found


def _entry(entry: "os.DirEntry[str]") -> Entry:
    try:
        state = entry.stat(follow_symlinks=False)
    except OSError:
        return Entry(escaped(entry.name), "other")
    kind = kind_of(state.st_mode)
    return Entry(escaped(entry.name), kind, state.st_size if kind == "file" else 0)


def walk_files(top: int, base: str, rules: Ignores, *, hidden: bool, most: int) -> Iterator[str]:
    """The regular files under an open directory, as paths from it, sorted; links are not followed.

    `base` is the directory from the root, with a slash at its end; `rules` are those in force above it.
    """
    walk = _under(top, base, rules, hidden)
    try:
        for path in islice(walk, most):
            yield path[len(base) :]
    finally:
        walk.close()


def _under(fd: int, here: str, rules: Ignores, hidden: bool) -> Generator[str]:
    rules = rules.below(fd, here)
    for name, is_directory, is_file in _names(fd):
        path = here + name
        if name == ".git" or (name[0] == "." and not hidden) or rules.leave_out(path, is_directory=is_directory):
            continue
        if is_file and name.isprintable():
            yield path
        elif is_directory and path.count("/") < DEEPEST:
            try:
                below = os.open(name, DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
            except OSError:
                continue
            try:
                yield from _under(below, f"{path}/", rules, hidden)
            finally:
                os.close(below)


def _names(fd: int) -> list[tuple[str, bool, bool]]:
    with os.scandir(fd) as scan:
        return sorted(
            (entry.name, entry.is_dir(follow_symlinks=False), entry.is_file(follow_symlinks=False)) for entry in scan
        )
