"""A way back: what a turn changed is put as it was, unless somebody has changed it since."""

import os
import stat
from collections.abc import Callable, Iterable

import msgspec

from ostler.workspace import atomic_write
from ostler.workspace.checkpoint_db import CONFLICT, PathChange, is_same_state
from ostler.workspace.content_store import ContentMissing, ContentStore, digest_of
from ostler.workspace.file_reading import READ_FLAGS, read_up_to
from ostler.workspace.hardlinks import all_links_inside
from ostler.workspace.jail import DIRECTORY_FLAGS, EntryHandle, Jail
from ostler.workspace.paths import escape_path, split_path
from ostler.workspace.tree_scan import MAX_FILE_BYTES, PIPE, TreeEntry
from ostler.workspace.undo_types import UncoveredPath, UndoPlan, UndoResult

StepAction = Callable[["UndoStep"], str]

_NOT_ACCESSIBLE = TreeEntry(-1, -1, -1, 0, b"")  # like nothing a turn could have left


class UndoStep(msgspec.Struct, frozen=True):
    """One path: what must stand there now, and what shall."""

    path: str
    expected: TreeEntry | None
    target: TreeEntry | None

    @property
    def removes_existing(self) -> bool:
        """Whether what stands there must go first: for good, or because a thing of another kind takes its place."""
        if self.expected is None:
            return False
        return self.target is None or stat.S_IFMT(self.expected.mode) != stat.S_IFMT(self.target.mode)


def make_undo_steps(changes: Iterable[PathChange], direction: str) -> list[UndoStep]:
    """The steps back before a turn, or forth again."""
    if direction == "undo":
        return [UndoStep(change.path, change.after, change.before) for change in changes]
    return [UndoStep(change.path, change.before, change.after) for change in changes if change.after != CONFLICT]


