"""What stands in a workspace, counted quickly: what has not changed since the last count is not opened again."""

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from ostler.processes.placeholders import is_placeholder
from ostler.processes.startup_files import STARTUP_FILES
from ostler.workspace.gitignore import IgnoreRules
from ostler.workspace.jail import DIRECTORY_FLAGS, Jail

MAX_FILES = 400_000
MAX_DEPTH = 200
TOO_LARGE_FILES = 5_000
TOO_LARGE_BYTES = 100 * 1024 * 1024
MAX_FILE_BYTES = 64 * 1024 * 1024  # files beyond are not kept
_TOO_LARGE_NAMES = frozenset(
    {"node_modules", ".venv", "venv", ".tox", ".nox", ".cache", "__pycache__", ".gradle", ".terraform"}
)
EXCLUDED = b"left out"  # the content of a directory that is not looked into
PIPE = b"pipe"  # the content of a named pipe
_SUBDIRECTORY_FLAGS = DIRECTORY_FLAGS | os.O_NOFOLLOW | os.O_CLOEXEC


class TreeEntry(NamedTuple):
    """One file, link or directory. Whatever changes a file changes the first of these.

    `content` is the digest of a file, the target of a link, empty for a file that is not kept, and for a directory
    empty unless it is left out; of a pipe there is only that it is one.
    """

    ctime_ns: int
    inode: int
    size: int
    mode: int
    content: bytes

    @property
    def is_directory(self) -> bool:
        return stat.S_ISDIR(self.mode)


FolderEntries = dict[str, TreeEntry]
Tree = dict[str, FolderEntries]  # by the folder's path from the root: "" or "path/"
FilesToRead = list[tuple[str, str, TreeEntry]]  # the folder, the name, and all but the content


class ScanStopped(Exception):
    """The count was not wanted any more."""


class TreeScanner:
    """One count of everything under a root, save what git keeps for itself and folders too heavy to keep."""

    def __init__(self, jail: Jail, previous: Tree, too_large: dict[str, str], is_stopped: Callable[[], bool]) -> None:
        self._jail = jail
        self._previous = previous
        self._is_stopped = is_stopped
        self._ignore_rules: dict[str, IgnoreRules] = {}
        self._device = 0
        self._files_left = MAX_FILES
        self.too_large = too_large
        self.tree: Tree = {}
        self.to_read: FilesToRead = []
        self.uncovered: dict[str, str] = {}

    def scan(self) -> None:
        """Fill `tree` with what is known, `fresh` with what must be read, `heavy` and `gaps` with what is left out."""
        fd = self._jail.open(".", DIRECTORY_FLAGS)
        try:
            self._device = os.fstat(fd).st_dev
            self._visit(fd, "", 0)
        finally:
            os.close(fd)
        self.too_large = {path: why for path, why in self.too_large.items() if self._is_in_tree(path)}

    def _visit(self, fd: int, folder: str, depth: int) -> None:
        if self._is_stopped():
            raise ScanStopped
        old = self._previous.get(folder) or {}
        here: FolderEntries = {}
        below: list[str] = []
        fresh = len(self.to_read)
        with os.scandir(fd) as scan:
            for entry in scan:
                name = entry.name
                if entry.is_dir(follow_symlinks=False):
                    below.append(name)
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
                    here[name] = known
                elif stat.S_ISFIFO(found.st_mode):
                    here[name] = TreeEntry(found.st_ctime_ns, found.st_ino, 0, found.st_mode, PIPE)
                elif name == ".git" or (name in STARTUP_FILES and is_placeholder(name, fd)):
                    continue
                elif stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode):
                    self.to_read.append((folder, name, _entry_without_content(found)))
        unread = len(self.to_read) - fresh
        self._files_left -= len(here) + unread
        for name in below:
            if name != ".git" and not is_placeholder(name, fd):
                self._visit_subfolder(fd, folder, name, here, depth)
        self.tree[folder] = old if not unread and here == old else here

    def _visit_subfolder(self, fd: int, folder: str, name: str, here: FolderEntries, depth: int) -> None:
        path = folder + name
        try:
            inside = os.open(name, _SUBDIRECTORY_FLAGS, dir_fd=fd)
        except OSError:
            self.uncovered[path] = "the directory cannot be opened"
            return
        try:
            found = os.fstat(inside)
            known = (self._previous.get(folder) or {}).get(name)
            why = self._exclusion_reason(found, depth) or self._too_large_reason(inside, folder, name)
            item = TreeEntry(0, 0, 0, found.st_mode, EXCLUDED if why else b"")
            here[name] = known if known == item else item
            if not why:
                self._visit(inside, f"{path}/", depth + 1)
            elif path not in self.too_large:
                self.uncovered[path] = why
        finally:
            os.close(inside)

    def _exclusion_reason(self, found: os.stat_result, depth: int) -> str:
        if found.st_dev != self._device:
            return "it is on another file system"
        if depth >= MAX_DEPTH:
            return "it lies too deep"
        return "the workspace has too many files" if self._files_left <= 0 else ""

    def _too_large_reason(self, fd: int, folder: str, name: str) -> str:
        """Why a folder that git leaves out is more than is worth keeping; asked once, when the folder is new."""
        path = folder + name
        if path in self.too_large or f"{path}/" in self._previous:
            return self.too_large.get(path, "")
        if name not in _TOO_LARGE_NAMES and not self._rules_for(folder).is_ignored(path, is_directory=True):
            return ""
        files, size = _measure_folder(fd)
        if files <= TOO_LARGE_FILES and size <= TOO_LARGE_BYTES:
            return ""
        amount = f"over {TOO_LARGE_FILES:,} files" if files > TOO_LARGE_FILES else f"over {TOO_LARGE_BYTES:,} bytes"
        self.too_large[path] = f"git ignores it, and it has {amount}"
        return self.too_large[path]

    def _rules_for(self, folder: str) -> IgnoreRules:
        rules = self._ignore_rules.get(folder)
        if rules is None:
            above = self._rules_for(folder[: folder.rfind("/", 0, -1) + 1]) if folder else IgnoreRules()
            try:
                fd = self._jail.open_without_links(folder or ".", DIRECTORY_FLAGS)
            except OSError:
                return above
            try:
                rules = self._ignore_rules[folder] = above.for_subfolder(fd, folder)
            finally:
                os.close(fd)
        return rules

    def _is_in_tree(self, path: str) -> bool:
        at = path.rfind("/") + 1
        return path[at:] in self.tree.get(path[:at], {})


def _entry_without_content(found: os.stat_result) -> TreeEntry:
    return TreeEntry(found.st_ctime_ns, found.st_ino, found.st_size, found.st_mode, b"")


def _measure_folder(fd: int) -> tuple[int, int]:
    """How many entries a folder holds, and how many bytes, as far as it matters."""
    entries = size = 0
    try:
        for _, folders, names, here in os.fwalk(".", dir_fd=fd):
            entries += len(folders) + len(names)
            for name in names:
                with suppress(OSError):
                    size += os.stat(name, dir_fd=here, follow_symlinks=False).st_size
            if entries > TOO_LARGE_FILES or size > TOO_LARGE_BYTES:
                break
    except RecursionError:
        return TOO_LARGE_FILES + 1, size
    return entries, size
