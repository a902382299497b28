"""One file change of a transaction: validate, apply, roll back, finish."""

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import msgspec

from ostler.core.errors import PathError
from ostler.core.protocols import FileChange, WriteResult
from ostler.processes.placeholders import remove_placeholder
from ostler.workspace import atomic_write, file_operations
from ostler.workspace.encodings import TextEncoding, decode
from ostler.workspace.file_reading import (
    MAX_TEXT_BYTES,
    READ_FLAGS,
    read_all,
    stat_regular,
    text_encoding_of,
    version_of,
)
from ostler.workspace.jail import DIRECTORY_FLAGS, EntryHandle, Jail
from ostler.workspace.paths import split_path
from ostler.workspace.read_tracker import ReadTracker, stamp_of
from ostler.workspace.reencode import encode_new, reencode
from ostler.workspace.text_save import WriteTarget, as_text_file, check_size, make_result, record_written, write_bytes


class ResolvedChange(msgspec.Struct, frozen=True):
    """A change with its resolved paths: the file, its new path, and the file whose encoding and mode it takes."""

    change: FileChange
    target: WriteTarget
    new_target: WriteTarget | None = None
    template: WriteTarget | None = None


class ChangeStep:
    """A validated change; `result` describes what it will do."""

    result: WriteResult

    def __init__(self, jail: Jail, tracker: ReadTracker, resolved: ResolvedChange) -> None:
        self.jail = jail
        self.tracker = tracker
        self.resolved = resolved
        self._rollbacks: list[Callable[[], object]] = []

    def apply(self) -> None:
        raise NotImplementedError

    def roll_back(self) -> None:
        """Undo what was applied. The file is then treated as not read."""
        for rollback in reversed(self._rollbacks):
            with suppress(OSError, PathError, atomic_write.ConcurrentChangeError):
                rollback()
        self.tracker.forget(self.resolved.target.real_path)

    def finish(self) -> None:
        """Clean up after all changes of the transaction were applied."""

    def check_unchanged(self, found: os.stat_result, raw: bytes | None) -> None:
        """Raise if the file is not of the change's base version, or changed since it was last read."""
        target, base_version = self.resolved.target, self.resolved.change.base_version
        last = self.tracker.get(target.real_path)
        version = version_of(raw) if raw is not None else ""
        changed = last is not None and not last.is_same(version, stamp_of(found))
        if changed or (base_version and base_version != version):
            raise self.tracker.stale_error(
                target.real_path, target.display_path, as_text_file(target.display_path, raw), found.st_size
            )

    def remove_new_parents_on_undo(self, target: WriteTarget) -> None:
        """Make a rollback remove the parent directories that the new file needs and that do not exist yet."""
        parent = split_path(target.relative)[0]
        missing: list[str] = []
        while parent != "." and not _is_directory(self.jail, parent):
            missing.append(parent)
            parent = split_path(parent)[0]
        for relative in reversed(missing):
            self._rollbacks.append(partial(_remove_directory, self.jail, relative))


class CreateStep(ChangeStep):
    """Creates a file."""

    def __init__(self, jail: Jail, tracker: ReadTracker, resolved: ResolvedChange) -> None:
        super().__init__(jail, tracker, resolved)
        text, display_path = resolved.change.text or "", resolved.target.display_path
        self._text_encoding = TextEncoding()
        self._mode: int | None = None
        if resolved.template is None:
            data = encode_new(display_path, text)
        else:
            found, raw = load(jail, resolved.template, full=True)
            self._text_encoding, self._mode = text_encoding_of(display_path, raw or b""), stat.S_IMODE(found.st_mode)
            data = reencode(display_path, raw or b"", self._text_encoding, text)
        self._data = check_size(resolved.target, data)
        self.result = make_result(display_path, "created", "", text, len(data))

    def apply(self) -> None:
        target = self.resolved.target
        self.remove_new_parents_on_undo(target)
        with self.jail.open_entry(target.relative, create=True) as entry:
            remove_placeholder(entry.name, entry.directory_fd)
            try:
                atomic_write.create(entry, self._data)
            except atomic_write.ConcurrentChangeError:
                raise PathError(
                    "already_exists", target.display_path, "it was created by another process in the meantime"
                ) from None
            self._rollbacks.append(lambda: file_operations.delete(self.jail, self.tracker, target))
            now = entry.stat()
            if now is not None:
                mode = stat.S_IMODE(now.st_mode) if self._mode is None else self._mode
                _chmod(entry, _with_executable(mode, self.resolved.change.executable))
            record_written(entry, self.tracker, target, self._data, self._text_encoding)


