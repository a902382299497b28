"""Saves a text in the file's own encoding; refuses to overwrite unseen changes."""

import errno
import os
from typing import Literal, NamedTuple

from ostler.core.errors import PathError
from ostler.core.protocols import TextFile, WriteResult
from ostler.processes.placeholders import remove_placeholder
from ostler.workspace import atomic_write
from ostler.workspace.encodings import TextEncoding, decode
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

_MAX_DIFF_LINES = 20_000  # more than any display shows
_OVERWRITE_ERRNOS = (errno.EACCES, errno.EPERM, errno.EBUSY)


class WriteTarget(NamedTuple):
    """The target of a write: the path to display, the resolved path, and the resolved path relative to the root."""

    display_path: str
    real_path: str
    relative: str


def save(jail: Jail, tracker: ReadTracker, target: WriteTarget, text: str) -> WriteResult:
    """Replace or create a file with `text`. On an `OSError`, which the caller converts, the file is unchanged."""
    with jail.open_target(target.relative, create=True) as entry:
        remove_placeholder(entry.name, entry.directory_fd)
        try:
            with entry.open(READ_FLAGS) as fd:
                found = stat_regular(fd, target.display_path)
                raw = read_all(fd, target.display_path)
        except FileNotFoundError:
            return _create(entry, tracker, target, text)
        return _update(jail, entry, tracker, target, text, raw, found)


def _create(entry: EntryHandle, tracker: ReadTracker, target: WriteTarget, text: str) -> WriteResult:
    data = check_size(target, encode_new(target.display_path, text))
    try:
        atomic_write.create(entry, data)
    except atomic_write.ConcurrentChangeError:
        raise _stale_error(entry, tracker, target) from None
    record_written(entry, tracker, target, data, TextEncoding())
    return make_result(target.display_path, "created", "", text, len(data))


def _update(
    jail: Jail,
    entry: EntryHandle,
    tracker: ReadTracker,
    target: WriteTarget,
    text: str,
    raw: bytes,
    found: os.stat_result,
) -> WriteResult:
    last = tracker.get(target.real_path)
    text_encoding = text_encoding_of(target.display_path, raw, last.encoding if last else "")
    before = decode(raw, text_encoding)
    data = reencode(target.display_path, raw, text_encoding, with_newline(text, detect_newline(before)))
    if data == raw:
        tracker.record(target.real_path, ReadVersion(version_of(raw), text_encoding.encoding, len(raw)), before)
        return WriteResult(target.display_path, "unchanged", len(raw), 0, 0, "")
    if version_of(raw) != (last.version if last else ""):
        raise _stale_error(entry, tracker, target)
    try:
        write_bytes(jail, entry, check_size(target, data), raw, found)
    except atomic_write.ConcurrentChangeError:
        raise _stale_error(entry, tracker, target) from None
    after = record_written(entry, tracker, target, data, text_encoding)
    return make_result(target.display_path, "updated", before, after, len(data))


def write_bytes(jail: Jail, entry: EntryHandle, data: bytes, raw: bytes, found: os.stat_result) -> None:
    """Replace the file, or overwrite it in place if it has other hard links inside or its directory is read-only."""
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
    """Return the bytes. Raises `PathError` if they are too many for one file."""
    if len(data) > MAX_TEXT_BYTES:
        reason = f"{len(data):,} bytes exceed the limit of {MAX_TEXT_BYTES:,} for one write"
        raise PathError("too_large", target.display_path, reason, hint="write it in parts")
    return data


def _stale_error(entry: EntryHandle, tracker: ReadTracker, target: WriteTarget) -> PathError:
    raw = atomic_write.read_current(entry) or b""
    return tracker.stale_error(target.real_path, target.display_path, as_text_file(target.display_path, raw), len(raw))


def as_text_file(display_path: str, raw: bytes | None) -> TextFile | None:
    """Decode the bytes of a file. Return None if it is binary or was not read."""
    try:
        return to_text_file(display_path, raw) if raw is not None else None
    except PathError:
        return None


def record_written(
    entry: EntryHandle, tracker: ReadTracker, target: WriteTarget, data: bytes, text_encoding: TextEncoding
) -> str:
    """Record the written bytes as the version that was last read, and return them as text."""
    found, text = entry.stat(), decode(data, text_encoding)
    stamp = stamp_of(found) if found else (0, 0, 0)
    tracker.record(target.real_path, ReadVersion(version_of(data), text_encoding.encoding, len(data), stamp), text)
    return text


def make_result(
    display_path: str, operation: Literal["created", "updated", "deleted"], before: str, after: str, size: int
) -> WriteResult:
    """Return the result of a change from one text to another."""
    from ostler.text.diff import unified_diff

    change = unified_diff(before, after, display_path, max_lines=_MAX_DIFF_LINES)
    return WriteResult(display_path, operation, size, change.additions, change.deletions, change.text, change.truncated)