class UndoExecutor:
    """Carries out steps under a root, with contents from a shelf."""

    def __init__(self, jail: Jail, contents: ContentStore) -> None:
        self._jail = jail
        self._contents = contents

    def plan(self, plan: UndoPlan, steps: list[UndoStep]) -> UndoPlan:
        """What the steps would do, as things stand."""
        restore: list[str] = []
        delete: dict[str, UndoStep] = {}
        conflicts: list[UncoveredPath] = []
        uncovered: list[UncoveredPath] = []
        making_way: set[str] = set()  # files and links where a directory shall be: nothing is below them yet
        for step in steps:
            now = None if _is_below(step.path, making_way) else self._observe(step.path, step.expected)
            if is_same_state(now, step.target):
                continue
            if not is_same_state(now, step.expected):
                conflicts.append(UncoveredPath(escape_path(step.path), _conflict_reason(now, step.expected)))
            elif step.target is None:
                delete[step.path] = step
            elif not step.target.content and stat.S_ISREG(step.target.mode):
                uncovered.append(UncoveredPath(escape_path(step.path), "its content was not kept"))
            else:
                restore.append(escape_path(step.path))
                if step.removes_existing and step.target.is_directory:
                    making_way.add(step.path)
                if step.target.is_directory and step.target.content:
                    uncovered.append(UncoveredPath(escape_path(step.path), "what it held was not kept"))
        for path in self._exclude_non_empty(delete):
            conflicts.append(
                UncoveredPath(escape_path(path), "it holds files that the turn did not make, or that are not covered")
            )
        gone = tuple(escape_path(path) for path in delete)
        return msgspec.structs.replace(
            plan, restore=tuple(restore), delete=gone, conflicts=tuple(conflicts), uncovered=tuple(uncovered)
        )

    def execute(self, steps: list[UndoStep]) -> UndoResult:
        """Take the steps: what must go goes first, deepest first; then all else, from the top down."""
        restored: list[str] = []
        deleted: list[str] = []
        left: list[UncoveredPath] = []
        given, steps = steps, self._make_accessible(steps)
        unlocked = self._make_writable({split_path(step.path)[0] for step in steps} - {step.path for step in steps})
        for step in reversed(steps):
            if step.removes_existing and self._attempt(self._remove, step, left) and step.target is None:
                deleted.append(escape_path(step.path))
        blocked = {gap.path for gap in left}
        for step in steps:
            if (
                step.target is not None
                and escape_path(step.path) not in blocked
                and self._attempt(self._restore, step, left)
            ):
                restored.append(escape_path(step.path))
        self._restore_modes(given)
        for path, mode in unlocked.items():
            self._chmod(path, mode)
        return UndoResult(tuple(restored), tuple(reversed(deleted)), tuple(left))

    def _attempt(self, action: StepAction, step: UndoStep, skipped: list[UncoveredPath]) -> bool:
        try:
            why = action(step)
        except ContentMissing:
            why = "its content is no longer in the store"
        except OSError as error:
            why = f"the operating system reports: {os.strerror(error.errno or 0)}"
        except atomic_write.ConcurrentChangeError:
            why = "it was changed at this very moment"
        if why:
            skipped.append(UncoveredPath(escape_path(step.path), why))
        return not why

    def _remove(self, step: UndoStep) -> str:
        if not is_same_state(self._observe(step.path, step.expected), step.expected):
            return "it was changed since the turn"
        with self._open_entry(step.path) as spot:
            if step.expected is not None and step.expected.is_directory:
                os.rmdir(spot.name, dir_fd=spot.directory_fd)
            else:
                os.unlink(spot.name, dir_fd=spot.directory_fd)
        return ""

    def _restore(self, step: UndoStep) -> str:
        wanted, expected = step.target, None if step.removes_existing else step.expected
        assert wanted is not None
        now = self._observe(step.path, expected)
        if is_same_state(now, wanted):
            return ""
        if not is_same_state(now, expected):
            return "it was changed since the turn"
        with self._open_entry(step.path, create=True) as spot:
            if wanted.is_directory:
                if now is None:
                    # As it shall be, as far as we can still write in it: should we be killed, the next undo goes on.
                    os.mkdir(spot.name, 0o700, dir_fd=spot.directory_fd)
                    self._chmod(step.path, wanted.mode | 0o700)
            elif stat.S_ISLNK(wanted.mode):
                if now is not None:
                    os.unlink(spot.name, dir_fd=spot.directory_fd)
                os.symlink(os.fsdecode(wanted.content), spot.name, dir_fd=spot.directory_fd)
            elif stat.S_ISFIFO(wanted.mode):
                self._make_pipe(spot, wanted)
            else:
                self._write(spot, wanted)
        return ""

    def _make_pipe(self, entry: EntryHandle, target: TreeEntry) -> None:
        if entry.stat() is not None:
            os.unlink(entry.name, dir_fd=entry.directory_fd)
        os.mkfifo(entry.name, 0o600, dir_fd=entry.directory_fd)
        os.chmod(entry.name, target.mode & 0o7777, dir_fd=entry.directory_fd)

    def _write(self, entry: EntryHandle, target: TreeEntry) -> None:
        """Not synced: there may be many, and what is lost in a crash is still on the shelf."""
        data = self._contents.get(target.content)
        mode = target.mode & 0o7777
        found = entry.stat()
        if found is None:
            atomic_write.create(entry, data, mode, sync=False)
            return
        before = self._read_bytes(entry)
        # Other names of the file it was then share what it was; those of another file must not change with it.
        if found.st_nlink > 1 and found.st_ino == target.inode and all_links_inside(self._jail, found):
            atomic_write.overwrite(entry, data, before, mode)
        else:
            atomic_write.replace(entry, data, before, found, mode, sync=False)

    def _make_accessible(self, steps: list[UndoStep]) -> list[UndoStep]:
        """Let us into directories whose own mode is part of the change, as long as it takes; the steps from there."""
        return [self._make_step_accessible(step) for step in steps]

    def _make_step_accessible(self, step: UndoStep) -> UndoStep:
        expected = step.expected
        if expected is None or not expected.is_directory or is_same_state(expected, step.target):
            return step
        mode = expected.mode | 0o700
        if mode == expected.mode or not is_same_state(self._observe(step.path, expected), expected):
            return step
        self._chmod(step.path, mode)
        return msgspec.structs.replace(step, expected=expected._replace(mode=mode))

    def _make_writable(self, paths: set[str]) -> dict[str, int]:
        """Let us write in directories that were read-only and stay so; the mode each has to get back."""
        found: dict[str, int] = {}
        for path in paths:
            now = self._observe(path, None) if path != "." else None
            if now is not None and now.is_directory and not now.mode & stat.S_IWUSR:
                found[path] = now.mode
                self._chmod(path, now.mode | 0o700)
        return found

    def _restore_modes(self, steps: list[UndoStep]) -> None:
        """Give every directory the mode it shall have; one that stays gets back its own."""
        for step in reversed(steps):
            for item in (step.target, step.expected):
                if item is not None and item.is_directory:
                    self._chmod(step.path, item.mode)
                    break

    def _chmod(self, path: str, mode: int) -> None:
        try:
            fd = self._jail.open_without_links(path, DIRECTORY_FLAGS)
        except OSError:
            return
        try:
            os.fchmod(fd, mode & 0o7777)
        except OSError:
            pass
        finally:
            os.close(fd)

    def _observe(self, path: str, expected: TreeEntry | None) -> TreeEntry | None:
        """What stands at a path now; the content only if it would tell something."""
        try:
            with self._open_entry(path) as spot:
                found = spot.stat()
                return None if found is None else self._read_entry(spot, found, expected)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:
            return _NOT_ACCESSIBLE

    def _read_entry(self, entry: EntryHandle, found: os.stat_result, expected: TreeEntry | None) -> TreeEntry:
        content = b""
        if stat.S_ISLNK(found.st_mode):
            content = os.fsencode(os.readlink(entry.name, dir_fd=entry.directory_fd))
        elif stat.S_ISFIFO(found.st_mode):
            content = PIPE
        elif stat.S_ISREG(found.st_mode) and found.st_size <= MAX_FILE_BYTES and (expected is None or expected.content):
            content = digest_of(self._read_bytes(entry))
        return TreeEntry(found.st_ctime_ns, found.st_ino, found.st_size, found.st_mode, content)

    def _read_bytes(self, entry: EntryHandle) -> bytes:
        fd = os.open(entry.name, READ_FLAGS | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=entry.directory_fd)
        try:
            return read_up_to(fd, os.fstat(fd).st_size + 1)
        finally:
            os.close(fd)

    def _open_entry(self, path: str, *, create: bool = False) -> EntryHandle:
        """A path without any link in it: a directory that became a link since is another place."""
        above, name = split_path(path)
        return EntryHandle(self._open_parent(above, create), name, path)

    def _open_parent(self, path: str, create: bool) -> int:
        missing: list[str] = []
        while True:
            try:
                fd = self._jail.open_without_links(path, DIRECTORY_FLAGS)
                break
            except FileNotFoundError:
                if not create:
                    raise
                path, name = split_path(path)
                missing.append(name)
        for name in reversed(missing):
            try:
                os.mkdir(name, dir_fd=fd)
                below = os.open(name, DIRECTORY_FLAGS | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
            finally:
                os.close(fd)
            fd = below
        return fd

    def _exclude_non_empty(self, delete: dict[str, UndoStep]) -> list[str]:
        """The directories to delete that hold something else as well; taken out of what is to be deleted."""
        kept: list[str] = []
        for path in sorted(delete, reverse=True):
            expected = delete[path].expected
            if expected is None or not expected.is_directory:
                continue
            try:
                fd = self._jail.open_without_links(path, DIRECTORY_FLAGS)
            except OSError:
                continue
            try:
                if any(f"{path}/{name}" not in delete for name in os.listdir(fd)):
                    kept.append(path)
                    del delete[path]
            finally:
                os.close(fd)
        return kept


def _is_below(path: str, folders: set[str]) -> bool:
    return any(path[:at] in folders for at, letter in enumerate(path) if letter == "/") if folders else False


def _conflict_reason(now: TreeEntry | None, expected: TreeEntry | None) -> str:
    if expected == CONFLICT:
        return "the turn was cut off at that time, so that it may be its work or yours"
    if now is None:
        return "it was deleted since the turn"
    return "it was changed since the turn" if expected is not None else "something was put there since the turn"
