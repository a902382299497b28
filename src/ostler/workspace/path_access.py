"""Decides which paths may be opened: the workspace, granted files and folders, or everything for reading."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from ostler.core.protocols import ResolvedPath
from ostler.processes.placeholders import is_placeholder
from ostler.workspace.file_reading import READ_FLAGS
from ostler.workspace.jail import Jail
from ostler.workspace.path_errors import outside_error, path_error
from ostler.workspace.paths import check_path, escape_path, name_existing_tilde, resolve_path, unescape_path


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
        absolute = resolve_path(self.unescape(path), root)
        inside = root in (absolute, "/") or absolute.startswith(f"{root}/")
        display_path = (absolute[len(root) :].lstrip("/") or ".") if inside else absolute
        return absolute, escape_path(display_path), inside

    def relative_path(self, path: str) -> str:
        """Return a path relative to the root. Raises `PathError` if it is outside."""
        inside = self.jail.relative_path(self.unescape(path))
        if inside is None:
            raise outside_error(path)
        return inside

    @contextmanager
    def open_for_reading(self, path: str, flags: int = READ_FLAGS) -> Iterator[int]:
        """Open a path for reading and yield its descriptor."""
        with path_errors(path):
            fd = self._open(self.unescape(path), flags)
        try:
            yield fd
        finally:
            os.close(fd)

    def _open(self, path: str, flags: int) -> int:
        inside = self.jail.relative_path(path)
        if inside is not None:
            try:
                return self.jail.open(inside, flags)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
        return self._open_outside(path, flags)

    def _open_outside(self, path: str, flags: int) -> int:
        real = resolve_path(path, self.jail.root)
        granted = real in self._granted_files or any(
            f"{real}/".startswith(f"{folder}/") for folder in self._granted_folders
        )
        if not granted and not self._read_anywhere:
            raise outside_error(path)
        if self._root_jail is None:
            self._root_jail = Jail("/", without_openat2=self._without_openat2)
        if granted:  # only the granted file itself: symlinks added since are not followed
            return self._root_jail.open_without_links(real.lstrip("/") or ".", flags)
        absolute = path if path.startswith("/") else f"{self.jail.root}/{path}"
        return self._root_jail.open(absolute.lstrip("/"), flags)


@contextmanager
def path_errors(path: str) -> Iterator[None]:
    """Convert an `OSError` in the block to a `PathError`."""
    try:
        yield
    except OSError as error:
        raise (outside_error(path) if error.errno == errno.EXDEV else path_error(error, path)) from None
