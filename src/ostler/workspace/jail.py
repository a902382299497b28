"""Opens paths below a root directory; symlinks and races cannot leave it."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from types import TracebackType

from ostler.core.errors import UsageError
from ostler.workspace.openat2 import load_openat2
from ostler.workspace.path_walk import walk
from ostler.workspace.paths import relative_to_root, split_path

DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY
_MAX_ATTEMPTS = 8


@contextmanager
def closing_fd(fd: int) -> Iterator[int]:
    """Close a descriptor at the end of the block."""
    try:
        yield fd
    finally:
        os.close(fd)


class EntryHandle:
    """A name in an open directory. Operations use the directory descriptor, so a changed path does not affect them."""

    __slots__ = ("directory_fd", "name", "relative")

    def __init__(self, directory_fd: int, name: str, relative: str) -> None:
        self.directory_fd = directory_fd
        self.name = name
        self.relative = relative

    def __enter__(self) -> "EntryHandle":
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        os.close(self.directory_fd)

    def open(self, flags: int) -> AbstractContextManager[int]:
        """Open the entry, which must not be a symlink, until the end of the block."""
        return closing_fd(os.open(self.name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.directory_fd))

    def stat(self) -> os.stat_result | None:
        """Return the stat result without following symlinks, or None if the entry does not exist."""
        try:
            return os.stat(self.name, dir_fd=self.directory_fd, follow_symlinks=False)
        except FileNotFoundError:
            return None


class Jail:
    """Opens paths below a root. Raises `OSError`; EXDEV means that the path is outside."""

    def __init__(self, root: str, *, without_openat2: bool = False) -> None:
        try:
            self.root = os.path.realpath(root)
            self._fd = os.open(self.root, DIRECTORY_FLAGS | os.O_CLOEXEC)
        except (OSError, ValueError):
            raise UsageError(
                f"{root} is not a directory, or cannot be opened", hint="choose another directory"
            ) from None
        self.root_paths = (self.root, os.path.abspath(root))
        self._openat2 = None if without_openat2 else load_openat2()

    def close(self) -> None:
        """Close the root; nothing can be opened afterwards."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        if hasattr(self, "_fd"):
            self.close()

    def relative_path(self, path: str) -> str | None:
        """Return a path relative to the root, or None if it is absolute and outside."""
        return relative_to_root(path, self.root_paths)

    def open(self, relative: str, flags: int) -> int:
        """Open a path below the root and return its descriptor; symlinks that stay inside are followed."""
        for _ in range(_MAX_ATTEMPTS if self._openat2 else 0):
            try:
                return self._openat2(self._fd, relative, flags)  # type: ignore[misc]
            except OSError as error:
                if error.errno == errno.EXDEV:
                    break  # an absolute symlink; `walk` checks whether it stays inside
                if error.errno != errno.EAGAIN:
                    raise
        return walk(self._fd, relative, flags, self.relative_path)

    def open_without_links(self, relative: str, flags: int) -> int:
        """Open a path that must not contain any symlink."""
        return walk(self._fd, relative, flags, self.relative_path, max_links=0)

    def open_directory(self, relative: str, *, create: bool = False) -> int:
        """Open a directory whose path has no symlinks; with `create`, create it and its parents if missing."""
        missing: list[str] = []
        while True:
            try:
                fd = self.open_without_links(relative, DIRECTORY_FLAGS)
                break
            except FileNotFoundError:
                relative, name = split_path(relative.rstrip("/"))
                if not create or not name:
                    raise
                missing.append(name)
        for name in reversed(missing):
            parent = fd
            try:
                fd = _make_and_open(name, parent)
            finally:
                os.close(parent)
        return fd

    def open_target(self, relative: str, *, create: bool = False) -> EntryHandle:
        """Return the entry that a write to a resolved path changes. Raises if it is a symlink, which is new then."""
        entry = self.open_entry(relative, create=create)
        if (found := entry.stat()) is not None and stat.S_ISLNK(found.st_mode):
            os.close(entry.directory_fd)
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), relative)
        return entry

    def open_entry(self, relative: str, *, create: bool = False) -> EntryHandle:
        """Return the entry of a path; a symlink as its last component is not followed."""
        head, name = split_path(relative)
        if not name:
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), relative)
        return EntryHandle(self.open_directory(head, create=create), name, relative)


def _make_and_open(name: str, parent_fd: int) -> int:
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=parent_fd)
    return os.open(name, DIRECTORY_FLAGS | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent_fd)