class UpdateStep(ChangeStep):
    """Changes the text, the path or the mode of an existing file."""

    def __init__(self, jail: Jail, tracker: ReadTracker, resolved: ResolvedChange) -> None:
        super().__init__(jail, tracker, resolved)
        target, change = resolved.target, resolved.change
        self._found, raw = load(jail, target, no_follow=resolved.new_target is not None, full=change.text is not None)
        self.check_unchanged(self._found, raw)
        self._before = self._data = raw or b""
        self._text_encoding, before, after = TextEncoding(), "", ""
        if change.text is not None:
            last = tracker.get(target.real_path)
            self._text_encoding = text_encoding_of(target.display_path, self._before, last.encoding if last else "")
            before, after = decode(self._before, self._text_encoding), change.text
            self._data = check_size(target, reencode(target.display_path, self._before, self._text_encoding, after))
        self._mode = _with_executable(stat.S_IMODE(self._found.st_mode), change.executable)
        display_path = resolved.new_target.display_path if resolved.new_target else target.display_path
        self.result = make_result(
            display_path, "updated", before, after, self._found.st_size if raw is None else len(self._data)
        )
        if resolved.new_target:
            self.result = msgspec.structs.replace(self.result, operation="renamed", source=target.display_path)
        elif self._data == self._before and self._mode == stat.S_IMODE(self._found.st_mode):
            self.result = msgspec.structs.replace(self.result, operation="unchanged")

    def apply(self) -> None:
        old, new = self.resolved.target, self.resolved.new_target
        if new is not None:
            self.remove_new_parents_on_undo(new)
            file_operations.rename(self.jail, self.tracker, old, new)
            self._rollbacks.append(lambda: file_operations.rename(self.jail, self.tracker, new, old))
        current = new or old
        with self.jail.open_target(current.relative) as entry:
            if self._data != self._before:
                self._write(current, entry)
            if self._mode != stat.S_IMODE(self._found.st_mode):
                _chmod(entry, self._mode)
                self._rollbacks.append(lambda: self._with_entry(current, _chmod, stat.S_IMODE(self._found.st_mode)))

    def _write(self, target: WriteTarget, entry: EntryHandle) -> None:
        try:
            write_bytes(self.jail, entry, self._data, self._before, self._found)
        except atomic_write.ConcurrentChangeError:
            raise PathError(
                "changed_on_disk", target.display_path, "it was changed in the meantime", hint="read it again"
            ) from None
        self._rollbacks.append(
            lambda: self._with_entry(
                target, lambda entry: write_bytes(self.jail, entry, self._before, self._data, self._found)
            )
        )
        record_written(entry, self.tracker, target, self._data, self._text_encoding)

    def _with_entry(self, target: WriteTarget, work: Callable[..., None], *arguments: int) -> None:
        with self.jail.open_target(target.relative) as entry:
            work(entry, *arguments)


class DeleteStep(ChangeStep):
    """Deletes a file. Until all other changes are applied it is only renamed."""

    def __init__(self, jail: Jail, tracker: ReadTracker, resolved: ResolvedChange) -> None:
        super().__init__(jail, tracker, resolved)
        found, raw = load(jail, resolved.target, no_follow=True)
        self.check_unchanged(found, raw)
        text = as_text_file(resolved.target.display_path, raw)
        self.result = make_result(resolved.target.display_path, "deleted", text.text if text else "", "", 0)
        self._temp_name = f".ostler-{os.urandom(8).hex()}.tmp"

    def apply(self) -> None:
        self._rename(split_path(self.resolved.target.relative)[1], self._temp_name)
        self._rollbacks.append(lambda: self._rename(self._temp_name, split_path(self.resolved.target.relative)[1]))
        self.tracker.forget(self.resolved.target.real_path)

    def finish(self) -> None:
        with suppress(OSError), self.jail.open_entry(self.resolved.target.relative) as entry:
            os.unlink(self._temp_name, dir_fd=entry.directory_fd)

    def _rename(self, old: str, new: str) -> None:
        with self.jail.open_entry(self.resolved.target.relative) as entry:
            os.rename(old, new, src_dir_fd=entry.directory_fd, dst_dir_fd=entry.directory_fd)


def load(
    jail: Jail, target: WriteTarget, *, no_follow: bool = False, full: bool = False
) -> tuple[os.stat_result, bytes | None]:
    """Return the stat result and the bytes of a regular file; None instead of the bytes of a large one without `full`.

    A symlink is followed. Raises `PathError` for a symlink with `no_follow`.
    """
    with jail.open_entry(target.relative) if no_follow else jail.open_target(target.relative) as entry:
        found = entry.stat()
        if found is not None and stat.S_ISLNK(found.st_mode):
            raise PathError("not_a_file", target.display_path, "this is a symlink; use a command to move or delete it")
        with entry.open(READ_FLAGS) as fd:
            found = stat_regular(fd, target.display_path)
            return found, read_all(fd, target.display_path) if full or found.st_size <= MAX_TEXT_BYTES else None


def _with_executable(mode: int, executable: bool | None) -> int:
    """Return the mode with execute permission for everyone who can read, or for no one."""
    if executable is None:
        return mode
    return mode | (mode & 0o444) >> 2 if executable else mode & ~0o111


def _chmod(entry: EntryHandle, mode: int) -> None:
    with entry.open(READ_FLAGS) as fd:
        os.fchmod(fd, mode)


def _is_directory(jail: Jail, relative: str) -> bool:
    try:
        os.close(jail.open(relative, DIRECTORY_FLAGS))
    except FileNotFoundError:
        return False
    return True


def _remove_directory(jail: Jail, relative: str) -> None:
    with jail.open_entry(relative) as entry:
        os.rmdir(entry.name, dir_fd=entry.directory_fd)
