"""What lies in directories: one listed, or a whole tree walked in order, with what git ignores left out."""

import os
import stat
from collections.abc import Generator, Iterator
from itertools import islice
from typing import Literal

from ostler.processes.placeholders import keeps_a_place, stands_in
from ostler.processes.start_up import CONTENTS
from ostler.vocabulary.errors import PathRefused
from ostler.vocabulary.seams import Entry
from ostler.workspace.ignores import FILE, Ignores, Named
from ostler.workspace.jail import DIRECTORY
from ostler.workspace.paths import escaped
from ostler.workspace.walk import is_link

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
            if keeps_a_place(entry, fd):
                continue
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


def walk_files(top: int, base: str, rules: Ignores, *, hidden: bool, most: int, folders: bool = False) -> Iterator[str]:
    """The regular files under an open directory, as paths from it, sorted; links are not followed.

    `base` is the directory from the root, with a slash at its end; `rules` are those in force above it. With `folders`
    each directory comes too, before what it holds, with a slash at its end, and each link, with two.
    """
    walk = _under(top, base, rules, hidden)
    try:
        for path in islice((path for path in walk if folders or path[-1] != "/"), most):
            yield escaped(path[len(base) :])
    finally:
        walk.close()


def _under(fd: int, base: str, rules: Ignores, hidden: bool) -> Generator[str]:
    """All paths in order, from the root; those of directories with a slash at their end, those of links with two."""
    opened = [fd]
    ways = [(base, *_look(fd, base, rules, hidden))]
    try:
        while ways:
            here, rules, ahead = ways[-1]
            for name, is_directory, is_file in ahead:
                if is_file:
                    yield here + name
                elif is_directory:
                    path = f"{here}{name}/"
                    yield path
                    below = _opened(name, opened[-1]) if path.count("/") <= DEEPEST else None
                    if below is not None:
                        opened.append(below)
                        ways.append((path, *_look(below, path, rules, hidden)))
                        break
                elif is_link(name, opened[-1]):
                    yield f"{here}{name}//"
            else:
                ways.pop()
                below = opened.pop()
                if below != fd:
                    os.close(below)
    finally:
        for below in opened:
            if below != fd:
                os.close(below)


def _look(fd: int, here: str, rules: Ignores, hidden: bool) -> tuple[Ignores, Iterator[Named]]:
    """The rules in force in a directory, and what it holds that they keep."""
    names = _names(fd, hidden)
    if any(name == FILE for name, _, _ in names) or not hidden:
        rules = rules.below(fd, here)
    return rules, iter(rules.kept(here, names))


def _opened(name: str, directory: int) -> int | None:
    try:
        return os.open(name, DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    except OSError:
        return None


def _names(fd: int, hidden: bool) -> list[Named]:
    """What a directory holds besides git's own folder, and hidden names only if they are wanted."""
    with os.scandir(fd) as scan:
        found = [
            (name, entry.is_dir(follow_symlinks=False), entry.is_file(follow_symlinks=False))
            for entry in scan
            if (name := entry.name)[0] != "."
            or (hidden and name != ".git" and not (name in CONTENTS and stands_in(name, fd)))
        ]
    found.sort()
    return found
