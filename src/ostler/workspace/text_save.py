"""A text saved in its file's own form, unless that would undo somebody's change."""

import errno
import os
from typing import Literal

from ostler.core.errors import PathError
from ostler.core.protocols import WriteResult
from ostler.processes.placeholders import remove_placeholder
from ostler.workspace import atomic_write
from ostler.workspace.encodings import decode
from ostler.workspace.file_reading import (
    MAX_TEXT_BYTES,
    READ_FLAGS,
    read_all,
    stat_regular,
    text_encoding_of,
    to_text_file,
    version_of,
)
from ostler.workspace.hardlinks import all_links_inside
from ostler.workspace.jail import EntryHandle, Jail
from ostler.workspace.newlines import detect_newline, with_newline
from ostler.workspace.read_tracker import ReadTracker, ReadVersion, stamp_of
from ostler.workspace.reencode import encode_new, reencode

MAX_DIFF_LINES = 20_000  # of a change, more than anybody is shown
_OVERWRITE_ERRNOS = (errno.EACCES, errno.EPERM, errno.EBUSY)


class WriteTarget:
    """What a write is aimed at: how it is shown, where it really is, and the version it was made from, if told."""

    __slots__ = ("base_version", "display_path", "real_path", "relative")

    def __init__(self, display_path: str, real_path: str, relative: str, base_version: str | None = None) -> None:
        self.display_path = display_path
        self.real_path = real_path
        self.relative = relative
        self.base_version = base_version


def save(jail: Jail, tracker: ReadTracker, target: WriteTarget, text: str) -> WriteResult:
    """Write a whole text; the system's errors are the caller's to translate, and leave the file as it was."""
    with jail.open_target(target.relative, create=True) as spot:
        remove_placeholder(spot.name, spot.directory_fd)
        try:
            fd = os.open(spot.name, READ_FLAGS | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=spot.directory_fd)
        except FileNotFoundError:
            return _create(spot, tracker, target, text)
        try:
            found = stat_regular(fd, target.display_path)
            raw = read_all(fd, target.display_path)
        finally:
            os.close(fd)
        return _update(jail, spot, tracker, target, text, raw, found)


def _create(entry: EntryHandle, tracker: ReadTracker, target: WriteTarget, text: str) -> WriteResult:
    if target.base_version is not None:
        raise PathError(
            "changed_on_disk", target.display_path, "it was deleted since it was read", hint="ask before making it anew"
        )
    data = check_size(target, encode_new(target.display_path, text))
    try:
        atomic_write.create(entry, data)
    except atomic_write.ConcurrentChangeError:
        raise _stale_error(entry, tracker, target) from None
    return _record_result(entry, tracker, target, "created", "", text, data)


def _update(
    jail: Jail,
    entry: EntryHandle,
    tracker: ReadTracker,
    target: WriteTarget,
    text: str,
    raw: bytes,
    found: os.stat_result,
) -> WriteResult:
    sight = tracker.get(target.real_path)
    form = text_encoding_of(target.display_path, raw, sight.encoding if sight else "")
    before = decode(raw, form)
    data = reencode(target.display_path, raw, form, with_newline(text, detect_newline(before)))
    if data == raw:
        tracker.record(target.real_path, ReadVersion(version_of(raw), form.encoding, len(raw)), before)
        return WriteResult(target.display_path, "unchanged", len(raw), 0, 0, "")
    if version_of(raw) != (target.base_version or (sight.version if sight else "")):
        raise _stale_error(entry, tracker, target)
    try:
        write_bytes(jail, entry, check_size(target, data), raw, found)
    except atomic_write.ConcurrentChangeError:
        raise _stale_error(entry, tracker, target) from None
    return _record_result(entry, tracker, target, "updated", before, decode(data, form), data, form.encoding)


def write_bytes(jail: Jail, entry: EntryHandle, data: bytes, raw: bytes, found: os.stat_result) -> None:
    """Replace the file, or write into it where it has other names inside or its directory allows no new ones."""
    if not os.access(entry.name, os.W_OK, dir_fd=entry.directory_fd):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), entry.relative)
    if found.st_nlink > 1 and all_links_inside(jail, found):
        atomic_write.overwrite(entry, data, raw)
        return
    try:
        atomic_write.replace(entry, data, raw, found)
    except OSError as error:
        if error.errno not in _OVERWRITE_ERRNOS or found.st_nlink > 1:
            raise
        atomic_write.overwrite(entry, data, raw)


def check_size(target: WriteTarget, data: bytes) -> bytes:
    """The bytes, unless they are too many for one file."""
    if len(data) > MAX_TEXT_BYTES:
        reason = f"{len(data):,} bytes are more than can be written at once ({MAX_TEXT_BYTES:,})"
        raise PathError("too_large", target.display_path, reason, hint="write it in pieces")
    return data


def _stale_error(entry: EntryHandle, tracker: ReadTracker, target: WriteTarget) -> PathError:
    raw = atomic_write.read_current(entry) or b""
    try:
        now = to_text_file(target.display_path, raw)
    except PathError:
        now = None
    return tracker.stale_error(target.real_path, target.display_path, now, len(raw))


def _record_result(
    entry: EntryHandle,
    tracker: ReadTracker,
    target: WriteTarget,
    operation: Literal["created", "updated"],
    before: str,
    after: str,
    data: bytes,
    encoding: str = "utf-8",
) -> WriteResult:
    from ostler.text.diff import unified_diff

    found = entry.stat()
    stamp = stamp_of(found) if found else (0, 0, 0)
    tracker.record(target.real_path, ReadVersion(version_of(data), encoding, len(data), stamp), after)
    change = unified_diff(before, after, target.display_path, max_lines=MAX_DIFF_LINES)
    return WriteResult(
        target.display_path, operation, len(data), change.additions, change.deletions, change.text, change.truncated
    )
