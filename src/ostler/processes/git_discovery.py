"""Find every git directory in the folders that commands may write to, quickly again the second time."""

import errno
import os
import stat
import time
from collections import deque

import msgspec

from ostler.processes.other_vcs import OTHER_VCS_FILES

MAX_FOLDERS = 50_000
_TICK_NS = 100_000_000  # nanoseconds within which two changes of a folder may bear the same time
# Of a git directory only these hold others; git takes no path through `.git` for a work tree.
_NESTED_FOLDERS = ("modules", "worktrees")
_KERNEL_FOLDERS = frozenset({"/proc", "/sys", "/dev"})
_GIT_INTERNAL_FOLDERS = frozenset({"objects", "refs", "logs", "info", "hooks"})


class GitDirectories(msgspec.Struct):
    """`directories` are git's own folders, bare ones too; `pointers` are files and links named .git; `others` are what
    other version control has such folders in, or links to them.

    What is `shut` cannot be listed, though git may find its way by name.
    """

    directories: set[str] = msgspec.field(default_factory=set)
    pointers: set[str] = msgspec.field(default_factory=set)
    other_vcs: set[str] = msgspec.field(default_factory=set)
    unreadable: set[str] = msgspec.field(default_factory=set)
    is_complete: bool = True


class _ScannedFolder(msgspec.Struct):
    ctime_ns: int
    inode: int
    subfolders: list[str]
    directories: list[str]
    pointers: list[str]
    other_vcs: list[str] = []
    unreadable: bool = False


class GitDirectoryScanner:
    """The kernel gives a folder a new time with every name that comes or goes: the others are not read again."""

    def __init__(self, roots: tuple[str, ...]) -> None:
        self._roots = roots
        self._known: dict[str, _ScannedFolder] = {}
        self._found = GitDirectories()

    def find(self) -> GitDirectories:
        if not self._known or not self._is_unchanged():
            self._found = self._walk()
        return self._found

    def _is_unchanged(self) -> bool:
        look = os.lstat
        try:
            for path, folder in self._known.items():
                state = look(path)
                if state.st_ctime_ns != folder.ctime_ns or state.st_ino != folder.inode:
                    return False
        except OSError:
            return False
        return True

    def _walk(self) -> GitDirectories:
        found = GitDirectories()
        known: dict[str, _ScannedFolder] = {}
        ahead = deque(self._roots)
        settled = time.time_ns() - _TICK_NS
        while ahead:
            path = ahead.popleft()
            if len(known) >= MAX_FOLDERS:
                found.is_complete = False
                break
            try:
                state = os.lstat(path)
                if not stat.S_ISDIR(state.st_mode) or path in _KERNEL_FOLDERS:
                    continue
                folder = self._known.get(path)
                if folder is None or folder.ctime_ns != state.st_ctime_ns or folder.inode != state.st_ino:
                    folder = _scan_folder(path, state.st_ctime_ns if state.st_ctime_ns <= settled else -1, state.st_ino)
            except OSError as error:
                found.is_complete = found.is_complete and error.errno != errno.ENAMETOOLONG
                continue
            known[path] = folder
            ahead.extend(folder.subfolders)
            found.directories.update(folder.directories)
            found.pointers.update(folder.pointers)
            found.other_vcs.update(folder.other_vcs)
            if folder.unreadable:
                found.unreadable.add(path)
        self._known = known
        return found


def _scan_folder(path: str, ctime_ns: int, inode: int) -> _ScannedFolder:
    try:
        with os.scandir(path) as entries:
            kinds = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
    except OSError:
        return _ScannedFolder(-1, inode, [], [], [], unreadable=True)
    if os.path.basename(path) == ".git":
        return _ScannedFolder(
            ctime_ns, inode, [f"{path}/{name}" for name in _NESTED_FOLDERS if kinds.get(name)], [path], []
        )
    is_git = "HEAD" in kinds and not kinds.keys().isdisjoint({"objects", "refs", "commondir"})
    skipped = _GIT_INTERNAL_FOLDERS if is_git and "/.git/" in path else frozenset()
    above = path.rstrip("/")
    below = [f"{above}/{name}" for name, is_folder in kinds.items() if is_folder and name not in skipped]
    pointers = [f"{above}/.git"] if kinds.get(".git") is False else []
    others = [f"{above}/{name}" for name in OTHER_VCS_FILES if name in kinds]
    return _ScannedFolder(ctime_ns, inode, below, [path] if is_git else [], pointers, others)
