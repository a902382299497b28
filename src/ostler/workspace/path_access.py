"""Decides which paths may be opened: the workspace, granted files and folders, or everything for reading."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ostler.core.protocols import ResolvedPath
from ostler.processes.placeholders import is_placeholder
from ostler.workspace.file_reading import READ_FLAGS
from ostler.workspace.jail import Jail, closing_fd
from ostler.workspace.path_errors import outside_error, path_error
from ostler.workspace.paths import check_path, escape_path, name_existing_tilde, resolve_path, split_path, unescape_path

_resolved: ContextVar[dict[tuple[str, str], str] | None] = ContextVar("_resolved", default=None)


@contextmanager
def resolving_once() -> Iterator[None]:
    """Let each path keep, during one call, the place that it led to when it was first resolved.

    The place that the policy decides about is the one that is opened, even if a symlink changes in between.
    """
    token = _resolved.set({})
    try:
        yield
    finally:
        _resolved.reset(token)


class PathAccess:
    """The workspace's jail, and what may be read outside it. Nothing outside can be opened for writing."""

    def __init__(self, root: str, *, read_anywhere: bool, without_openat2: bool = False) -> None:
        self.jail = Jail(root, without_openat2=without_openat2)
        self._read_anywhere = read_anywhere
        self._granted_files: set[str] = set()
        self._granted_folders: set[str] = set()
        self._without_openat2 = without_openat2
        self._root_jail: Jail | None = None

    def close(self) -> None:
        self.jail.close()
        if self._root_jail is not None:
            self._root_jail.close()

    def grant_file(self, path: str) -> None:
        """Allow reading one file outside: the one that the path resolves to now."""
        self._granted_files.add(resolve_path(self.unescape(path), self.jail.root))

    def real_path(self, path: str) -> str:
        """Return an unescaped path with all symlinks resolved, as far as it exists."""
        root = self.jail.root
        inside = self.jail.relative_path(path)
        path = path if inside is None else inside
        if (known := _resolved.get()) is None:
            return resolve_path(path, root)
        if (root, path) not in known:
            folder = split_path(path.rstrip("/"))[0]  # of an entry that is deleted or renamed
            known.setdefault((root, folder), resolve_path(folder, root))
            known[root, path] = resolve_path(path, root)
        return known[root, path]

    def unescape(self, path: str) -> str:
        """Validate a path and replace the escapes that `escape_path` wrote for unprintable names."""
        return unescape_path(check_path(name_existing_tilde(path, self.jail.root)), self.jail.root)

    def grant_folder(self, path: str) -> None:
        """Allow reading everything below a folder outside."""
        self._granted_folders.add(os.path.realpath(path).rstrip("/"))

    def resolve(self, path: str) -> ResolvedPath:
        """Resolve a path, following all symlinks."""
        absolute, display_path, inside = self.locate(path)
        exists = os.path.lexists(absolute) and not is_placeholder(absolute)
        return ResolvedPath(display_path, escape_path(absolute), inside, exists)

    def locate(self, path: str) -> tuple[str, str, bool]:
        """Return the resolved path, the path to display, and whether it is inside the workspace."""
        root = self.jail.root
        absolute = self.real_path(self.unescape(path))
        inside = root in (absolute, "/") or absolute.startswith(f"{root}/")
        display_path = (absolute[len(root) :].lstrip("/") or ".") if inside else absolute
        return absolute, escape_path(display_path), inside

    def relative_path(self, path: str) -> str:
        """Return a path relative to the root, with all symlinks resolved. Raises `PathError` if it is outside."""
        absolute, _, inside = self.locate(path)
        if not inside or self.jail.relative_path(self.unescape(path)) is None:
            raise outside_error(path)
        return self._below_root(absolute) + ("/" if path.endswith("/") else "")

    def _below_root(self, absolute: str) -> str:
        return absolute[len(self.jail.root.rstrip("/")) :].lstrip("/") or "."

    @contextmanager
    def open_for_reading(self, path: str, flags: int = READ_FLAGS) -> Iterator[int]:
        """Open a path for reading and yield its descriptor."""
        with path_errors(path):
            opened = self._open(self.unescape(path), flags)
        with closing_fd(opened) as fd:
            yield fd

    def _open(self, path: str, flags: int) -> int:
        real, root = self.real_path(path), self.jail.root.rstrip("/")
        if self.jail.relative_path(path) is not None and f"{real}/".startswith(f"{root}/"):
            return self.jail.open_without_links(self._below_root(real) + ("/" if path.endswith("/") else ""), flags)
        granted = real in self._granted_files or any(
            f"{real}/".startswith(f"{folder}/") for folder in self._granted_folders
        )
        if not granted and not self._read_anywhere:
            raise outside_error(path)
        from ostler.processes.sandbox_policy import links_on  # imported late: such paths are rare

        if any(link.startswith("/proc/") for link in links_on(os.path.join(root, path))):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)  # what they lead to depends on the process
        if self._root_jail is None:
            self._root_jail = Jail("/", without_openat2=self._without_openat2)
        return self._root_jail.open_without_links(real.lstrip("/") or ".", flags)


@contextmanager
def path_errors(path: str) -> Iterator[None]:
    """Convert an `OSError` in the block to a `PathError`."""
    try:
        yield
    except OSError as error:
        raise (outside_error(path) if error.errno == errno.EXDEV else path_error(error, path)) from None
