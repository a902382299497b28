"""Restores the files a turn changed, except those that were changed since."""

import os
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress

import msgspec

from ostler.workspace import atomic_write
from ostler.workspace.checkpoint_db import CONFLICT, PathChange, is_same_state
from ostler.workspace.content_store import ContentMissing, ContentStore, digest_of
from ostler.workspace.file_reading import READ_FLAGS, read_up_to
from ostler.workspace.hardlinks import all_links_inside
from ostler.workspace.jail import DIRECTORY_FLAGS, EntryHandle, Jail, closing_fd
from ostler.workspace.packed_folder import PIPE, TreeEntry
from ostler.workspace.paths import escape_path, split_path
from ostler.workspace.tree_scan import MAX_FILE_BYTES
from ostler.workspace.undo_types import UncoveredPath, UndoDirection, UndoPlan, UndoResult

StepAction = Callable[["UndoStep"], str]

_NOT_ACCESSIBLE = TreeEntry(-1, -1, -1, 0, b"")  # equal to no real entry


class UndoStep(msgspec.Struct, frozen=True):
    """One path to restore: the entry that must be there now, and the one to restore."""

    path: str
    expected: TreeEntry | None
    target: TreeEntry | None

    @property
    def removes_existing(self) -> bool:
        """Whether the existing entry must be removed first: for good, or because the target has another type."""
        if self.expected is None:
            return False
        return self.target is None or stat.S_IFMT(self.expected.mode) != stat.S_IFMT(self.target.mode)


def make_undo_steps(changes: Iterable[PathChange], direction: UndoDirection) -> list[UndoStep]:
    """Return the steps to undo or redo the changes of a turn."""
    if direction == "undo":
        return [UndoStep(change.path, change.after, _unprivileged(change.before)) for change in changes]
    return [
        UndoStep(change.path, change.before, _unprivileged(change.after))
        for change in changes
        if change.after != CONFLICT
    ]


def _unprivileged(entry: TreeEntry | None) -> TreeEntry | None:
    """Return the entry without setuid and setgid, which undo never sets on a file: its content may be the model's."""
    if entry is None or entry.is_directory:
        return entry
    return entry._replace(mode=entry.mode & ~(stat.S_ISUID | stat.S_ISGID))


def _is_expected(current: TreeEntry | None, expected: TreeEntry | None) -> bool:
    """Return whether an entry is as expected, or as undo left it."""
    return is_same_state(current, expected) or is_same_state(current, _unprivileged(expected))


