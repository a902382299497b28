"""Scans a workspace and reports which files must be read again."""

import os
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress

from ostler.processes.placeholders import is_placeholder
from ostler.processes.startup_files import STARTUP_FILES
from ostler.workspace.gitignore import FolderRules
from ostler.workspace.jail import DIRECTORY_FLAGS, Jail, closing_fd
from ostler.workspace.packed_folder import EXCLUDED, PIPE, FolderEntries, PackedTree, TreeEntry, entries_of, pack
from ostler.workspace.unchanged_folders import ScanStopped, UnchangedFolders

MAX_FILES = 1_000_000
MAX_DEPTH = 200
TOO_LARGE_FILES = 5_000
TOO_LARGE_BYTES = 100 * 1024 * 1024
MAX_FILE_BYTES = 64 * 1024 * 1024  # larger files are not saved
_TOO_LARGE_NAMES = frozenset(
    {"node_modules", ".venv", "venv", ".tox", ".nox", ".cache", "__pycache__", ".gradle", ".terraform"}
)
_SUBDIRECTORY_FLAGS = DIRECTORY_FLAGS | os.O_NOFOLLOW | os.O_CLOEXEC


class TreeScanner:
    """One scan of everything below a root, except `.git` and folders that are too large to save."""

    def __init__(
        self, jail: Jail, previous: PackedTree, too_large: dict[str, str], is_stopped: Callable[[], bool]
    ) -> None:
        self._jail = jail
        self._previous = previous
        self._is_stopped = is_stopped
        self._unchanged: set[str] = set()
        self._unchanged_folders = UnchangedFolders(previous, is_stopped)
        self._ignore_rules = FolderRules(jail)
        self._device = 0
        self._files_left = MAX_FILES
        self.too_large = too_large
        self.tree: PackedTree = {}
        self.unread: dict[str, int] = {}  # folders with new files, and their modes
        self.unread_files = self.unread_bytes = 0
        self.uncovered: dict[str, str] = {}

    @property
    def file_count(self) -> int:
        """The number of files found so far."""
        return max(MAX_FILES - self._files_left, self._unchanged_folders.file_count)

    def scan(self) -> None:
        """Fill `tree` and `unread`, with `too_large` and `uncovered` for excluded paths.

        `tree` has the previous object for each unchanged folder. The entries of new files in `unread` folders have no
        content yet.
        """
        with closing_fd(self._jail.open(".", DIRECTORY_FLAGS)) as fd:
            found = os.fstat(fd)
            self._device = found.st_dev
            self._unchanged = self._unchanged_folders.find(fd)
            if "" in self._unchanged:
                self._keep("")
            else:
                self._visit(fd, "", found.st_mode, 0)
        self.too_large = {path: reason for path, reason in self.too_large.items() if self._is_in_tree(path)}

    def set_folder(self, folder: str, entries: FolderEntries, mode: int) -> None:
        """Set the entries of a folder; if they are the previous ones, keep the previous object."""
        previous, packed = self._previous.get(folder), pack(entries, mode)
        self.tree[folder] = previous if previous is not None and previous == packed else packed

    def _keep(self, folder: str) -> None:
        """Keep an unchanged folder with everything below it."""
        previous = self.tree[folder] = self._previous[folder]
        self._files_left -= previous.stamped_files
        for name in previous.subfolders():
            self._keep(f"{folder}{name}/")

    def _visit(self, fd: int, folder: str, mode: int, depth: int) -> None:
        if self._is_stopped():
            raise ScanStopped
        old = entries_of(self._previous.get(folder))
        new_entries: FolderEntries = {}
        subfolders: list[str] = []
        already_unread = self.unread_files
        with os.scandir(fd) as scan:
            for entry in scan:
                name = entry.name
                if entry.is_dir(follow_symlinks=False):
                    subfolders.append(name)
                    continue
                try:
                    found = entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                known = old.get(name)
                if (
                    known
                    and known[0] == found.st_ctime_ns
                    and known[1] == found.st_ino
                    and (known[4] or known[2] > MAX_FILE_BYTES)
                ):
                    new_entries[name] = known
                elif stat.S_ISFIFO(found.st_mode):
                    new_entries[name] = TreeEntry(found.st_ctime_ns, found.st_ino, 0, found.st_mode, PIPE)
                elif name == ".git" or (name in STARTUP_FILES and is_placeholder(name, fd)):
                    continue
                elif stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode):
                    new_entries[name] = TreeEntry(found.st_ctime_ns, found.st_ino, found.st_size, found.st_mode, b"")
                    self.unread_files += 1
                    self.unread_bytes += found.st_size if found.st_size <= MAX_FILE_BYTES else 0
        if self.unread_files > already_unread:
            self.unread[folder] = mode
        self._files_left -= len(new_entries)
        self._visit_subfolders(fd, folder, subfolders, new_entries, depth)
        self.set_folder(folder, new_entries, mode)

    def _visit_subfolders(
        self, fd: int, folder: str, names: Sequence[str], new_entries: FolderEntries, depth: int
    ) -> None:
        old = entries_of(self._previous.get(folder))
        for name in names:
            if f"{folder}{name}/" in self._unchanged:
                new_entries[name] = old[name]
                self._keep(f"{folder}{name}/")
            elif name != ".git" and not is_placeholder(name, fd):
                self._visit_subfolder(fd, folder, name, new_entries, depth)

    def _visit_subfolder(self, fd: int, folder: str, name: str, new_entries: FolderEntries, depth: int) -> None:
        path = folder + name
        try:
            subfolder_fd = os.open(name, _SUBDIRECTORY_FLAGS, dir_fd=fd)
        except OSError:
            self.uncovered[path] = "the directory cannot be opened"
            return
        try:
            found = os.fstat(subfolder_fd)
            reason = self._exclusion_reason(found, depth) or self._too_large_reason(subfolder_fd, folder, name)
            new_entries[name] = TreeEntry(0, 0, 0, found.st_mode, EXCLUDED if reason else b"")
            if not reason:
                self._visit(subfolder_fd, f"{path}/", found.st_mode, depth + 1)
            elif path not in self.too_large:
                self.uncovered[path] = reason
        finally:
            os.close(subfolder_fd)

    def _exclusion_reason(self, found: os.stat_result, depth: int) -> str:
        if found.st_dev != self._device:
            return "it is on another file system"
        if depth >= MAX_DEPTH:
            return "it is nested too deeply"
        return "the workspace has too many files" if self._files_left <= 0 else ""

    def _too_large_reason(self, fd: int, folder: str, name: str) -> str:
        """Return why an ignored folder is too large to save, or an empty string. Only new folders are measured."""
        path = folder + name
        if path in self.too_large or f"{path}/" in self._previous:
            return self.too_large.get(path, "")
        if name not in _TOO_LARGE_NAMES and not self._ignore_rules.of(folder).is_ignored(path, is_directory=True):
            return ""
        files, size = _measure_folder(fd)
        if files <= TOO_LARGE_FILES and size <= TOO_LARGE_BYTES:
            return ""
        amount = f"over {TOO_LARGE_FILES:,} files" if files > TOO_LARGE_FILES else f"over {TOO_LARGE_BYTES:,} bytes"
        self.too_large[path] = f"git ignores it, and it has {amount}"
        return self.too_large[path]

    def _is_in_tree(self, path: str) -> bool:
        start = path.rfind("/") + 1
        return path[start:] in entries_of(self.tree.get(path[:start]))


def _measure_folder(fd: int) -> tuple[int, int]:
    """Return the number of entries and bytes in a folder; stops once it is too large."""
    entries = size = 0
    try:
        for _, folders, names, folder_fd in os.fwalk(".", dir_fd=fd):
            entries += len(folders) + len(names)
            for name in names:
                with suppress(OSError):
                    size += os.stat(name, dir_fd=folder_fd, follow_symlinks=False).st_size
            if entries > TOO_LARGE_FILES or size > TOO_LARGE_BYTES:
                break
    except RecursionError:
        return TOO_LARGE_FILES + 1, size
    return entries, size
