"""The keeper of a workspace's past: counts it, shelves what changed, and knows the way back from each turn."""

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Literal

from ostler.vocabulary.errors import UsageError
from ostler.workspace.capture import Capture
from ostler.workspace.census import LARGEST, Census, Folder, Tree
from ostler.workspace.changes import Changed, Changes, Coverage, Gap, Kept, Undone, UndoPlan
from ostler.workspace.contents import Contents
from ostler.workspace.jail import Jail
from ostler.workspace.ledger import NOBODY, Change, Ledger, differences, open_database, unsure
from ostler.workspace.paths import beneath, escaped
from ostler.workspace.undoing import Step, WayBack, steps_of
from ostler.workspace.watch import changed_files

MOST_TURNS = 500
MOST_GAPS = 100
_NOT_KEPT = "it cannot be read, the store is full, or there was no time to keep it"
_GIT_S_OWN = "what git keeps for itself"
_Told = tuple[Folder, int, list[Gap]]


class Archive:
    """Blocking, and for one thread at a time; `Checkpoints` is its face to the rest."""

    def __init__(self, root: str, store: str, cap: int, ours: str = "") -> None:
        self._jail = Jail(root)
        os.makedirs(store, mode=0o700, exist_ok=True)
        self._store = store
        self._database = open_database(f"{store}/turns.db")
        self._contents = Contents(self._database, f"{store}/large")
        self._ledger = Ledger(self._database)
        self._way_back = WayBack(self._jail, self._contents)
        self._cap = cap
        self._open: dict[str, Tree] = {}
        self._looked: dict[str, Tree] = {}
        self._tree: Tree | None = None  # as last looked at
        self._noted: Tree = {}  # as last written down
        self._first = True
        self._ahead: tuple[str, Tree] | None = None
        self.seconds = 0.0  # that the last look took
        self._heavy: dict[str, str] = {}
        self._gaps: dict[str, str] = {}
        self._told: dict[str, _Told] = {}
        own = (beneath(os.path.realpath(place), self._jail.names) for place in (ours or store, store))
        self._own = {path: "what Ostler keeps is there" for path in own if path and path != "."}

    def close(self) -> None:
        """Let the store go; a turn that is still open is closed when the past is next opened."""
        for turn in self._open:
            self.living(turn)
            self._ledger.abandon(turn)
        self._database.close()
        self._jail.close()

    def begin(self, turn: str, stopped: Callable[[], bool]) -> Coverage:
        """Keep what stands in the workspace now; whatever the turn changes can be brought back afterwards."""
        self._open[turn] = self._count(stopped)
        self._ledger.begin(turn)
        return self._coverage()

    def living(self, turn: str) -> None:
        with suppress(OSError):
            open(self._sign(turn), "wb").close()

    def news(self, turn: str, stopped: Callable[[], bool]) -> list[str]:
        """The files that changed since this was last asked in the turn, or since it began; not what git leaves out."""
        before = self._looked.get(turn) or self._open.get(turn)
        if before is None:
            return []
        self._looked[turn] = after = self._look(stopped)
        return changed_files(self._jail, before, after)

    def look_ahead(self, turn: str, stopped: Callable[[], bool]) -> None:
        """Keep what the turn has left so far: if nothing happens any more, its end need not."""
        if turn in self._open:
            self._ahead = (turn, self._look(stopped))

    def finish(self, turn: str, stopped: Callable[[], bool], *, at_rest: bool = False) -> Changes:
        """Keep what the turn left, and tell what it changed; `at_rest`: it changed nothing since the look ahead."""
        before = self._open.get(turn)
        if before is None:
            return Changes(turn)
        ahead, self._ahead = self._ahead, None
        still = at_rest and ahead is not None and ahead[0] == turn and ahead[1] is self._tree
        after = self._note(ahead[1]) if still and ahead else self._count(stopped)
        del self._open[turn]
        self._looked.pop(turn, None)
        self._forget_sign(turn)
        changes = differences(before, after)
        self._ledger.finish(turn, changes)
        self._tidy()
        return Changes(turn, tuple(Changed(escaped(change.path), _kind(change)) for change in changes))

    def turns(self) -> list[str]:
        self._settle()
        return self._ledger.turns()

    def undone(self) -> set[str]:
        return self._ledger.undone()

    def kept(self) -> list[Kept]:
        self._settle()
        return [
            Kept(turn, at, tuple(escaped(change.path) for change in changes))
            for turn, at, changes in self._ledger.kept()
            if changes
        ]

    def plan(self, plan: UndoPlan) -> UndoPlan:
        """What going back or forth would do, as things stand."""
        return self._way_back.plan(plan, self._steps(plan))

    def carry_out(self, plan: UndoPlan) -> Undone:
        """Do what a plan says, and nothing else."""
        agreed = {*plan.restore, *plan.delete}
        done = self._way_back.carry_out([step for step in self._steps(plan) if escaped(step.path) in agreed])
        if done.restored or done.deleted:
            self._ledger.mark(plan.turn, undone=plan.direction == "undo")
        return done

    def _steps(self, plan: UndoPlan) -> list[Step]:
        self._settle()
        changes = self._ledger.changes(plan.turn)
        if changes is None:
            raise UsageError(
                f"nothing is known of what turn {plan.turn} changed", hint="it is not over, or too long ago"
            )
        return steps_of(changes, plan.direction)

    def _count(self, stopped: Callable[[], bool]) -> Tree:
        """Look, and write down what was found."""
        return self._note(self._look(stopped))

    def _look(self, stopped: Callable[[], bool]) -> Tree:
        """Bring the tree up to date with the disk; everything in it is on the shelf when this returns.

        In the middle of a turn no more than this may be done: should the turn die, the book tells what it found.
        """
        began = time.monotonic()
        if self._tree is None:
            self._tree, self._heavy = self._ledger.tree(), self._ledger.heavy()
            self._noted = self._tree
        census = Census(self._jail, self._tree, {**self._heavy, **self._own}, stopped)
        census.take()
        with self._writing():
            self._make_room(sum(item.size for _, _, item in census.fresh), self._tree)
            capture = Capture(self._jail, self._contents, self._cap - self._contents.used, stopped)
            capture.take(census.fresh, census.tree, self._let_others_write)
        self._tree, self._heavy, self._gaps = census.tree, census.heavy, census.gaps
        self.seconds = time.monotonic() - began
        return census.tree

    def _note(self, tree: Tree) -> Tree:
        with self._writing():
            self._ledger.counted(self._noted, tree, self._heavy)
            if self._first:
                self._close_interrupted(self._noted, tree)
        self._noted, self._first = tree, False
        return tree

    def _dead(self) -> list[str]:
        return [turn for turn, process in self._ledger.unfinished() if turn not in self._open and not _alive(process)]

    def _settle(self) -> None:
        """Close what a crash left open before anybody asks what can be undone."""
        if self._first and self._dead():
            self._count(lambda: False)

    def _close_interrupted(self, old: Tree, new: Tree) -> None:
        """A turn whose process died changed what changed until its last sign of life; the rest may be a person's."""
        dead = self._dead()
        for turn in dead[:-1]:
            self._ledger.forget(turn)
        if dead:
            until = max(map(self._last_sign, dead))
            changes = [change if self._before(change, until) else unsure(change) for change in differences(old, new)]
            self._ledger.finish(dead[-1], changes)
        for turn in dead:
            self._forget_sign(turn)

    def _before(self, change: Change, until: int) -> bool:
        """Whether a change was there at a moment; bringing back what is gone, or a folder, harms nobody."""
        if change.after is None or change.after.is_directory:
            return True
        try:
            return os.stat(f"{self._jail.root}/{change.path}", follow_symlinks=False).st_ctime_ns <= until
        except OSError:
            return False

    def _last_sign(self, turn: str) -> int:
        try:
            return os.stat(self._sign(turn)).st_mtime_ns
        except OSError:
            return 0

    def _forget_sign(self, turn: str) -> None:
        with suppress(OSError):
            os.unlink(self._sign(turn))

    def _sign(self, turn: str) -> str:
        import hashlib

        return f"{self._store}/living-{hashlib.sha256(turn.encode()).hexdigest()[:16]}"

    def _coverage(self) -> Coverage:
        gaps = [Gap(".git", _GIT_S_OWN)] if os.path.lexists(f"{self._jail.root}/.git") else []
        left_out = {**self._heavy, **self._gaps}.items()
        gaps += [Gap(escaped(path), why) for path, why in left_out if path not in self._own]
        files = 0
        told: dict[str, _Told] = {}
        for folder, items in (self._tree or {}).items():
            known = self._told.get(folder)
            told[folder] = known if known is not None and known[0] is items else _tell(folder, items)
            files += told[folder][1]
            gaps += told[folder][2]
        self._told = told
        if len(gaps) > MOST_GAPS:
            gaps[MOST_GAPS:] = [Gap("…", f"and {len(gaps) - MOST_GAPS:,} more")]
        return Coverage(files, tuple(gaps))

    def _tidy(self) -> None:
        turns = self._ledger.turns()
        with self._writing():
            for turn in turns[:-MOST_TURNS]:
                self._ledger.forget(turn)
            self._make_room(0, self._tree or {})

    def _make_room(self, size: int, tree: Tree) -> None:
        """Let go of the oldest turns, and of what only they need, until there is room; never of the newest."""
        turns = self._ledger.turns()
        while self._contents.used + size > self._cap and len(turns) > 1 and not self._others_at_work():
            oldest = (len(turns) + 1) // 2
            for turn in turns[:oldest]:
                self._ledger.forget(turn)
            turns = turns[oldest:]
            wanted = self._ledger.needed()
            for kept in (tree, *self._open.values()):
                wanted.update(item.content for items in kept.values() for item in items.values())
            self._contents.keep_only(wanted)

    def _others_at_work(self) -> bool:
        """Whether somebody else is in a turn, and may need contents that are in no book yet."""
        return any(turn not in self._open and _alive(process) for turn, process in self._ledger.unfinished())

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            self._contents.open()
            yield
        except sqlite3.Error:
            with suppress(sqlite3.Error):
                self._database.execute("ROLLBACK")
            self._contents.forget()
            raise
        except BaseException:
            self._database.execute("COMMIT")  # contents do no harm, and the next count need not read them again
            raise
        self._database.execute("COMMIT")

    def _let_others_write(self) -> None:
        self._contents.flush()
        self._database.execute("COMMIT")
        self._database.execute("BEGIN IMMEDIATE")


def _tell(folder: str, items: Folder) -> _Told:
    """How many files of a folder are kept, and which are not."""
    gaps: list[Gap] = []
    files = 0
    for name, item in items.items():
        if item.content:
            files += not item.is_directory
        elif not item.is_directory:
            too_large = item.size > LARGEST
            why = f"it is larger than {LARGEST:,} bytes" if too_large else _NOT_KEPT
            gaps.append(Gap(escaped(folder + name), why))
    return items, files, gaps


def _kind(change: Change) -> Literal["created", "modified", "deleted"]:
    if change.before is None:
        return "created"
    return "deleted" if change.after is None else "modified"


def _alive(process: int) -> bool:
    if process == NOBODY:
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
