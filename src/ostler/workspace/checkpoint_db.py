"""The book of a workspace's turns: what stood there at the last count, and what each turn changed."""

import os
import sqlite3
import time
from collections.abc import Iterable, Iterator
from functools import cache

import msgspec

from ostler.workspace.tree_scan import FolderEntries, Tree, TreeEntry

_SCHEMA = """
CREATE TABLE IF NOT EXISTS folder (path BLOB PRIMARY KEY, names BLOB, items BLOB);
CREATE TABLE IF NOT EXISTS heavy (path BLOB PRIMARY KEY, why TEXT);
CREATE TABLE IF NOT EXISTS turn (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE, at REAL, process INTEGER, changes BLOB
);
CREATE TABLE IF NOT EXISTS undone (id TEXT PRIMARY KEY);
"""


NO_PROCESS = 0


class PathChange(msgspec.Struct, frozen=True):
    """One path a turn changed: what stood there before and after, None for nothing."""

    path: str
    before: TreeEntry | None
    after: TreeEntry | None


_ChangeRow = tuple[bytes, tuple[int, int, int, int, bytes] | None, tuple[int, int, int, int, bytes] | None]


def open_database(path: str) -> sqlite3.Connection:
    """The database of a store; one that is damaged is put aside and begun anew."""
    try:
        return _connect(path)
    except sqlite3.DatabaseError:
        os.replace(path, f"{path}.damaged")
        for tail in ("-wal", "-shm"):
            if os.path.exists(path + tail):
                os.unlink(path + tail)
        return _connect(path)


def _connect(path: str) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=10, isolation_level=None, check_same_thread=False)
    try:
        database.execute("PRAGMA auto_vacuum = INCREMENTAL")
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        database.executescript(_SCHEMA)
    except sqlite3.DatabaseError:
        database.close()
        raise
    return database


