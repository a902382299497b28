"""The keeper of a workspace's past: counts it, shelves what changed, and knows the way back from each turn."""

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Literal

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
from ostler.workspace.paths import escape_path, relative_to_root
from ostler.workspace.tree_scan import MAX_FILE_BYTES, FolderEntries, Tree, TreeScanner
from ostler.workspace.undo_executor import UndoExecutor, UndoStep, make_undo_steps
from ostler.workspace.undo_types import (
    ChangedPath,
    Coverage,
    TurnChanges,
    UncoveredPath,
    UndoableTurn,
    UndoPlan,
    UndoResult,
)

MAX_TURNS = 500
MAX_UNCOVERED_SHOWN = 100
_NOT_SAVED = "it cannot be read, the store is full, or there was no time to keep it"
_GIT_INTERNAL = "what git keeps for itself"
_FolderCoverage = tuple[FolderEntries, int, list[UncoveredPath]]


class CheckpointStore:
    """Blocking, and for one thread at a time; `Checkpoints` is its face to the rest."""

    def __init__(self, root: str, store_dir: str, max_bytes: int, ostler_dir: str = "") -> None:
        self._jail = Jail(root)
        os.makedirs(store_dir, mode=0o700, exist_ok=True)
        self._store_dir = store_dir
        self._database = open_database(f"{store_dir}/turns.db")
        self._contents = ContentStore(self._database, f"{store_dir}/large")
        self._checkpoint_db = CheckpointDatabase(self._database)
        self._undo_executor = UndoExecutor(self._jail, self._contents)
        self._max_bytes = max_bytes
        self._open_turns: dict[str, Tree] = {}
        self._last_scans: dict[str, Tree] = {}
        self._tree: Tree | None = None  # as last looked at
        self._saved_tree: Tree = {}  # as last written down
        self._is_first_scan = True
        self._prescanned: tuple[str, Tree] | None = None
        self.scan_seconds = 0.0  # that the last look took
        self._too_large: dict[str, str] = {}
        self._uncovered: dict[str, str] = {}
        self._coverage_by_folder: dict[str, _FolderCoverage] = {}
        own = (
            relative_to_root(os.path.realpath(place), self._jail.root_paths)
            for place in (ostler_dir or store_dir, store_dir)
        )
        self._ostler_paths = {path: "what Ostler keeps is there" for path in own if path and path != "."}

    def close(self) -> None:
        """Let the store go; a turn that is still open is closed when the past is next opened."""
        for turn in self._open_turns:
            self.heartbeat(turn)
            self._checkpoint_db.abandon(turn)
        self._database.close()
        self._jail.close()

    def begin(self, turn: str, is_stopped: Callable[[], bool]) -> Coverage:
        """Keep what stands in the workspace now; whatever the turn changes can be brought back afterwards."""
        self._open_turns[turn] = self._scan_and_save(is_stopped)
        self._checkpoint_db.begin(turn)
        return self._coverage()

    def heartbeat(self, turn: str) -> None:
        with suppress(OSError):
            open(self._heartbeat_path(turn), "wb").close()

    def changed_files(self, turn: str, is_stopped: Callable[[], bool]) -> list[str]:
        """The files that changed since this was last asked in the turn, or since it began; not what git leaves out."""
        before = self._last_scans.get(turn) or self._open_turns.get(turn)
        if before is None:
            return []
        self._last_scans[turn] = after = self._scan(is_stopped)
        return changed_files(self._jail, before, after)

    def prescan(self, turn: str, is_stopped: Callable[[], bool]) -> None:
        """Keep what the turn has left so far: if nothing happens any more, its end need not."""
        if turn in self._open_turns:
            self._prescanned = (turn, self._scan(is_stopped))

    def finish(self, turn: str, is_stopped: Callable[[], bool], *, idle: bool = False) -> TurnChanges:
        """Keep what the turn left, and tell what it changed; `at_rest`: it changed nothing since the look ahead."""
        before = self._open_turns.get(turn)
        if before is None:
            return TurnChanges(turn)
        ahead, self._prescanned = self._prescanned, None
        still = idle and ahead is not None and ahead[0] == turn and ahead[1] is self._tree
        after = self._save_scan(ahead[1]) if still and ahead else self._scan_and_save(is_stopped)
        del self._open_turns[turn]
        self._last_scans.pop(turn, None)
        self._remove_heartbeat(turn)
        changes = diff_trees(before, after)
        self._checkpoint_db.finish(turn, changes)
        self._prune()
        return TurnChanges(
            turn, tuple(ChangedPath(escape_path(change.path), _change_kind(change)) for change in changes)
        )

    def turns(self) -> list[str]:
        self._recover_after_crash()
        return self._checkpoint_db.turns()

    def undone_turns(self) -> set[str]:
        return self._checkpoint_db.undone_turns()

    def undoable_turns(self) -> list[UndoableTurn]:
        self._recover_after_crash()
        return [
            UndoableTurn(turn, at, tuple(escape_path(change.path) for change in changes))
            for turn, at, changes in self._checkpoint_db.finished_turns()
            if changes
        ]

    def plan(self, plan: UndoPlan) -> UndoPlan:
        """What going back or forth would do, as things stand."""
        return self._undo_executor.plan(plan, self._steps(plan))

    def execute(self, plan: UndoPlan) -> UndoResult:
        """Do what a plan says, and nothing else."""
        agreed = {*plan.restore, *plan.delete}
        done = self._undo_executor.execute([step for step in self._steps(plan) if escape_path(step.path) in agreed])
        if done.restored or done.deleted:
            self._checkpoint_db.set_undone(plan.turn_id, undone=plan.direction == "undo")
        return done

    def _steps(self, plan: UndoPlan) -> list[UndoStep]:
        self._recover_after_crash()
        changes = self._checkpoint_db.changes(plan.turn_id)
        if changes is None:
            raise UsageError(
                f"nothing is known of what turn {plan.turn_id} changed", hint="it is not over, or too long ago"
            )
        return make_undo_steps(changes, plan.direction)

    def _scan_and_save(self, is_stopped: Callable[[], bool]) -> Tree:
        """Look, and write down what was found."""
        return self._save_scan(self._scan(is_stopped))

    def _scan(self, is_stopped: Callable[[], bool]) -> Tree:
        """Bring the tree up to date with the disk; everything in it is on the shelf when this returns.

        In the middle of a turn no more than this may be done: should the turn die, the book tells what it found.
        """
        began = time.monotonic()
        if self._tree is None:
            self._tree, self._too_large = self._checkpoint_db.tree(), self._checkpoint_db.too_large()
            self._saved_tree = self._tree
        census = TreeScanner(self._jail, self._tree, {**self._too_large, **self._ostler_paths}, is_stopped)
        census.scan()
        with self._transaction():
            self._evict_oldest_turns(sum(item.size for _, _, item in census.to_read), self._tree)
            capture = ContentCapture(
                self._jail, self._contents, self._max_bytes - self._contents.used_bytes, is_stopped
            )
            capture.capture(census.to_read, census.tree, self._yield_write_lock)
        self._tree, self._too_large, self._uncovered = census.tree, census.too_large, census.uncovered
        self.scan_seconds = time.monotonic() - began
        return census.tree

    def _save_scan(self, tree: Tree) -> Tree:
        with self._transaction():
            self._checkpoint_db.save_scan(self._saved_tree, tree, self._too_large)
            if self._is_first_scan:
                self._close_interrupted(self._saved_tree, tree)
        self._saved_tree, self._is_first_scan = tree, False
        return tree

    def _dead_turns(self) -> list[str]:
        return [
            turn
            for turn, process in self._checkpoint_db.unfinished()
            if turn not in self._open_turns and not _is_alive(process)
        ]

    def _recover_after_crash(self) -> None:
        """Close what a crash left open before anybody asks what can be undone."""
        if self._is_first_scan and self._dead_turns():
            self._scan_and_save(lambda: False)

    def _close_interrupted(self, old: Tree, new: Tree) -> None:
        """A turn whose process died changed what changed until its last sign of life; the rest may be a person's."""
        dead = self._dead_turns()
        for turn in dead[:-1]:
            self._checkpoint_db.delete_turn(turn)
        if dead:
            until = max(map(self._last_heartbeat, dead))
            changes = [
                change if self._existed_at(change, until) else as_conflict(change) for change in diff_trees(old, new)
            ]
            self._checkpoint_db.finish(dead[-1], changes)
        for turn in dead:
            self._remove_heartbeat(turn)

    def _existed_at(self, change: PathChange, until: int) -> bool:
        """Whether a change was there at a moment; bringing back what is gone, or a folder, harms nobody."""
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

    def _coverage(self) -> Coverage:
        gaps = [UncoveredPath(".git", _GIT_INTERNAL)] if os.path.lexists(f"{self._jail.root}/.git") else []
        left_out = {**self._too_large, **self._uncovered}.items()
        gaps += [UncoveredPath(escape_path(path), why) for path, why in left_out if path not in self._ostler_paths]
        files = 0
        told: dict[str, _FolderCoverage] = {}
        for folder, items in (self._tree or {}).items():
            known = self._coverage_by_folder.get(folder)
            told[folder] = known if known is not None and known[0] is items else _folder_coverage(folder, items)
            files += told[folder][1]
            gaps += told[folder][2]
        self._coverage_by_folder = told
        if len(gaps) > MAX_UNCOVERED_SHOWN:
            gaps[MAX_UNCOVERED_SHOWN:] = [UncoveredPath("…", f"and {len(gaps) - MAX_UNCOVERED_SHOWN:,} more")]
        return Coverage(files, tuple(gaps))

    def _prune(self) -> None:
        turns = self._checkpoint_db.turns()
        with self._transaction():
            for turn in turns[:-MAX_TURNS]:
                self._checkpoint_db.delete_turn(turn)
            self._evict_oldest_turns(0, self._tree or {})

    def _evict_oldest_turns(self, size: int, tree: Tree) -> None:
        """Let go of the oldest turns, and of what only they need, until there is room; never of the newest."""
        turns = self._checkpoint_db.turns()
        while self._contents.used_bytes + size > self._max_bytes and len(turns) > 1 and not self._has_other_turns():
            oldest = (len(turns) + 1) // 2
            for turn in turns[:oldest]:
                self._checkpoint_db.delete_turn(turn)
            turns = turns[oldest:]
            wanted = self._checkpoint_db.needed_contents()
            for kept in (tree, *self._open_turns.values()):
                wanted.update(item.content for items in kept.values() for item in items.values())
            self._contents.delete_except(wanted)

    def _has_other_turns(self) -> bool:
        """Whether somebody else is in a turn, and may need contents that are in no book yet."""
        return any(
            turn not in self._open_turns and _is_alive(process) for turn, process in self._checkpoint_db.unfinished()
        )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            self._contents.refresh()
            yield
        except sqlite3.Error:
            with suppress(sqlite3.Error):
                self._database.execute("ROLLBACK")
            self._contents.discard_pending()
            raise
        except BaseException:
            self._database.execute("COMMIT")  # contents do no harm, and the next count need not read them again
            raise
        self._database.execute("COMMIT")

    def _yield_write_lock(self) -> None:
        self._contents.flush()
        self._database.execute("COMMIT")
        self._database.execute("BEGIN IMMEDIATE")


def _folder_coverage(folder: str, items: FolderEntries) -> _FolderCoverage:
    """How many files of a folder are kept, and which are not."""
    gaps: list[UncoveredPath] = []
    files = 0
    for name, item in items.items():
        if item.content:
            files += not item.is_directory
        elif not item.is_directory:
            too_large = item.size > MAX_FILE_BYTES
            why = f"it is larger than {MAX_FILE_BYTES:,} bytes" if too_large else _NOT_SAVED
            gaps.append(UncoveredPath(escape_path(folder + name), why))
    return items, files, gaps


def _change_kind(change: PathChange) -> Literal["created", "modified", "deleted"]:
    if change.before is None:
        return "created"
    return "deleted" if change.after is None else "modified"


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
