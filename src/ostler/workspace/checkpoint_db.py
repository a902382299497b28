"""SQLite tables of the checkpoints: the last scan and the changes of each turn."""

import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from ostler.workspace.packed_folder import PackedFolder, PackedTree, TreeEntry, entries_of

_SCHEMA = """
CREATE TABLE IF NOT EXISTS folder (path BLOB PRIMARY KEY, names BLOB, items BLOB, stamps BLOB);
CREATE TABLE IF NOT EXISTS heavy (path BLOB PRIMARY KEY, why TEXT);
CREATE TABLE IF NOT EXISTS turn (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE, at REAL, process INTEGER, changes BLOB
);
CREATE TABLE IF NOT EXISTS undone (id TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS files_only (id TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS saved (id TEXT, path BLOB, entry BLOB, PRIMARY KEY (id, path)) WITHOUT ROWID;
"""


NO_PROCESS = 0


class PathChange(msgspec.Struct, frozen=True):
    """A path that a turn changed, with its entry before and after (None if it did not exist)."""

    path: str
    before: TreeEntry | None
    after: TreeEntry | None


_ChangeRow = tuple[bytes, tuple[int, int, int, int, bytes] | None, tuple[int, int, int, int, bytes] | None]


def open_database(path: str) -> sqlite3.Connection:
    """Open the database of a store. A damaged one is renamed and replaced by an empty one."""
    try:
        return _connect(path)
    except sqlite3.DatabaseError:
        os.replace(path, f"{path}.damaged")
        for suffix in ("-wal", "-shm"):
            if os.path.exists(path + suffix):
                os.unlink(path + suffix)
        return _connect(path)


def _connect(path: str) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=10, isolation_level=None, check_same_thread=False)
    try:
        database.execute("PRAGMA auto_vacuum = INCREMENTAL")
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        database.executescript(_SCHEMA)
        if "stamps" not in {row[1] for row in database.execute("PRAGMA table_info(folder)")}:  # of an older version
            database.execute("ALTER TABLE folder ADD COLUMN stamps BLOB")
    except sqlite3.DatabaseError:
        database.close()
        raise
    return database


