"""Find every git directory in the folders that commands may write to, quickly again the second time."""

import errno
import os
import stat
import time
from collections import deque

import msgspec

from ostler.processes.other_repositories import OTHERS

MOST_FOLDERS = 50_000
_TICK = 100_000_000  # nanoseconds within which two changes of a folder may bear the same time
# Of a git directory only these hold others; git takes no path through `.git` for a work tree.
_HOLDS_OTHERS = ("modules", "worktrees")
_THE_KERNEL_S = frozenset({"/proc", "/sys", "/dev"})
_ITS_OWN = frozenset({"objects", "refs", "logs", "info", "hooks"})


class Found(msgspec.Struct):
    """`directories` are git's own folders, bare ones too; `pointers` are files and links named .git; `others` are what
    other version control has such folders in, or links to them.

    What is `shut` cannot be listed, though git may find its way by name.
    """

    directories: set[str] = msgspec.field(default_factory=set)
    pointers: set[str] = msgspec.field(default_factory=set)
    others: set[str] = msgspec.field(default_factory=set)
    shut: set[str] = msgspec.field(default_factory=set)
    complete: bool = True


class _Folder(msgspec.Struct):
    changed: int
    inode: int
    below: list[str]
    directories: list[str]
    pointers: list[str]
    others: list[str] = []
    shut: bool = False


class GitFolders:
    """The kernel gives a folder a new time with every name that comes or goes: the others are not read again."""

    def __init__(self, roots: tuple[str, ...]) -> None:
        self._roots = roots
        self._known: dict[str, _Folder] = {}
        self._found = Found()

    def find(self) -> Found:
        if not self._known or not self._as_before():
            self._found = self._walk()
        return self._found

    def _as_before(self) -> bool:
        look = os.lstat
        try:
            for path, folder in self._known.items():
                state = look(path)
                if state.st_ctime_ns != folder.changed or state.st_ino != folder.inode:
                    return False
        except OSError:
            return False
        return True

    def _walk(self) -> Found:
        found = Found()
        known: dict[str, _Folder] = {}
        ahead = deque(self._roots)
        settled = time.time_ns() - _TICK
        while ahead:
            path = ahead.popleft()
            if len(known) >= MOST_FOLDERS:
                found.complete = False
                break
            try:
                state = os.lstat(path)
                if not stat.S_ISDIR(state.st_mode) or path in _THE_KERNEL_S:
                    continue
                folder = self._known.get(path)
                if folder is None or folder.changed != state.st_ctime_ns or folder.inode != state.st_ino:
                    folder = _look(path, state.st_ctime_ns if state.st_ctime_ns <= settled else -1, state.st_ino)
            except OSError as error:
                found.complete = found.complete and error.errno != errno.ENAMETOOLONG
                continue
            known[path] = folder
            ahead.extend(folder.below)
            found.directories.update(folder.directories)
            found.pointers.update(folder.pointers)
            found.others.update(folder.others)
            if folder.shut:
                found.shut.add(path)
        self._known = known
        return found


def _look(path: str, changed: int, inode: int) -> _Folder:
    try:
        with os.scandir(path) as entries:
            kinds = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
    except OSError:
        return _Folder(-1, inode, [], [], [], shut=True)
    if os.path.basename(path) == ".git":
        return _Folder(changed, inode, [f"{path}/{name}" for name in _HOLDS_OTHERS if kinds.get(name)], [path], [])
    is_git = "HEAD" in kinds and not kinds.keys().isdisjoint({"objects", "refs", "commondir"})
    skipped = _ITS_OWN if is_git and "/.git/" in path else frozenset()
    above = path.rstrip("/")
    below = [f"{above}/{name}" for name, is_folder in kinds.items() if is_folder and name not in skipped]
    pointers = [f"{above}/.git"] if kinds.get(".git") is False else []
    others = [f"{above}/{name}" for name in OTHERS if name in kinds]
    return _Folder(changed, inode, below, [path] if is_git else [], pointers, others)
