"""Lists directories and walks trees without ignored files."""

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
    """Return the kind of entry for a file mode."""
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "link" if stat.S_ISLNK(mode) else "other"


def list_entries(fd: int, path: str) -> list[DirectoryEntry]:
    """Return the entries of an open directory, sorted by name. Raises `PathError` if there are too many."""
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
        found = entry.stat(follow_symlinks=False)
    except OSError:
        return DirectoryEntry(escape_path(entry.name), "other")
    kind = entry_kind(found.st_mode)
    return DirectoryEntry(escape_path(entry.name), kind, found.st_size if kind == "file" else 0)


def walk_files(
    top: int, base: str, rules: IgnoreRules, *, hidden: bool, limit: int, folders: bool = False
) -> Iterator[str]:
    """Yield the regular files below an open directory, as sorted paths relative to it; symlinks are not followed.

    `base` is the directory relative to the root, with a trailing slash; `rules` are those of its parents. With
    `folders`, directories are included (before their content, with a trailing slash) and symlinks (with two).
    """
    walk = _walk_tree(top, base, rules, hidden)
    try:
        for path in islice((path for path in walk if folders or path[-1] != "/"), limit):
            yield escape_path(path[len(base) :])
    finally:
        walk.close()


def _walk_tree(fd: int, base: str, rules: IgnoreRules, hidden: bool) -> Generator[str]:
    """Yield all paths in order, relative to the root; directories end with a slash, symlinks with two."""
    open_fds = [fd]
    stack = [(base, *_read_directory(fd, base, rules, hidden))]
    try:
        while stack:
            folder, rules, remaining = stack[-1]
            for name, is_directory, is_file in remaining:
                if is_file:
                    yield folder + name
                elif is_directory:
                    path = f"{folder}{name}/"
                    yield path
                    child_fd = _open_subdirectory(name, open_fds[-1]) if path.count("/") <= MAX_DEPTH else None
                    if child_fd is not None:
                        open_fds.append(child_fd)
                        stack.append((path, *_read_directory(child_fd, path, rules, hidden)))
                        break
                elif is_link(name, open_fds[-1]):
                    yield f"{folder}{name}//"
            else:
                stack.pop()
                child_fd = open_fds.pop()
                if child_fd != fd:
                    os.close(child_fd)
    finally:
        for child_fd in open_fds:
            if child_fd != fd:
                os.close(child_fd)


def _read_directory(fd: int, folder: str, rules: IgnoreRules, hidden: bool) -> tuple[IgnoreRules, Iterator[NamedEntry]]:
    """Return the rules of a directory and its entries that are not ignored."""
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
    """Return the sorted entries of a directory without `.git`; hidden ones only with `hidden`."""
    with os.scandir(fd) as scan:
        found = [
            (name, entry.is_dir(follow_symlinks=False), entry.is_file(follow_symlinks=False))
            for entry in scan
            if (name := entry.name)[0] != "."
            or (hidden and name != ".git" and not (name in STARTUP_FILES and is_placeholder(name, fd)))
        ]
    found.sort()
    return found