class CheckpointDatabase:
    """Access to the checkpoint tables; not thread-safe."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def tree(self) -> PackedTree:
        """Return the tree of the last saved scan."""
        rows = self._database.execute("SELECT path, names, items, stamps FROM folder")
        return {os.fsdecode(path): PackedFolder(names, items, stamps or b"") for path, names, items, stamps in rows}

    def too_large(self) -> dict[str, str]:
        """Return the folders that are too large to save, with the reasons."""
        return {os.fsdecode(path): reason for path, reason in self._database.execute("SELECT path, why FROM heavy")}

    def save_scan(self, old: PackedTree, new: PackedTree, too_large: dict[str, str]) -> None:
        """Save a scan; only folders that differ from the previous one are written."""
        removed = [(os.fsencode(path),) for path in old.keys() - new.keys()]
        changed = (
            (os.fsencode(path), folder.names, folder.items, folder.stamps)
            for path, folder in new.items()
            if folder is not old.get(path)
        )
        self._database.executemany("DELETE FROM folder WHERE path = ?", removed)
        self._database.executemany("INSERT OR REPLACE INTO folder VALUES (?, ?, ?, ?)", changed)
        self._database.execute("DELETE FROM heavy")
        self._database.executemany(
            "INSERT INTO heavy VALUES (?, ?)", [(os.fsencode(path), reason) for path, reason in too_large.items()]
        )

    def begin(self, turn: str) -> None:
        """Record the start of a turn that has no scan yet, replacing an earlier one with the same id."""
        self.delete_turn(turn)
        row = (turn, time.time(), os.getpid())
        self._database.execute("INSERT INTO files_only VALUES (?)", (turn,))
        self._database.execute("INSERT INTO turn (id, at, process) VALUES (?, ?, ?)", row)

    def set_scanned(self, turn: str) -> None:
        """Record that the saved scan was taken for this turn."""
        self._database.execute("DELETE FROM files_only WHERE id = ?", (turn,))

    def save_entries(self, turn: str, entries: Mapping[str, TreeEntry | None]) -> None:
        """Record what single paths were before the turn changed them."""
        rows = [(turn, os.fsencode(path), msgspec.msgpack.encode(entry)) for path, entry in entries.items()]
        self._database.executemany("INSERT OR IGNORE INTO saved VALUES (?, ?, ?)", rows)

    def saved_entries(self, turn: str) -> dict[str, TreeEntry | None]:
        """Return the recorded entries of single paths of an unfinished turn."""
        rows = self._database.execute("SELECT path, entry FROM saved WHERE id = ?", (turn,))
        return {os.fsdecode(path): _decode_entry(entry) for path, entry in rows}

    def finish(self, turn: str, changes: Iterable[PathChange]) -> None:
        """Record the end of a turn and its changes."""
        rows: list[_ChangeRow] = [(os.fsencode(change.path), change.before, change.after) for change in changes]
        self._database.execute("UPDATE turn SET changes = ? WHERE id = ?", (msgspec.msgpack.encode(rows), turn))
        self._delete_progress(turn)

    def abandon(self, turn: str) -> None:
        """Mark an unfinished turn as no longer running."""
        self._database.execute("UPDATE turn SET process = ? WHERE id = ?", (NO_PROCESS, turn))

    def changes(self, turn: str) -> tuple[PathChange, ...] | None:
        """Return the changes of a turn, or None if it is unknown or not finished."""
        row = self._database.execute("SELECT changes FROM turn WHERE id = ?", (turn,)).fetchone()
        return None if row is None or row[0] is None else tuple(_decode_changes(row[0]))

    def turns(self) -> list[str]:
        """Return the ids of the finished turns, oldest first."""
        return [
            row[0] for row in self._database.execute("SELECT id FROM turn WHERE changes IS NOT NULL ORDER BY number")
        ]

    def finished_turns(self) -> Iterator[tuple[str, float, tuple[PathChange, ...]]]:
        """Yield id, start time and changes of the finished turns, oldest first."""
        query = "SELECT id, at, changes FROM turn WHERE changes IS NOT NULL ORDER BY number"
        for turn, started_at, changes in self._database.execute(query):
            yield turn, started_at, tuple(_decode_changes(changes))

    def unfinished(self) -> list[tuple[str, int]]:
        """Return the unfinished turns, each with the id of the process that ran it."""
        return self._database.execute("SELECT id, process FROM turn WHERE changes IS NULL ORDER BY number").fetchall()

    def unscanned(self) -> set[str]:
        """Return the unfinished turns for which no scan was taken."""
        return {row[0] for row in self._database.execute("SELECT id FROM files_only")}

    def undone_turns(self) -> set[str]:
        """Return the turns that were undone and not redone."""
        return {row[0] for row in self._database.execute("SELECT id FROM undone")}

    def set_undone(self, turn: str, *, undone: bool) -> None:
        query = "INSERT OR IGNORE INTO undone VALUES (?)" if undone else "DELETE FROM undone WHERE id = ?"
        self._database.execute(query, (turn,))

    def delete_turn(self, turn: str) -> None:
        self._database.execute("DELETE FROM turn WHERE id = ?", (turn,))
        self._delete_progress(turn)
        self.set_undone(turn, undone=False)

    def _delete_progress(self, turn: str) -> None:
        self._database.execute("DELETE FROM files_only WHERE id = ?", (turn,))
        self._database.execute("DELETE FROM saved WHERE id = ?", (turn,))

    def needed_contents(self) -> set[bytes]:
        """Return the digests of the contents that are needed to undo or redo the turns."""
        saved = (_decode_entry(entry) for (entry,) in self._database.execute("SELECT entry FROM saved"))
        needed = {entry.content for entry in saved if entry}
        for (changes,) in self._database.execute("SELECT changes FROM turn WHERE changes IS NOT NULL"):
            for change in _decode_changes(changes):
                needed.update(entry.content for entry in (change.before, change.after) if entry)
        return needed


def _decode_changes(changes: bytes) -> Iterator[PathChange]:
    for path, before, after in msgspec.msgpack.decode(changes, type=list[_ChangeRow]):
        yield PathChange(
            os.fsdecode(path), TreeEntry(*before) if before else None, TreeEntry(*after) if after else None
        )


def _decode_entry(entry: bytes) -> TreeEntry | None:
    return msgspec.msgpack.decode(entry, type=TreeEntry | None)


def diff_trees(old: PackedTree, new: PackedTree) -> list[PathChange]:
    """Return the changes between two scans, sorted by path."""
    changes: list[PathChange] = []
    for folder in old.keys() | new.keys():
        if old.get(folder) is new.get(folder):
            continue
        before, after = entries_of(old.get(folder)), entries_of(new.get(folder))
        for name in before.keys() | after.keys():
            old_entry, new_entry = before.get(name), after.get(name)
            if not is_same_state(old_entry, new_entry):
                changes.append(PathChange(folder + name, old_entry, new_entry))
    changes.sort(key=lambda change: change.path)
    return changes


CONFLICT = TreeEntry(-1, -1, -1, 0, b"")  # equal to no real entry


def as_conflict(change: PathChange) -> PathChange:
    """Return the change as a conflict: it may not be the turn's, so undo reports it and skips it."""
    return PathChange(change.path, change.before, CONFLICT)


def is_same_state(entry: TreeEntry | None, other: TreeEntry | None) -> bool:
    """Return whether two entries have the same kind, mode and content; without a saved content, compare the stamps."""
    if entry is None or other is None:
        return entry is other
    if entry.is_directory or entry.mode != other.mode:
        return entry.mode == other.mode
    if entry.content and other.content:
        return entry.content == other.content
    return entry[1:3] == other[1:3] and (entry.ctime_ns == other.ctime_ns or -1 in (entry.ctime_ns, other.ctime_ns))
