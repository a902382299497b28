"""Saves single paths, so that a change by the file tools can be undone without a scan of the workspace."""

import os
import stat
from collections.abc import Iterable

from ostler.processes.placeholders import is_placeholder
from ostler.workspace.checkpoint_db import PathChange, is_same_state
from ostler.workspace.content_capture import ContentCapture
from ostler.workspace.jail import DIRECTORY_FLAGS, EntryHandle, Jail, closing_fd
from ostler.workspace.packed_folder import PIPE, TreeEntry
from ostler.workspace.paths import split_path

SavedPaths = dict[str, TreeEntry | None]


class PathCapture:
    """Reads the entries of single paths; the content of a file goes into the store."""

    def __init__(self, jail: Jail, contents: ContentCapture) -> None:
        self._jail = jail
        self._contents = contents
        self.has_hard_links = False  # whether a file was read whose content may also change under another path

    def capture_with_parents(self, paths: Iterable[str]) -> SavedPaths:
        """Return the entry of each path and of the parent directories that do not exist yet."""
        saved: SavedPaths = {}
        for path in paths:
            while path not in saved and path != ".":
                saved[path] = self._capture(path)
                if saved[path] is not None:
                    break
                path = split_path(path)[0]
        return saved

    def changes(self, saved: SavedPaths) -> list[PathChange]:
        """Return the changes of the saved paths until now."""
        changes = (PathChange(path, before, self._capture(path)) for path, before in saved.items())
        return [change for change in changes if not is_same_state(change.before, change.after)]

    def _capture(self, path: str) -> TreeEntry | None:
        name = split_path(path)[1]
        found = self._stat(path)
        if found is None:
            return None
        if stat.S_ISDIR(found.st_mode):
            return TreeEntry(0, 0, 0, found.st_mode, b"")
        if stat.S_ISFIFO(found.st_mode):
            return TreeEntry(found.st_ctime_ns, found.st_ino, 0, found.st_mode, PIPE)
        if not (stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode)):
            return None
        self.has_hard_links = self.has_hard_links or found.st_nlink > 1
        return self._read_content(path[: len(path) - len(name)], name, found)

    def _stat(self, path: str) -> os.stat_result | None:
        parent, name = split_path(path)
        try:
            fd = self._jail.open_without_links(parent, DIRECTORY_FLAGS)
        except (FileNotFoundError, NotADirectoryError):
            return None
        with closing_fd(fd):
            return None if is_placeholder(name, fd) else EntryHandle(fd, name, path).stat()

    def _read_content(self, folder: str, name: str, found: os.stat_result) -> TreeEntry | None:
        entries = {name: TreeEntry(found.st_ctime_ns, found.st_ino, found.st_size, found.st_mode, b"")}
        self._contents.capture(folder, entries)
        return entries.get(name)
