"""Checkpoint store of a workspace: scans it, saves changed contents and restores turns. Blocking."""

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress

import msgspec

from ostler.core.errors import UsageError
from ostler.workspace.change_detector import changed_files
from ostler.workspace.checkpoint_db import (
    NO_PROCESS,
    CheckpointDatabase,
    PathChange,
    as_conflict,
    diff_trees,
    open_database,
)
from ostler.workspace.content_capture import ContentCapture
from ostler.workspace.content_store import ContentStore
from ostler.workspace.jail import Jail
from ostler.workspace.packed_folder import PackedTree, TreeEntry
from ostler.workspace.path_capture import PathCapture, SavedPaths
from ostler.workspace.paths import escape_path, relative_to_root
from ostler.workspace.tree_scan import MAX_FILE_BYTES, TreeScanner
from ostler.workspace.undo_executor import UndoExecutor, UndoStep, make_undo_steps
from ostler.workspace.undo_types import (
    UncoveredPath,
    UndoableTurn,
    UndoPlan,
    UndoResult,
)

MAX_TURNS = 500
MAX_UNCOVERED_SHOWN = 100
_SIZE_STEPS = (*(4**step for step in range(6, 13)), MAX_FILE_BYTES)  # from 4 kB
_NOT_SAVED = "it cannot be read, the store is full, or saving it took too long"
_GIT_INTERNAL = "git's own data"


class _OpenTurn(msgspec.Struct):
    """What was there before a running turn: the paths that the file tools changed, and the scan if there is one."""

    saved: SavedPaths = {}
    scan: PackedTree | None = None
    last_scan: PackedTree | None = None  # of the last `changed_files`


