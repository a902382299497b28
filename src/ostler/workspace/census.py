"""What stands in a workspace, counted quickly: what has not changed since the last count is not opened again."""

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from ostler.processes.placeholders import stands_in
from ostler.processes.start_up import CONTENTS
from ostler.workspace.ignores import Ignores
from ostler.workspace.jail import DIRECTORY, Jail

MOST_FILES = 400_000
DEEPEST = 200
HEAVY_FILES = 5_000
HEAVY_BYTES = 100 * 1024 * 1024
LARGEST = 64 * 1024 * 1024  # files beyond are not kept
_HEAVY_NAMES = frozenset(
    {"node_modules", ".venv", "venv", ".tox", ".nox", ".cache", "__pycache__", ".gradle", ".terraform"}
)
LEFT_OUT = b"left out"  # the content of a directory that is not looked into
PIPE = b"pipe"  # the content of a named pipe
_BELOW = DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Item(NamedTuple):
    """One file, link or directory. Whatever changes a file changes the first of these.

    `content` is the digest of a file, the target of a link, empty for a file that is not kept, and for a directory
    empty unless it is left out; of a pipe there is only that it is one.
    """

    changed: int
    inode: int
    size: int
    mode: int
    content: bytes

    @property
    def is_directory(self) -> bool:
        return stat.S_ISDIR(self.mode)


Folder = dict[str, Item]
Tree = dict[str, Folder]  # by the folder's path from the root: "" or "path/"
Fresh = list[tuple[str, str, Item]]  # the folder, the name, and all but the content


class StoppedError(Exception):
    """The count was not wanted any more."""


class Census:
    """One count of everything under a root, save what git keeps for itself and folders too heavy to keep."""

    def __init__(self, jail: Jail, old: Tree, heavy: dict[str, str], stopped: Callable[[], bool]) -> None:
        self._jail = jail
        self._old = old
        self._stopped = stopped
        self._ignores: dict[str, Ignores] = {}
        self._device = 0
        self._left = MOST_FILES
        self.heavy = heavy
        self.tree: Tree = {}
        self.fresh: Fresh = []
        self.gaps: dict[str, str] = {}

    def take(self) -> None:
        """Fill `tree` with what is known, `fresh` with what must be read, `heavy` and `gaps` with what is left out."""
        fd = self._jail.open(".", DIRECTORY)
        try:
            self._device = os.fstat(fd).st_dev
            self._visit(fd, "", 0)
        finally:
            os.close(fd)
        self.heavy = {path: why for path, why in self.heavy.items() if self._stands(path)}

    def _visit(self, fd: int, folder: str, depth: int) -> None:
        if self._stopped():
            raise StoppedError
        old = self._old.get(folder) or {}
        here: Folder = {}
        below: list[str] = []
        fresh = len(self.fresh)
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
                    and (known[4] or known[2] > LARGEST)
                ):
                    here[name] = known
                elif stat.S_ISFIFO(found.st_mode):
                    here[name] = Item(found.st_ctime_ns, found.st_ino, 0, found.st_mode, PIPE)
                elif name == ".git" or (name in CONTENTS and stands_in(name, fd)):
                    continue
                elif stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode):
                    self.fresh.append((folder, name, _unread(found)))
        unread = len(self.fresh) - fresh
        self._left -= len(here) + unread
        for name in below:
            if name != ".git" and not stands_in(name, fd):
                self._enter(fd, folder, name, here, depth)
        self.tree[folder] = old if not unread and here == old else here

    def _enter(self, fd: int, folder: str, name: str, here: Folder, depth: int) -> None:
        path = folder + name
        try:
            inside = os.open(name, _BELOW, dir_fd=fd)
        except OSError:
            self.gaps[path] = "the directory cannot be opened"
            return
        try:
            found = os.fstat(inside)
            known = (self._old.get(folder) or {}).get(name)
            why = self._left_out(found, depth) or self._heavy(inside, folder, name)
            item = Item(0, 0, 0, found.st_mode, LEFT_OUT if why else b"")
            here[name] = known if known == item else item
            if not why:
                self._visit(inside, f"{path}/", depth + 1)
            elif path not in self.heavy:
                self.gaps[path] = why
        finally:
            os.close(inside)

    def _left_out(self, found: os.stat_result, depth: int) -> str:
        if found.st_dev != self._device:
            return "it is on another file system"
        if depth >= DEEPEST:
            return "it lies too deep"
        return "the workspace has too many files" if self._left <= 0 else ""

    def _heavy(self, fd: int, folder: str, name: str) -> str:
        """Why a folder that git leaves out is more than is worth keeping; asked once, when the folder is new."""
        path = folder + name
        if path in self.heavy or f"{path}/" in self._old:
            return self.heavy.get(path, "")
        if name not in _HEAVY_NAMES and not self._rules(folder).leave_out(path, is_directory=True):
            return ""
        files, size = _weight(fd)
        if files <= HEAVY_FILES and size <= HEAVY_BYTES:
            return ""
        amount = f"over {HEAVY_FILES:,} files" if files > HEAVY_FILES else f"over {HEAVY_BYTES:,} bytes"
        self.heavy[path] = f"git ignores it, and it has {amount}"
        return self.heavy[path]

    def _rules(self, folder: str) -> Ignores:
        rules = self._ignores.get(folder)
        if rules is None:
            above = self._rules(folder[: folder.rfind("/", 0, -1) + 1]) if folder else Ignores()
            try:
                fd = self._jail.open_plain(folder or ".", DIRECTORY)
            except OSError:
                return above
            try:
                rules = self._ignores[folder] = above.below(fd, folder)
            finally:
                os.close(fd)
        return rules

    def _stands(self, path: str) -> bool:
        at = path.rfind("/") + 1
        return path[at:] in self.tree.get(path[:at], {})


def _unread(found: os.stat_result) -> Item:
    return Item(found.st_ctime_ns, found.st_ino, found.st_size, found.st_mode, b"")


def _weight(fd: int) -> tuple[int, int]:
    """How many entries a folder holds, and how many bytes, as far as it matters."""
    entries = size = 0
    try:
        for _, folders, names, here in os.fwalk(".", dir_fd=fd):
            entries += len(folders) + len(names)
            for name in names:
                with suppress(OSError):
                    size += os.stat(name, dir_fd=here, follow_symlinks=False).st_size
            if entries > HEAVY_FILES or size > HEAVY_BYTES:
                break
    except RecursionError:
        return HEAVY_FILES + 1, size
    return entries, size