class CheckpointDatabase:
    """What is written down; the caller keeps to one thread at a time."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def tree(self) -> Tree:
        """What stood in the workspace at the last count."""
        rows = self._database.execute("SELECT path, names, items FROM folder")
        return {os.fsdecode(path): _decode_folder(names, items) for path, names, items in rows}

    def too_large(self) -> dict[str, str]:
        """The folders that are too heavy to keep, and why."""
        return {os.fsdecode(path): why for path, why in self._database.execute("SELECT path, why FROM heavy")}

    def save_scan(self, old: Tree, new: Tree, too_large: dict[str, str]) -> None:
        """Write down a count, as far as it differs from the one before."""
        gone = [(os.fsencode(path),) for path in old.keys() - new.keys()]
        come = (_encode_folder(path, folder) for path, folder in new.items() if folder is not old.get(path))
        self._database.executemany("DELETE FROM folder WHERE path = ?", gone)
        self._database.executemany("INSERT OR REPLACE INTO folder VALUES (?, ?, ?)", come)
        self._database.execute("DELETE FROM heavy")
        self._database.executemany(
            "INSERT INTO heavy VALUES (?, ?)", [(os.fsencode(path), why) for path, why in too_large.items()]
        )

    def begin(self, turn: str) -> None:
        """A turn starts; one of the same name is begun anew."""
        row = (turn, time.time(), os.getpid())
        self._database.execute("INSERT OR REPLACE INTO turn (id, at, process) VALUES (?, ?, ?)", row)
        self.set_undone(turn, undone=False)

    def finish(self, turn: str, changes: Iterable[PathChange]) -> None:
        """A turn has ended, with what it changed."""
        rows: list[_ChangeRow] = [(os.fsencode(change.path), change.before, change.after) for change in changes]
        self._database.execute("UPDATE turn SET changes = ? WHERE id = ?", (msgspec.msgpack.encode(rows), turn))

    def abandon(self, turn: str) -> None:
        """Nobody plays this turn any more."""
        self._database.execute("UPDATE turn SET process = ? WHERE id = ?", (NO_PROCESS, turn))

    def changes(self, turn: str) -> tuple[PathChange, ...] | None:
        """What a turn changed; None when it is unknown or not finished."""
        row = self._database.execute("SELECT changes FROM turn WHERE id = ?", (turn,)).fetchone()
        return None if row is None or row[0] is None else tuple(_decode_changes(row[0]))

    def turns(self) -> list[str]:
        """The finished turns, the oldest first."""
        return [
            row[0] for row in self._database.execute("SELECT id FROM turn WHERE changes IS NOT NULL ORDER BY number")
        ]

    def finished_turns(self) -> Iterator[tuple[str, float, tuple[PathChange, ...]]]:
        """The finished turns with when they began and what they changed, the oldest first."""
        query = "SELECT id, at, changes FROM turn WHERE changes IS NOT NULL ORDER BY number"
        for turn, at, changes in self._database.execute(query):
            yield turn, at, tuple(_decode_changes(changes))

    def unfinished(self) -> list[tuple[str, int]]:
        """The turns that were begun and not finished, each with the process that played it."""
        return self._database.execute("SELECT id, process FROM turn WHERE changes IS NULL ORDER BY number").fetchall()

    def undone_turns(self) -> set[str]:
        """The turns that were taken back and not done again."""
        return {row[0] for row in self._database.execute("SELECT id FROM undone")}

    def set_undone(self, turn: str, *, undone: bool) -> None:
        query = "INSERT OR IGNORE INTO undone VALUES (?)" if undone else "DELETE FROM undone WHERE id = ?"
        self._database.execute(query, (turn,))

    def delete_turn(self, turn: str) -> None:
        self._database.execute("DELETE FROM turn WHERE id = ?", (turn,))
        self.set_undone(turn, undone=False)

    def needed_contents(self) -> set[bytes]:
        """The contents that a finished turn needs to be undone or redone."""
        wanted: set[bytes] = set()
        for (changes,) in self._database.execute("SELECT changes FROM turn WHERE changes IS NOT NULL"):
            for change in _decode_changes(changes):
                wanted.update(item.content for item in (change.before, change.after) if item)
        return wanted


def _decode_changes(changes: bytes) -> Iterator[PathChange]:
    for path, before, after in msgspec.msgpack.decode(changes, type=list[_ChangeRow]):
        yield PathChange(
            os.fsdecode(path), TreeEntry(*before) if before else None, TreeEntry(*after) if after else None
        )


def _encode_folder(path: str, folder: FolderEntries) -> tuple[bytes, bytes, bytes]:
    """A folder in one row, which is read back ten times as fast as a row for each name."""
    return os.fsencode(path), os.fsencode("\0".join(folder)), msgspec.msgpack.encode(tuple(folder.values()))


def _decode_folder(names: bytes, items: bytes) -> FolderEntries:
    return dict(zip(os.fsdecode(names).split("\0"), _entries_decoder().decode(items), strict=False)) if names else {}


@cache
def _entries_decoder() -> msgspec.msgpack.Decoder[tuple[TreeEntry, ...]]:
    return msgspec.msgpack.Decoder(tuple[TreeEntry, ...])


def diff_trees(old: Tree, new: Tree) -> list[PathChange]:
    """What changed between two counts, in the order of paths."""
    changes: list[PathChange] = []
    for folder in old.keys() | new.keys():
        before, after = old.get(folder) or {}, new.get(folder) or {}
        if before is after:
            continue
        for name in before.keys() | after.keys():
            was, now = before.get(name), after.get(name)
            if not is_same_state(was, now):
                changes.append(PathChange(folder + name, was, now))
    changes.sort(key=lambda change: change.path)
    return changes


CONFLICT = TreeEntry(-1, -1, -1, 0, b"")  # like nothing that can stand anywhere


def as_conflict(change: PathChange) -> PathChange:
    """A change that may be somebody else's: it is named as a conflict, and left alone."""
    return PathChange(change.path, change.before, CONFLICT)


def is_same_state(one: TreeEntry | None, other: TreeEntry | None) -> bool:
    """Whether two states of a path are the same to a person; a file that is not kept is known by its stamps alone."""
    if one is None or other is None:
        return one is other
    if one.is_directory or one.mode != other.mode:
        return one.mode == other.mode
    if one.content and other.content:
        return one.content == other.content
    return one[1:3] == other[1:3] and (one.ctime_ns == other.ctime_ns or -1 in (one.ctime_ns, other.ctime_ns))
