"""Reads changed files into the content store, within time and size limits."""

import os
import stat
import time
from collections.abc import Callable

from ostler.workspace.content_store import LARGE_CONTENT_BYTES, ContentStore
from ostler.workspace.file_reading import READ_FLAGS, read_up_to
from ostler.workspace.jail import DIRECTORY_FLAGS, Jail, closing_fd
from ostler.workspace.packed_folder import FolderEntries, TreeEntry
from ostler.workspace.tree_scan import MAX_FILE_BYTES
from ostler.workspace.unchanged_folders import ScanStopped

_TICK_NS = 100_000_000  # nanoseconds in which two changes can get the same timestamp
_COARSE_TICK_NS = 2_000_000_000
_MAX_ATTEMPTS = 3
_BATCH_SIZE = 500
CAPTURE_TIMEOUT_SECONDS = 120.0


class ContentCapture:
    """Reads changed files into the store until the free space or the time is used up."""

    def __init__(
        self,
        jail: Jail,
        contents: ContentStore,
        free_bytes: int,
        is_stopped: Callable[[], bool],
        pause: Callable[[], None] = lambda: None,
    ) -> None:
        """`pause` is called between batches to let others write."""
        self._jail = jail
        self._contents = contents
        self._limit = contents.used_bytes + free_bytes
        self._is_stopped = is_stopped
        self._pause = pause
        self._deadline = time.monotonic() + CAPTURE_TIMEOUT_SECONDS
        self._folder = ""
        self._fd = -1
        self.file_count = 0  # files read so far

    def capture(self, folder: str, entries: FolderEntries, max_size: int | None = None) -> None:
        """Read the files of a folder that have no content yet, up to a size, and update their entries."""
        max_size = MAX_FILE_BYTES if max_size is None else max_size
        try:
            for name, scanned in list(entries.items()):
                if scanned.content or scanned.is_directory or scanned.size > max_size:
                    continue
                if self._is_stopped():
                    raise ScanStopped
                entry = self._capture_entry(folder, name, scanned)
                if entry is None:
                    del entries[name]
                else:
                    entries[name] = entry
                self.file_count += 1
                if self.file_count % _BATCH_SIZE == 0:
                    self._pause()
        finally:
            self._close_folder()

    def _capture_entry(self, folder: str, name: str, scanned: TreeEntry) -> TreeEntry | None:
        """Return the entry with its content, or None if it no longer exists."""
        if self._contents.used_bytes + scanned.size > self._limit or time.monotonic() > self._deadline:
            return scanned  # not saved; the next scan tries again
        try:
            directory = self._open_folder(folder)
            if stat.S_ISLNK(scanned.mode):
                return _with_content(scanned, os.fsencode(os.readlink(name, dir_fd=directory)))
            fd = os.open(name, READ_FLAGS | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
        except FileNotFoundError:
            return None
        except OSError:
            return scanned
        with closing_fd(fd):
            return self._capture_file(fd, scanned)

    def _capture_file(self, fd: int, scanned: TreeEntry) -> TreeEntry | None:
        """Return the entry of an open file. If it keeps changing, the content read last is used."""
        for _ in range(_MAX_ATTEMPTS):
            content = self._store_content(fd, scanned.size)
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                return None
            before, scanned = scanned, TreeEntry(found.st_ctime_ns, found.st_ino, found.st_size, found.st_mode, b"")
            if before == scanned:
                return _with_content(scanned, content)
        return TreeEntry(-1, *scanned[1:4], content)

    def _store_content(self, fd: int, size: int) -> bytes:
        try:
            if size > LARGE_CONTENT_BYTES:
                return self._contents.put_file(fd)
            return self._contents.put(os.pread(fd, size + 1, 0) if size else read_up_to(fd, LARGE_CONTENT_BYTES))
        except OSError:
            return b""

    def _open_folder(self, folder: str) -> int:
        if self._fd < 0 or folder != self._folder:
            self._close_folder()
            self._fd = self._jail.open_without_links(folder or ".", DIRECTORY_FLAGS)
            self._folder = folder
        return self._fd

    def _close_folder(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _with_content(scanned: TreeEntry, content: bytes) -> TreeEntry:
    """Return the entry with its content. A file changed within the clock tick is marked to be read again."""
    tick = _TICK_NS if scanned.ctime_ns % 1_000_000_000 else _COARSE_TICK_NS
    too_recent = content and time.time_ns() - scanned.ctime_ns <= tick
    return TreeEntry(-1 if too_recent else scanned.ctime_ns, scanned.inode, scanned.size, scanned.mode, content)