class UndoExecutor:
    """Plans and executes undo steps below a root, with contents from a store."""

    def __init__(self, jail: Jail, contents: ContentStore) -> None:
        self._jail = jail
        self._contents = contents

    def plan(self, plan: UndoPlan, steps: list[UndoStep]) -> UndoPlan:
        """Return the plan with what the steps would do in the current state of the workspace."""
        restore: list[str] = []
        delete: dict[str, UndoStep] = {}
        conflicts: list[UncoveredPath] = []
        uncovered: list[UncoveredPath] = []
        replaced: set[str] = set()  # files and symlinks that a directory will replace: nothing is below them yet
        for step in steps:
            current = None if _is_below(step.path, replaced) else self._observe(step.path, step.expected)
            if is_same_state(current, step.target):
                continue
            if not _is_expected(current, step.expected):
                conflicts.append(UncoveredPath(escape_path(step.path), _conflict_reason(current, step.expected)))
            elif step.target is None:
                delete[step.path] = step
            elif not step.target.content and stat.S_ISREG(step.target.mode):
                uncovered.append(UncoveredPath(escape_path(step.path), "its content was not saved"))
            else:
                restore.append(escape_path(step.path))
                if step.removes_existing and step.target.is_directory:
                    replaced.add(step.path)
                if step.target.is_directory and step.target.content:
                    uncovered.append(UncoveredPath(escape_path(step.path), "its content was not saved"))
        for path in self._exclude_non_empty(delete):
            conflicts.append(
                UncoveredPath(
                    escape_path(path), "it contains files that the turn did not create or that undo does not cover"
                )
            )
        deleted = tuple(escape_path(path) for path in delete)
        return msgspec.structs.replace(
            plan, restore=tuple(restore), delete=deleted, conflicts=tuple(conflicts), uncovered=tuple(uncovered)
        )

    def execute(self, steps: list[UndoStep]) -> UndoResult:
        """Execute the steps: first all removals, bottom up, then everything else, top down."""
        restored: list[str] = []
        deleted: list[str] = []
        skipped: list[UncoveredPath] = []
        original_steps, steps = steps, [self._make_accessible(step) for step in steps]
        unlocked = self._make_writable({split_path(step.path)[0] for step in steps} - {step.path for step in steps})
        for step in reversed(steps):
            if step.removes_existing and self._attempt(self._remove, step, skipped) and step.target is None:
                deleted.append(escape_path(step.path))
        blocked = {uncovered.path for uncovered in skipped}
        for step in steps:
            if (
                step.target is not None
                and escape_path(step.path) not in blocked
                and self._attempt(self._restore, step, skipped)
            ):
                restored.append(escape_path(step.path))
        self._restore_modes(original_steps)
        for path, mode in unlocked.items():
            self._chmod(path, mode)
        return UndoResult(tuple(restored), tuple(reversed(deleted)), tuple(skipped))

    def _attempt(self, action: StepAction, step: UndoStep, skipped: list[UncoveredPath]) -> bool:
        try:
            reason = action(step)
        except ContentMissing:
            reason = "its content is no longer in the store"
        except OSError as error:
            reason = f"the operating system reports: {os.strerror(error.errno or 0)}"
        except atomic_write.ConcurrentChangeError:
            reason = "it was changed during the undo"
        if reason:
            skipped.append(UncoveredPath(escape_path(step.path), reason))
        return not reason

    def _remove(self, step: UndoStep) -> str:
        if not _is_expected(self._observe(step.path, step.expected), step.expected):
            return "it was changed since the turn"
        with self._jail.open_entry(step.path) as entry:
            if step.expected is not None and step.expected.is_directory:
                os.rmdir(entry.name, dir_fd=entry.directory_fd)
            else:
                os.unlink(entry.name, dir_fd=entry.directory_fd)
        return ""

    def _restore(self, step: UndoStep) -> str:
        target, expected = step.target, None if step.removes_existing else step.expected
        assert target is not None
        current = self._observe(step.path, expected)
        if is_same_state(current, target):
            return ""
        if not _is_expected(current, expected):
            return "it was changed since the turn"
        with self._jail.open_entry(step.path, create=True) as entry:
            if target.is_directory:
                if current is None:
                    # Writable for now; if this process is killed, the next undo can continue.
                    os.mkdir(entry.name, 0o700, dir_fd=entry.directory_fd)
                    self._chmod(step.path, target.mode | 0o700)
            elif stat.S_ISLNK(target.mode):
                if current is not None:
                    os.unlink(entry.name, dir_fd=entry.directory_fd)
                os.symlink(os.fsdecode(target.content), entry.name, dir_fd=entry.directory_fd)
            elif stat.S_ISFIFO(target.mode):
                self._make_pipe(entry, target)
            else:
                self._write(entry, target)
        return ""

    def _make_pipe(self, entry: EntryHandle, target: TreeEntry) -> None:
        if entry.stat() is not None:
            os.unlink(entry.name, dir_fd=entry.directory_fd)
        os.mkfifo(entry.name, 0o600, dir_fd=entry.directory_fd)
        os.chmod(entry.name, target.mode & 0o7777, dir_fd=entry.directory_fd)

    def _write(self, entry: EntryHandle, target: TreeEntry) -> None:
        """Write a file without syncing: there can be many, and after a crash the contents are still in the store."""
        data = self._contents.get(target.content)
        mode = target.mode & 0o7777
        found = entry.stat()
        if found is None:
            atomic_write.create(entry, data, mode, sync=False)
            return
        before = self._read_bytes(entry)
        # Hard links of the original file are restored with it; those of a different file must not change.
        if found.st_nlink > 1 and found.st_ino == target.inode and all_links_inside(self._jail, found):
            atomic_write.overwrite(entry, data, before, mode)
        else:
            atomic_write.replace(entry, data, before, found, mode, sync=False)

    def _make_accessible(self, step: UndoStep) -> UndoStep:
        """Make a directory accessible whose mode is part of the change. Return the step with the new mode."""
        expected = step.expected
        if expected is None or not expected.is_directory or is_same_state(expected, step.target):
            return step
        mode = expected.mode | 0o700
        if mode == expected.mode or not is_same_state(self._observe(step.path, expected), expected):
            return step
        self._chmod(step.path, mode)
        return msgspec.structs.replace(step, expected=expected._replace(mode=mode))

    def _make_writable(self, paths: set[str]) -> dict[str, int]:
        """Make read-only parent directories writable for now. Return the modes to restore."""
        old_modes: dict[str, int] = {}
        for path in paths:
            current = self._observe(path, None) if path != "." else None
            if current is not None and current.is_directory and not current.mode & stat.S_IWUSR:
                old_modes[path] = current.mode
                self._chmod(path, current.mode | 0o700)
        return old_modes

    def _restore_modes(self, steps: list[UndoStep]) -> None:
        """Set the final mode of every directory: that of its target, or its old one."""
        for step in reversed(steps):
            for final in (step.target, step.expected):
                if final is not None and final.is_directory:
                    self._chmod(step.path, final.mode)
                    break

    def _chmod(self, path: str, mode: int) -> None:
        with suppress(OSError), closing_fd(self._jail.open_without_links(path, DIRECTORY_FLAGS)) as fd:
            os.fchmod(fd, mode & 0o7777)

    def _observe(self, path: str, expected: TreeEntry | None) -> TreeEntry | None:
        """Return the current entry of a path, with its content only if that is needed for the comparison."""
        try:
            with self._jail.open_entry(path) as entry:
                found = entry.stat()
                return None if found is None else self._read_entry(entry, found, expected)
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
        with entry.open(READ_FLAGS) as fd:
            return read_up_to(fd, os.fstat(fd).st_size + 1)

    def _exclude_non_empty(self, delete: dict[str, UndoStep]) -> list[str]:
        """Remove from `delete` the directories that contain other entries, and return them."""
        non_empty: list[str] = []
        for path in sorted(delete, reverse=True):
            expected = delete[path].expected
            if expected is None or not expected.is_directory:
                continue
            try:
                fd = self._jail.open_without_links(path, DIRECTORY_FLAGS)
            except OSError:
                continue
            with closing_fd(fd):
                if any(f"{path}/{name}" not in delete for name in os.listdir(fd)):
                    non_empty.append(path)
                    del delete[path]
        return non_empty


def _is_below(path: str, folders: set[str]) -> bool:
    return any(path[:index] in folders for index, char in enumerate(path) if char == "/") if folders else False


def _conflict_reason(current: TreeEntry | None, expected: TreeEntry | None) -> str:
    if expected == CONFLICT:
        return "it changed when the turn was interrupted, so the change may be yours"
    if current is None:
        return "it was deleted since the turn"
    return "it was changed since the turn" if expected is not None else "it was created since the turn"
