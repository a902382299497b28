"""Finds every git directory below some folders, with a cache for the next scan."""

import errno
import os
import stat
import time
from collections import deque

import msgspec

from ostler.processes.other_vcs import OTHER_VCS_FILES

MAX_FOLDERS = 50_000
_TICK_NS = 100_000_000  # nanoseconds in which two changes of a folder can get the same timestamp
# The only folders of a git directory that contain others; git never uses a path through `.git` as a work tree.
_NESTED_FOLDERS = ("modules", "worktrees")
_KERNEL_FOLDERS = frozenset({"/proc", "/sys", "/dev"})
_GIT_INTERNAL_FOLDERS = frozenset({"objects", "refs", "logs", "info", "hooks"})


class GitDirectories(msgspec.Struct):
    """The result of a scan.

    `directories` are git directories, including bare ones; `pointers` are files and symlinks named .git; `other_vcs`
    are the folders of other version control systems. `unreadable` folders cannot be listed, but git may open files in
    them by name.
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
    """Scans for git directories. A folder is read again only if its change time changed."""

    def __init__(self, roots: tuple[str, ...]) -> None:
        self._roots = roots
        self._known: dict[str, _ScannedFolder] = {}
        self._found = GitDirectories()

    def find(self) -> GitDirectories:
        if not self._known or not self._is_unchanged():
            self._found = self._walk()
        return self._found

    def _is_unchanged(self) -> bool:
        lstat = os.lstat  # faster in the loop
        try:
            for path, folder in self._known.items():
                found_stat = lstat(path)
                if found_stat.st_ctime_ns != folder.ctime_ns or found_stat.st_ino != folder.inode:
                    return False
        except OSError:
            return False
        return True

    def _walk(self) -> GitDirectories:
        found = GitDirectories()
        known: dict[str, _ScannedFolder] = {}
        pending = deque(self._roots)
        latest_cacheable = time.time_ns() - _TICK_NS
        while pending:
            path = pending.popleft()
            if len(known) >= MAX_FOLDERS:
                found.is_complete = False
                break
            try:
                found_stat = os.lstat(path)
                if not stat.S_ISDIR(found_stat.st_mode) or path in _KERNEL_FOLDERS:
                    continue
                folder = self._known.get(path)
                if folder is None or folder.ctime_ns != found_stat.st_ctime_ns or folder.inode != found_stat.st_ino:
                    folder = _scan_folder(
                        path,
                        found_stat.st_ctime_ns if found_stat.st_ctime_ns <= latest_cacheable else -1,
                        found_stat.st_ino,
                    )
            except OSError as error:
                found.is_complete = found.is_complete and error.errno != errno.ENAMETOOLONG
                continue
            known[path] = folder
            pending.extend(folder.subfolders)
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
    parent = path.rstrip("/")
    subfolders = [f"{parent}/{name}" for name, is_folder in kinds.items() if is_folder and name not in skipped]
    pointers = [f"{parent}/.git"] if kinds.get(".git") is False else []
    others = [f"{parent}/{name}" for name in OTHER_VCS_FILES if name in kinds]
    return _ScannedFolder(ctime_ns, inode, subfolders, [path] if is_git else [], pointers, others)
