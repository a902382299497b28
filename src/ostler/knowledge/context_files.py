"""Lists the files of a workspace for its description: shallow files first, limited by depth and number."""

import os
from collections import deque
from collections.abc import Callable, Collection, Iterator

import msgspec

from ostler.knowledge.checks import is_build_output
from ostler.processes.placeholders import entry_is_placeholder
from ostler.text.redact import is_sensitive_file
from ostler.workspace.gitignore import IgnoreRules
from ostler.workspace.jail import DIRECTORY_FLAGS

MAX_SCANNED = 100_000
MAX_FOLDERS = 5000
MAX_REFUSED = 2000  # files that the permission rules may exclude before the search ends, which limits the time


class ContextFile(msgspec.Struct, frozen=True):
    """A regular file with its path relative to the workspace."""

    path: str
    size: int
    modified_ns: int


class FileTree(msgspec.Struct, frozen=True):
    """The listed files, sorted by path. `is_complete` is False if others were omitted because of a limit."""

    files: tuple[ContextFile, ...]
    is_complete: bool


def list_context_files(
    root: str, max_files: int, max_depth: int, ignored_folders: Collection[str], is_listed: Callable[[str], bool]
) -> FileTree:
    """List files that git does not ignore, are not build output and probably contain no secrets.

    Folders are read breadth-first and in order, so that the same workspace always gives the same list. Symlinks are not
    followed. A file in the root has depth 1.
    """
    walk = _TreeWalk(root, max_depth, ignored_folders)
    files: list[ContextFile] = []
    for count, file in enumerate(walk.files()):
        if len(files) == max_files or count - len(files) == MAX_REFUSED:
            walk.is_complete = False
            break
        if is_listed(file.path):
            files.append(file)
    return FileTree(tuple(sorted(files, key=lambda file: file.path)), walk.is_complete)


class _TreeWalk:
    """One walk through a folder; `is_complete` becomes False when a limit omits something."""

    def __init__(self, root: str, max_depth: int, ignored_folders: Collection[str]) -> None:
        self._root = root
        self._max_depth = max_depth
        self._ignored_folders = ignored_folders
        self._scanned = 0
        self._folders = 0
        self.is_complete = True

    def files(self) -> Iterator[ContextFile]:
        waiting: deque[tuple[str, IgnoreRules]] = deque([("", IgnoreRules())])
        while waiting:
            prefix, parent_rules = waiting.popleft()
            self._folders += 1
            if self._folders > MAX_FOLDERS or self._scanned > MAX_SCANNED:
                self.is_complete = False
                return
            try:
                folder = os.open(os.path.join(self._root, prefix), DIRECTORY_FLAGS | os.O_NOFOLLOW | os.O_CLOEXEC)
            except OSError:
                continue
            try:
                rules = parent_rules.for_subfolder(folder, prefix)
                names = self._list(folder)
                for name, is_folder, _ in rules.without_ignored(prefix, names):
                    if is_folder:
                        self._add_folder(waiting, f"{prefix}{name}/", rules)
                    elif file := _read_file_state(folder, prefix, name):
                        yield file
            except OSError:
                continue
            finally:
                os.close(folder)

    def _list(self, folder: int) -> list[tuple[str, bool, bool]]:
        """Return the printable names of files and folders, sorted."""
        found: list[tuple[str, bool, bool]] = []
        with os.scandir(folder) as scan:
            for entry in scan:
                self._scanned += 1
                if entry.name == ".git" or not entry.name.isprintable() or entry.is_symlink():
                    continue
                is_folder = entry.is_dir(follow_symlinks=False)
                if (is_folder or entry.is_file(follow_symlinks=False)) and not entry_is_placeholder(entry, folder):
                    found.append((entry.name, is_folder, not is_folder))
        found.sort()
        return found

    def _add_folder(self, waiting: deque[tuple[str, IgnoreRules]], path: str, rules: IgnoreRules) -> None:
        name = path.rstrip("/").rpartition("/")[2]
        if name in self._ignored_folders or path.rstrip("/") in self._ignored_folders or is_build_output(f"{path}x"):
            return
        if path.count("/") >= self._max_depth:
            self.is_complete = False
            return
        waiting.append((path, rules))


def _read_file_state(folder: int, prefix: str, name: str) -> ContextFile | None:
    path = prefix + name
    if is_sensitive_file(path) or (is_build_output(path) and not name.startswith(".")):
        return None
    try:
        state = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return None
    return ContextFile(path, state.st_size, state.st_mtime_ns)