class CheckpointStore:
    """Blocking and not thread-safe; use it through `Checkpoints`."""

    def __init__(self, root: str, store_dir: str, max_bytes: int, ostler_dir: str = "") -> None:
        self._jail = Jail(root)
        os.makedirs(store_dir, mode=0o700, exist_ok=True)
        self._store_dir = store_dir
        self._database = open_database(f"{store_dir}/turns.db")
        self._contents = ContentStore(self._database, f"{store_dir}/large")
        self._checkpoint_db = CheckpointDatabase(self._database)
        self._undo_executor = UndoExecutor(self._jail, self._contents)
        self._max_bytes = max_bytes
        self._open_turns: dict[str, _OpenTurn] = {}
        self._tree: PackedTree | None = None  # of the last scan
        self._saved_tree: PackedTree = {}  # of the last saved scan
        self._is_first_scan = True
        self._prescanned: tuple[str, PackedTree] | None = None
        self._progress: Callable[[], str] = str
        self.scan_seconds = 0.0  # duration of the last scan
        self._too_large: dict[str, str] = {}
        self._uncovered: dict[str, str] = {}
        own_paths = (
            relative_to_root(os.path.realpath(folder), self._jail.root_paths)
            for folder in (ostler_dir or store_dir, store_dir)
        )
        self._ostler_paths = {path: "Ostler's own data" for path in own_paths if path and path != "."}

    def close(self) -> None:
        """Close the store. Open turns are closed when the store is next opened."""
        for turn in self._open_turns:
            self.heartbeat(turn)
            self._checkpoint_db.abandon(turn)
        self._database.close()
        self._jail.close()

    def begin(self, turn: str, is_stopped: Callable[[], bool], *, files_only: bool = False) -> list[UncoveredPath]:
        """Open a turn and, unless only the file tools will change something, save the state of the workspace.

        Return the paths that are not covered.
        """
        self._recover_after_crash(is_stopped)
        if turn not in self._open_turns:
            with self._transaction():
                self._checkpoint_db.begin(turn)
            self._open_turns[turn] = _OpenTurn()
        if files_only:
            return []
        if not self.has_scan(turn):
            self._scan_for([turn], is_stopped)
        return self._uncovered_paths()

    def save_before(self, paths: Sequence[str], is_stopped: Callable[[], bool]) -> list[UncoveredPath]:
        """Save paths that the file tools are about to change, for all turns without a scan. Return the uncovered ones.

        If a file has hard links, its content changes under other paths too, so the workspace is also scanned.
        """
        turns = [turn for turn in self._open_turns if not self.has_scan(turn)]
        if not turns:
            return []
        uncovered = [UncoveredPath(escape_path(path), _GIT_INTERNAL) for path in paths if ".git" in path.split("/")]
        paths = [path for path in paths if self._is_covered(path)]
        with self._transaction():
            self._evict_oldest_turns(sum(map(self._file_size, paths)))
            capture = self._path_capture(is_stopped)
            entries = capture.capture_with_parents(paths)
            for turn in turns:
                self._open_turns[turn].saved = {**entries, **self._open_turns[turn].saved}
                self._checkpoint_db.save_entries(turn, entries)
        if capture.has_hard_links:
            self._scan_for(turns, is_stopped)
        return uncovered + [
            UncoveredPath(escape_path(path), _not_saved_reason(entry))
            for path, entry in entries.items()
            if entry and not entry.is_directory and not entry.content
        ]

    def _scan_for(self, turns: Sequence[str], is_stopped: Callable[[], bool]) -> None:
        tree = self._scan(is_stopped)
        self._save_scan(tree, turns)
        for turn in turns:
            self._open_turns[turn].scan = tree

    def _path_capture(self, is_stopped: Callable[[], bool]) -> PathCapture:
        free = self._max_bytes - self._contents.used_bytes
        return PathCapture(self._jail, ContentCapture(self._jail, self._contents, free, is_stopped))

    def _file_size(self, path: str) -> int:
        try:
            return os.stat(f"{self._jail.root}/{path}", follow_symlinks=False).st_size
        except OSError:
            return 0

    def _is_covered(self, path: str) -> bool:
        """Return whether undo covers a path: git's and Ostler's own data are left out."""
        own = any(f"{path}/".startswith(f"{folder}/") for folder in self._ostler_paths)
        return not own and ".git" not in path.split("/")

    def progress(self) -> str:
        """Return how far the running scan is; called from another thread."""
        return self._progress()

    def heartbeat(self, turn: str) -> None:
        with suppress(OSError):
            open(self._heartbeat_path(turn), "wb").close()

    def changed_files(self, turn: str, is_stopped: Callable[[], bool]) -> list[str]:
        """Return the files changed since the last call in this turn, or since it started, except git-ignored ones."""
        opened = self._open_turns.get(turn)
        before = opened.last_scan or opened.scan if opened else None
        if opened is None or before is None:
            return []
        opened.last_scan = after = self._scan(is_stopped)
        return changed_files(self._jail, before, after)

    def prescan(self, turn: str, is_stopped: Callable[[], bool]) -> None:
        """Save the current state in advance; `finish` reuses it if nothing happens in between."""
        if self.has_scan(turn):
            self._prescanned = (turn, self._scan(is_stopped))

    def has_scan(self, turn: str) -> bool:
        """Return whether the end of a turn needs a scan, because the turn started with one."""
        opened = self._open_turns.get(turn)
        return opened is not None and opened.scan is not None

    def finish(self, turn: str, is_stopped: Callable[[], bool], *, idle: bool = False) -> None:
        """Save the state after the turn and its changes. `idle`: nothing ran since the prescan, so reuse it."""
        opened = self._open_turns.get(turn)
        if opened is None:
            return
        prescan, self._prescanned = self._prescanned, None
        scanned: list[PathChange] = []
        if opened.scan is not None:
            reusable = idle and prescan is not None and prescan[0] == turn and prescan[1] is self._tree
            after = prescan[1] if reusable and prescan else self._scan(is_stopped)
            self._save_scan(after)
            scanned = diff_trees(opened.scan, after)
        with self._transaction():
            self._checkpoint_db.finish(turn, self._with_saved(scanned, opened.saved, is_stopped))
        del self._open_turns[turn]
        self._remove_heartbeat(turn)
        self._prune()

    def _with_saved(
        self, scanned: list[PathChange], saved: SavedPaths, is_stopped: Callable[[], bool]
    ) -> list[PathChange]:
        """Return the changes between two scans together with those of the saved paths, sorted by path."""
        changes = [change for change in scanned if change.path not in saved]
        changes += self._path_capture(is_stopped).changes(saved)
        return sorted(changes, key=lambda change: change.path)

    def discard(self, turn: str) -> None:
        """Forget a turn that changed nothing."""
        if self._open_turns.pop(turn, None) is not None:
            self._remove_heartbeat(turn)
            self._checkpoint_db.delete_turn(turn)

    def turns(self) -> list[str]:
        self._recover_after_crash()
        return self._checkpoint_db.turns()

    def undone_turns(self) -> set[str]:
        return self._checkpoint_db.undone_turns()

    def undoable_turns(self) -> list[UndoableTurn]:
        self._recover_after_crash()
        undone = self.undone_turns()
        return [
            UndoableTurn(turn, started_at, tuple(escape_path(change.path) for change in changes), turn in undone)
            for turn, started_at, changes in self._checkpoint_db.finished_turns()
            if changes
        ]

    def plan(self, plan: UndoPlan) -> UndoPlan:
        """Return the plan with what an undo or redo would do in the current state of the workspace."""
        return self._undo_executor.plan(plan, self._steps(plan))

    def execute(self, plan: UndoPlan) -> UndoResult:
        """Execute a plan, and only what it lists."""
        planned = {*plan.restore, *plan.delete}
        result = self._undo_executor.execute([step for step in self._steps(plan) if escape_path(step.path) in planned])
        if result.restored or result.deleted:
            self._checkpoint_db.set_undone(plan.turn_id, undone=plan.direction == "undo")
        return result

    def _steps(self, plan: UndoPlan) -> list[UndoStep]:
        self._recover_after_crash()
        changes = self._checkpoint_db.changes(plan.turn_id)
        if changes is None:
            hint = "the turn is unknown, still running or too old; see `ostler undo --list`"
            raise UsageError(f"no changes are stored for turn {plan.turn_id}", hint=hint)
        return make_undo_steps(changes, plan.direction)

    def _scan(self, is_stopped: Callable[[], bool]) -> PackedTree:
        """Scan the workspace and save all changed contents.

        The scan itself is not saved: if the process dies during a turn, the turn's changes are computed against the
        last saved one.
        """
        started = time.monotonic()
        if self._tree is None:
            self._tree, self._too_large = self._checkpoint_db.tree(), self._checkpoint_db.too_large()
            self._saved_tree = self._tree
        scanner = TreeScanner(self._jail, self._tree, {**self._too_large, **self._ostler_paths}, is_stopped)
        self._progress = lambda: f"{scanner.file_count:,} files found"
        scanner.scan()
        with self._transaction():
            self._evict_oldest_turns(scanner.unread_bytes)
            self._read_contents(scanner, is_stopped)
        self._tree, self._too_large, self._uncovered = scanner.tree, scanner.too_large, scanner.uncovered
        self.scan_seconds, self._progress = time.monotonic() - started, str
        return scanner.tree

    def _read_contents(self, scanner: TreeScanner, is_stopped: Callable[[], bool]) -> None:
        """Save the new files of a scan. If not all fit, the smallest are saved first, because they are the most."""
        free = self._max_bytes - self._contents.used_bytes
        capture = ContentCapture(self._jail, self._contents, free, is_stopped, self._yield_write_lock)
        self._progress = lambda: f"{capture.file_count:,} of {scanner.unread_files:,} files saved"
        for max_size in _SIZE_STEPS if scanner.unread_bytes > free else (MAX_FILE_BYTES,):
            for folder, mode in scanner.unread.items():
                entries = scanner.tree[folder].unpack()
                capture.capture(folder, entries, max_size)
                scanner.set_folder(folder, entries, mode)

    def _save_scan(self, tree: PackedTree, turns: Iterable[str] = ()) -> None:
        """Save a scan; `turns` start with it."""
        with self._transaction():
            self._checkpoint_db.save_scan(self._saved_tree, tree, self._too_large)
            if self._is_first_scan:
                self._close_interrupted(self._saved_tree, tree)
            for turn in turns:
                self._checkpoint_db.set_scanned(turn)
        self._saved_tree, self._is_first_scan = tree, False

    def _dead_turns(self) -> list[str]:
        return [
            turn
            for turn, process in self._checkpoint_db.unfinished()
            if turn not in self._open_turns and not _is_alive(process)
        ]

    def _recover_after_crash(self, is_stopped: Callable[[], bool] = lambda: False) -> None:
        """Close the turns that a crash left open. This needs a scan only if one of them started with a scan."""
        dead = self._dead_turns()
        if dead and not self._checkpoint_db.unscanned().issuperset(dead):
            if self._is_first_scan:
                self._save_scan(self._scan(is_stopped))
        elif dead:
            with self._transaction():
                self._close_interrupted({}, {})

    def _close_interrupted(self, old: PackedTree, new: PackedTree) -> None:
        """Close turns whose process died. Changes after the last heartbeat may be the user's and become conflicts.

        A turn without a heartbeat had no side effect and is deleted. Changes between scans go to the last turn that
        started with one.
        """
        dead = self._dead_turns()
        until = max(map(self._last_heartbeat, dead), default=0)
        unscanned = self._checkpoint_db.unscanned()
        acted = [turn for turn in dead if self._last_heartbeat(turn)]
        last_scanned = [turn for turn in acted if turn not in unscanned][-1:]
        for turn in dead:
            if turn in last_scanned:
                self._close_turn(turn, diff_trees(old, new), until)
            elif turn in acted and turn in unscanned:
                self._close_turn(turn, [], self._last_heartbeat(turn))
            else:
                self._checkpoint_db.delete_turn(turn)
        for turn in dead:
            self._remove_heartbeat(turn)

    def _close_turn(self, turn: str, scanned: list[PathChange], until: int) -> None:
        changes = self._with_saved(scanned, self._checkpoint_db.saved_entries(turn), lambda: False)
        self._checkpoint_db.finish(
            turn, [change if self._existed_at(change, until) else as_conflict(change) for change in changes]
        )

    def _existed_at(self, change: PathChange, until: int) -> bool:
        """Return whether a change existed at a time. True for deletions and folders, which are safe to undo."""
        if change.after is None or change.after.is_directory:
            return True
        try:
            return os.stat(f"{self._jail.root}/{change.path}", follow_symlinks=False).st_ctime_ns <= until
        except OSError:
            return False

    def _last_heartbeat(self, turn: str) -> int:
        try:
            return os.stat(self._heartbeat_path(turn)).st_mtime_ns
        except OSError:
            return 0

    def _remove_heartbeat(self, turn: str) -> None:
        with suppress(OSError):
            os.unlink(self._heartbeat_path(turn))

    def _heartbeat_path(self, turn: str) -> str:
        import hashlib

        return f"{self._store_dir}/living-{hashlib.sha256(turn.encode()).hexdigest()[:16]}"

    def _uncovered_paths(self) -> list[UncoveredPath]:
        uncovered = [UncoveredPath(".git", _GIT_INTERNAL)] if os.path.lexists(f"{self._jail.root}/.git") else []
        excluded = {**self._too_large, **self._uncovered}.items()
        uncovered += [
            UncoveredPath(escape_path(path), reason) for path, reason in excluded if path not in self._ostler_paths
        ]
        for folder, packed in (self._tree or {}).items():
            uncovered += [
                UncoveredPath(escape_path(folder + name), _not_saved_reason(entry))
                for name, entry in packed.unsaved_files().items()
            ]
        if len(uncovered) > MAX_UNCOVERED_SHOWN:
            uncovered[MAX_UNCOVERED_SHOWN:] = [UncoveredPath("…", f"and {len(uncovered) - MAX_UNCOVERED_SHOWN:,} more")]
        return uncovered

    def _prune(self) -> None:
        turns = self._checkpoint_db.turns()
        with self._transaction():
            for turn in turns[:-MAX_TURNS]:
                self._checkpoint_db.delete_turn(turn)
            self._evict_oldest_turns(0)

    def _evict_oldest_turns(self, size: int) -> None:
        """Delete the oldest turns and their contents until `size` bytes fit; the newest turn stays."""
        turns = self._checkpoint_db.turns()
        while self._contents.used_bytes + size > self._max_bytes and len(turns) > 1 and not self._has_other_turns():
            count = (len(turns) + 1) // 2
            for turn in turns[:count]:
                self._checkpoint_db.delete_turn(turn)
            turns = turns[count:]
            needed = self._checkpoint_db.needed_contents()
            last_tree = self._checkpoint_db.tree() if self._tree is None else self._tree
            for tree in (last_tree, *(turn.scan or {} for turn in self._open_turns.values())):
                needed.update(entry.content for folder in tree.values() for entry in folder.unpack().values())
            self._contents.delete_except(needed)

    def _has_other_turns(self) -> bool:
        """Return whether another process runs a turn; it may need contents that are not in the database yet."""
        return any(
            turn not in self._open_turns and _is_alive(process) for turn, process in self._checkpoint_db.unfinished()
        )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            self._contents.refresh()
            yield
            self._contents.flush()
        except sqlite3.Error:
            with suppress(sqlite3.Error):
                self._database.execute("ROLLBACK")
            self._contents.discard_pending()
            raise
        except BaseException:
            self._contents.flush()
            self._database.execute("COMMIT")  # keep the saved contents: the next scan can reuse them
            raise
        self._database.execute("COMMIT")

    def _yield_write_lock(self) -> None:
        self._contents.flush()
        self._database.execute("COMMIT")
        self._database.execute("BEGIN IMMEDIATE")


def _not_saved_reason(entry: TreeEntry) -> str:
    return f"it is larger than {MAX_FILE_BYTES:,} bytes" if entry.size > MAX_FILE_BYTES else _NOT_SAVED


def _is_alive(process: int) -> bool:
    if process == NO_PROCESS:
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
