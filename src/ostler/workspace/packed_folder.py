"""The entries of a scanned folder in compact form: a fifth of the memory, and as they are stored."""

import os
import stat
from functools import cache
from typing import NamedTuple

import msgspec

from ostler.workspace.folder_check import make_stamps

EXCLUDED = b"left out"  # the content of a directory that is not scanned
PIPE = b"pipe"  # the content of a named pipe


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


class PackedFolder(msgspec.Struct, frozen=True):
    """The entries of one folder: files in the order of the directory, then subfolders.

    `stamps` are what a scan must find for the folder to be unchanged, see `folder_check`. They are empty if the next
    scan must visit the folder anyway: a file was not saved or changed too recently, or a subfolder is excluded.
    """

    names: bytes
    items: bytes
    stamps: bytes

    def unpack(self) -> FolderEntries:
        return dict(zip(self._names(), _entries_decoder().decode(self.items), strict=False))

    def subfolders(self) -> list[str]:
        """Return the names of the subfolders. Only for a folder with stamps."""
        return self._names()[self.stamped_files :] if self.stamped_files <= self.names.count(b"\0") else []

    @property
    def stamped_files(self) -> int:
        """The number of files in `stamps`."""
        return max(0, len(self.stamps) // 16 - 1)

    def unsaved_files(self) -> FolderEntries:
        """Return the files whose content was not saved."""
        entries = {} if self.stamps else self.unpack()
        return {name: entry for name, entry in entries.items() if not entry.is_directory and not entry.content}

    def _names(self) -> list[str]:
        return os.fsdecode(self.names).split("\0") if self.names else []


PackedTree = dict[str, PackedFolder]  # by folder path relative to the root: "" or "path/"


def pack(entries: FolderEntries, mode: int) -> PackedFolder:
    """Pack the entries of a folder that has the given mode."""
    names = os.fsencode("\0".join(entries))
    return PackedFolder(names, msgspec.msgpack.encode(tuple(entries.values())), _stamps(entries, mode))


def entries_of(folder: PackedFolder | None) -> FolderEntries:
    """Return the entries of a folder; of a missing one, none."""
    return folder.unpack() if folder else {}


def _stamps(entries: FolderEntries, mode: int) -> bytes:
    ctimes, inodes = [], []
    for entry in entries.values():
        if entry.is_directory:
            if entry.content == EXCLUDED:
                return b""
        elif entry.content and entry.ctime_ns >= 0:
            ctimes.append(entry.ctime_ns)
            inodes.append(entry.inode)
        else:
            return b""
    return make_stamps(mode, ctimes, inodes)


@cache
def _entries_decoder() -> msgspec.msgpack.Decoder[tuple[TreeEntry, ...]]:
    return msgspec.msgpack.Decoder(tuple[TreeEntry, ...])
