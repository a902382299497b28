"""The entries of a scanned folder in compact form: a fifth of the memory, and as they are stored."""

import os
import stat
from functools import cache
from typing import NamedTuple

import msgspec


class TreeEntry(NamedTuple):
    """A file, symlink, directory or named pipe. Every change of a file changes `ctime_ns`.

    `content` is the digest of a file (empty if it was not saved), the target of a symlink, `PIPE` for a named pipe, and
    for a directory empty or `EXCLUDED`.
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


class PackedFolder:
    """The entries of one folder. It does not change, so that the same object means the same entries."""

    __slots__ = ("_file_count", "_unsaved", "items", "names")

    def __init__(self, names: bytes, items: bytes) -> None:
        self.names = names
        self.items = items
        self._file_count = -1
        self._unsaved: tuple[str, ...] = ()

    def unpack(self) -> FolderEntries:
        names = os.fsdecode(self.names).split("\0") if self.names else ()
        entries = dict(zip(names, _entries_decoder().decode(self.items), strict=False))
        if self._file_count < 0:
            self._unsaved = tuple(name for name, entry in entries.items() if not entry[4] and not entry.is_directory)
            self._file_count = sum(1 for entry in entries.values() if entry[4] and not entry.is_directory)
        return entries

    def coverage(self) -> tuple[int, tuple[str, ...]]:
        """Return the number of saved files, and the names of the others."""
        if self._file_count < 0:
            self.unpack()
        return self._file_count, self._unsaved


Folder = PackedFolder | FolderEntries
Tree = dict[str, Folder]  # by folder path relative to the root: "" or "path/"
PackedTree = dict[str, PackedFolder]


def pack(entries: FolderEntries) -> PackedFolder:
    return PackedFolder(os.fsencode("\0".join(entries)), msgspec.msgpack.encode(tuple(entries.values())))


def entries_of(folder: Folder | None) -> FolderEntries:
    """Return the entries of a folder; of a missing one, none."""
    return folder.unpack() if isinstance(folder, PackedFolder) else folder or {}


@cache
def _entries_decoder() -> msgspec.msgpack.Decoder[tuple[TreeEntry, ...]]:
    return msgspec.msgpack.Decoder(tuple[TreeEntry, ...])
