"""What lies in directories: one listed, or a whole tree walked in order, with what git ignores left out."""

import os
import stat
from collections.abc import Generator, Iterator
from itertools import islice
from typing import Literal

from ostler.core.errors import PathError
from ostler.core.protocols import DirectoryEntry
from ostler.processes.placeholders import entry_is_placeholder, is_placeholder
from ostler.processes.startup_files import STARTUP_FILES
from ostler.workspace.gitignore import GITIGNORE, IgnoreRules, NamedEntry
from ostler.workspace.jail import DIRECTORY_FLAGS
from ostler.workspace.path_walk import is_link
from ostler.workspace.paths import escape_path

MAX_ENTRIES = 100_000
MAX_DEPTH = 200
EntryKind = Literal["file", "directory", "link", "other"]


def entry_kind(mode: int) -> EntryKind:
    """The kind of entry a mode tells of."""
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "link" if stat.S_ISLNK(mode) else "other"


def list_entries(fd: int, path: str) -> list[DirectoryEntry]:
    """What an open directory holds, by name."""
    found: list[DirectoryEntry] = []
    with os.scandir(fd) as scan:
        for entry in scan:
            if entry_is_placeholder(entry, fd):
                continue
            if len(found) == MAX_ENTRIES:
                reason = f"the directory has more than {MAX_ENTRIES:,} entries"
                raise PathError("too_large", path, reason, hint="search it by pattern instead")
            found.append(_to_directory_entry(entry))
    found.sort(key=lambda entry: entry.name)
    return found


def _to_directory_entry(entry: "os.DirEntry[str]") -> DirectoryEntry:
    try:
        state = entry.stat(follow_symlinks=False)
    except OSError:
        return DirectoryEntry(escape_path(entry.name), "other")
    kind = entry_kind(state.st_mode)
    return DirectoryEntry(escape_path(entry.name), kind, state.st_size if kind == "file" else 0)


def walk_files(
    top: int, base: str, rules: IgnoreRules, *, hidden: bool, limit: int, folders: bool = False
) -> Iterator[str]:
    """The regular files under an open directory, as paths from it, sorted; links are not followed.

    `base` is the directory from the root, with a slash at its end; `rules` are those in force above it. With `folders`
    each directory comes too, before what it holds, with a slash at its end, and each link, with two.
    """
    walk = _walk_tree(top, base, rules, hidden)
    try:
        for path in islice((path for path in walk if folders or path[-1] != "/"), limit):
            yield escape_path(path[len(base) :])
    finally:
        walk.close()


def _walk_tree(fd: int, base: str, rules: IgnoreRules, hidden: bool) -> Generator[str]:
    """All paths in order, from the root; those of directories with a slash at their end, those of links with two."""
    opened = [fd]
    ways = [(base, *_read_directory(fd, base, rules, hidden))]
    try:
        while ways:
            here, rules, ahead = ways[-1]
            for name, is_directory, is_file in ahead:
                if is_file:
                    yield here + name
                elif is_directory:
                    path = f"{here}{name}/"
                    yield path
                    below = _open_subdirectory(name, opened[-1]) if path.count("/") <= MAX_DEPTH else None
                    if below is not None:
                        opened.append(below)
                        ways.append((path, *_read_directory(below, path, rules, hidden)))
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


def _read_directory(fd: int, folder: str, rules: IgnoreRules, hidden: bool) -> tuple[IgnoreRules, Iterator[NamedEntry]]:
    """The rules in force in a directory, and what it holds that they keep."""
    names = _list_names(fd, hidden)
    if any(name == GITIGNORE for name, _, _ in names) or not hidden:
        rules = rules.for_subfolder(fd, folder)
    return rules, iter(rules.without_ignored(folder, names))


def _open_subdirectory(name: str, directory: int) -> int | None:
    try:
        return os.open(name, DIRECTORY_FLAGS | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    except OSError:
        return None


def _list_names(fd: int, hidden: bool) -> list[NamedEntry]:
    """What a directory holds besides git's own folder, and hidden names only if they are wanted."""
    with os.scandir(fd) as scan:
        found = [
            (name, entry.is_dir(follow_symlinks=False), entry.is_file(follow_symlinks=False))
            for entry in scan
            if (name := entry.name)[0] != "."
            or (hidden and name != ".git" and not (name in STARTUP_FILES and is_placeholder(name, fd)))
        ]
    found.sort()
    return found
