"""A text saved in its file's own form, unless that would undo somebody's change."""

import errno
import os
from typing import Literal

from ostler.processes.placeholders import give_way
from ostler.vocabulary.errors import PathRefused
from ostler.vocabulary.seams import Written
from ostler.workspace import writing
from ostler.workspace.encodings import decode
from ostler.workspace.files import MAX_TEXT, READ, as_text, form_of, read_whole, regular, version_of
from ostler.workspace.hardlinks import all_names_inside
from ostler.workspace.jail import Jail, Spot
from ostler.workspace.newlines import in_style, newline_of
from ostler.workspace.rewrite import encoded_new, rewritten
from ostler.workspace.seen import Seen, Sight, stamp_of

DIFF_LINES = 20_000  # of a change, more than anybody is shown
_IN_PLACE = (errno.EACCES, errno.EPERM, errno.EBUSY)


class Target:
    """What a write is aimed at: how it is shown, where it really is, and the version it was made from, if told."""

    __slots__ = ("base", "relative", "shown", "where")

    def __init__(self, shown: str, where: str, relative: str, base: str | None = None) -> None:
        self.shown = shown
        self.where = where
        self.relative = relative
        self.base = base


def save(jail: Jail, seen: Seen, target: Target, text: str) -> Written:
    """Write a whole text; the system's errors are the caller's to translate, and leave the file as it was."""
    with jail.spot(target.relative, create=True) as spot:
        give_way(spot.name, spot.directory)
        try:
            fd = os.open(spot.name, READ | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=spot.directory)
        except FileNotFoundError:
            return _create(spot, seen, target, text)
        try:
            found = regular(fd, target.shown)
            raw = read_whole(fd, target.shown)
        finally:
            os.close(fd)
        return _update(jail, spot, seen, target, text, raw, found)


def _create(spot: Spot, seen: Seen, target: Target, text: str) -> Written:
    if target.base is not None:
        raise PathRefused(
            "changed_on_disk", target.shown, "it was deleted since it was read", hint="ask before making it anew"
        )
    data = within_limit(target, encoded_new(target.shown, text))
    try:
        writing.create(spot, data)
    except writing.ChangedMeanwhileError:
        raise _stale(spot, seen, target) from None
    return _done(spot, seen, target, "created", "", text, data)


def _update(
    jail: Jail, spot: Spot, seen: Seen, target: Target, text: str, raw: bytes, found: os.stat_result
) -> Written:
    sight = seen.get(target.where)
    form = form_of(target.shown, raw, sight.encoding if sight else "")
    before = decode(raw, form)
    data = rewritten(target.shown, raw, form, in_style(text, newline_of(before)))
    if data == raw:
        seen.note(target.where, Sight(version_of(raw), form.encoding, len(raw)), before)
        return Written(target.shown, "unchanged", len(raw), 0, 0, "")
    if version_of(raw) != (target.base or (sight.version if sight else "")):
        raise _stale(spot, seen, target)
    try:
        put(jail, spot, within_limit(target, data), raw, found)
    except writing.ChangedMeanwhileError:
        raise _stale(spot, seen, target) from None
    return _done(spot, seen, target, "updated", before, decode(data, form), data, form.encoding)


def put(jail: Jail, spot: Spot, data: bytes, raw: bytes, found: os.stat_result) -> None:
    """Replace the file, or write into it where it has other names inside or its directory allows no new ones."""
    if not os.access(spot.name, os.W_OK, dir_fd=spot.directory):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), spot.relative)
    if found.st_nlink > 1 and all_names_inside(jail, found):
        writing.overwrite(spot, data, raw)
        return
    try:
        writing.replace(spot, data, raw, found)
    except OSError as error:
        if error.errno not in _IN_PLACE or found.st_nlink > 1:
            raise
        writing.overwrite(spot, data, raw)


def within_limit(target: Target, data: bytes) -> bytes:
    """The bytes, unless they are too many for one file."""
    if len(data) > MAX_TEXT:
        reason = f"{len(data):,} bytes are more than can be written at once ({MAX_TEXT:,})"
        raise PathRefused("too_large", target.shown, reason, hint="write it in pieces")
    return data


def _stale(spot: Spot, seen: Seen, target: Target) -> PathRefused:
    raw = writing.current(spot) or b""
    try:
        now = as_text(target.shown, raw)
    except PathRefused:
        now = None
    return seen.stale(target.where, target.shown, now, len(raw))


def _done(
    spot: Spot,
    seen: Seen,
    target: Target,
    operation: Literal["created", "updated"],
    before: str,
    after: str,
    data: bytes,
    encoding: str = "utf-8",
) -> Written:
    from ostler.text.diff import unified

    found = spot.stat()
    stamp = stamp_of(found) if found else (0, 0, 0)
    seen.note(target.where, Sight(version_of(data), encoding, len(data), stamp), after)
    change = unified(before, after, target.shown, max_lines=DIFF_LINES)
    return Written(target.shown, operation, len(data), change.additions, change.deletions, change.text, change.cut)
