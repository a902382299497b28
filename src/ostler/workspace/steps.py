"""One change of a set: checked when it is set up, then made, and finished or taken back with the others."""

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import msgspec

from ostler.processes.placeholders import give_way
from ostler.vocabulary.errors import PathRefused
from ostler.vocabulary.seams import FileChange, TextFile, Written
from ostler.workspace import moves, writing
from ostler.workspace.encodings import Form, decode
from ostler.workspace.files import MAX_TEXT, READ, as_text, form_of, read_whole, regular, version_of
from ostler.workspace.jail import DIRECTORY, Jail, Spot
from ostler.workspace.paths import split
from ostler.workspace.rewrite import encoded_new, rewritten
from ostler.workspace.save import DIFF_LINES, Target, put, within_limit
from ostler.workspace.seen import Seen, Sight, stamp_of


class Wish(msgspec.Struct, frozen=True):
    """A change and where its paths lead: the file itself, the new name it gets, and the file whose form it takes."""

    change: FileChange
    target: Target
    goal: Target | None = None
    like: Target | None = None


class Step:
    """A change that may be made; what it will do is in `written`."""

    written: Written

    def __init__(self, jail: Jail, seen: Seen, wish: Wish) -> None:
        self.jail = jail
        self.seen = seen
        self.wish = wish
        self._backwards: list[Callable[[], object]] = []

    def make(self) -> None:
        raise NotImplementedError

    def undo(self) -> None:
        """Take back as much as was made; the file then counts as not read."""
        for back in reversed(self._backwards):
            with suppress(OSError, PathRefused, writing.ChangedMeanwhileError):
                back()
        self.seen.forget(self.wish.target.where)

    def finish(self) -> None:
        """All others are made too."""

    def note(self, target: Target, spot: Spot, data: bytes, form: Form) -> None:
        found = spot.stat()
        stamp = stamp_of(found) if found else (0, 0, 0)
        self.seen.note(target.where, Sight(version_of(data), form.encoding, len(data), stamp), decode(data, form))

    def refuse_changed(self, found: os.stat_result, raw: bytes | None) -> None:
        """Refuse a file that is not of the version the change was made from, or not as this ground last saw it."""
        target, base = self.wish.target, self.wish.change.base
        sight = self.seen.get(target.where)
        version = version_of(raw) if raw is not None else ""
        changed = sight is not None and not _is_as_seen(sight, found, version)
        if changed or (base and base != version):
            raise self.seen.stale(target.where, target.shown, _as_text(target.shown, raw), found.st_size)

    def undo_parents(self, target: Target) -> None:
        """Remember the directories that are missing above a new name: an undo takes them away again."""
        above = split(target.relative)[0]
        missing: list[str] = []
        while above != "." and not _is_directory(self.jail, above):
            missing.append(above)
            above = split(above)[0]
        for relative in reversed(missing):
            self._backwards.append(partial(_remove_directory, self.jail, relative))


class Create(Step):
    """A file that is not there yet."""

    def __init__(self, jail: Jail, seen: Seen, wish: Wish) -> None:
        super().__init__(jail, seen, wish)
        text, shown = wish.change.text or "", wish.target.shown
        self._form = Form()
        self._mode: int | None = None
        if wish.like is None:
            data = encoded_new(shown, text)
        else:
            found, raw = load(jail, wish.like, whole=True)
            self._form, self._mode = form_of(shown, raw or b""), stat.S_IMODE(found.st_mode)
            data = rewritten(shown, raw or b"", self._form, text)
        self._data = within_limit(wish.target, data)
        self.written = _told(shown, "created", "", text, len(data))

    def make(self) -> None:
        target = self.wish.target
        self.undo_parents(target)
        with self.jail.entry(target.relative, create=True) as spot:
            give_way(spot.name, spot.directory)
            try:
                writing.create(spot, self._data)
            except writing.ChangedMeanwhileError:
                raise PathRefused("already_exists", target.shown, "something came there meanwhile") from None
            self._backwards.append(lambda: moves.delete(self.jail, self.seen, target))
            now = spot.stat()
            if now is not None:
                mode = stat.S_IMODE(now.st_mode) if self._mode is None else self._mode
                _chmod(spot, _executable(mode, self.wish.change.executable))
            self.note(target, spot, self._data, self._form)


class Update(Step):
    """Another text, another name or another mode for a file that is there."""

    def __init__(self, jail: Jail, seen: Seen, wish: Wish) -> None:
        super().__init__(jail, seen, wish)
        target, change = wish.target, wish.change
        self._found, raw = load(jail, target, named=wish.goal is not None, whole=change.text is not None)
        self.refuse_changed(self._found, raw)
        self._before = self._data = raw or b""
        self._form, before, after = Form(), "", ""
        if change.text is not None:
            sight = seen.get(target.where)
            self._form = form_of(target.shown, self._before, sight.encoding if sight else "")
            before, after = decode(self._before, self._form), change.text
            self._data = within_limit(target, rewritten(target.shown, self._before, self._form, after))
        self._mode = _executable(stat.S_IMODE(self._found.st_mode), change.executable)
        shown = wish.goal.shown if wish.goal else target.shown
        self.written = _told(shown, "updated", before, after, self._found.st_size if raw is None else len(self._data))
        if wish.goal:
            self.written = msgspec.structs.replace(self.written, operation="renamed", source=target.shown)
        elif self._data == self._before and self._mode == stat.S_IMODE(self._found.st_mode):
            self.written = msgspec.structs.replace(self.written, operation="unchanged")

    def make(self) -> None:
        here, goal = self.wish.target, self.wish.goal
        if goal is not None:
            self.undo_parents(goal)
            moves.rename(self.jail, self.seen, here, goal)
            self._backwards.append(lambda: moves.rename(self.jail, self.seen, goal, here))
        now = goal or here
        with self.jail.spot(now.relative) as spot:
            if self._data != self._before:
                self._put(now, spot)
            if self._mode != stat.S_IMODE(self._found.st_mode):
                _chmod(spot, self._mode)
                self._backwards.append(lambda: self._in_spot(now, _chmod, stat.S_IMODE(self._found.st_mode)))

    def _put(self, now: Target, spot: Spot) -> None:
        try:
            put(self.jail, spot, self._data, self._before, self._found)
        except writing.ChangedMeanwhileError:
            raise PathRefused("changed_on_disk", now.shown, "it was changed meanwhile", hint="read it again") from None
        self._backwards.append(
            lambda: self._in_spot(now, lambda spot: put(self.jail, spot, self._before, self._data, self._found))
        )
        self.note(now, spot, self._data, self._form)

    def _in_spot(self, target: Target, work: Callable[..., None], *arguments: int) -> None:
        with self.jail.spot(target.relative) as spot:
            work(spot, *arguments)


class Delete(Step):
    """A file taken away; until all else is made it only has another name."""

    def __init__(self, jail: Jail, seen: Seen, wish: Wish) -> None:
        super().__init__(jail, seen, wish)
        found, raw = load(jail, wish.target, named=True)
        self.refuse_changed(found, raw)
        text = _as_text(wish.target.shown, raw)
        self.written = _told(wish.target.shown, "deleted", text.text if text else "", "", 0)
        self._aside = f".ostler-{os.urandom(8).hex()}.tmp"

    def make(self) -> None:
        self._rename(split(self.wish.target.relative)[1], self._aside)
        self._backwards.append(lambda: self._rename(self._aside, split(self.wish.target.relative)[1]))
        self.seen.forget(self.wish.target.where)

    def finish(self) -> None:
        with suppress(OSError), self.jail.entry(self.wish.target.relative) as spot:
            os.unlink(self._aside, dir_fd=spot.directory)

    def _rename(self, old: str, new: str) -> None:
        with self.jail.entry(self.wish.target.relative) as spot:
            os.rename(old, new, src_dir_fd=spot.directory, dst_dir_fd=spot.directory)


def load(
    jail: Jail, target: Target, *, named: bool = False, whole: bool = False
) -> tuple[os.stat_result, bytes | None]:
    """A plain file's state and bytes; no bytes for a very large one unless the whole is needed.

    A link is followed, but refused when its own name is meant.
    """
    with jail.entry(target.relative) if named else jail.spot(target.relative) as spot:
        found = spot.stat()
        if found is not None and stat.S_ISLNK(found.st_mode):
            raise PathRefused("not_a_file", target.shown, "this is a link, which is not moved or deleted so")
        fd = os.open(spot.name, READ | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=spot.directory)
        try:
            found = regular(fd, target.shown)
            return found, read_whole(fd, target.shown) if whole or found.st_size <= MAX_TEXT else None
        finally:
            os.close(fd)


def _is_as_seen(sight: Sight, found: os.stat_result, version: str) -> bool:
    """By its bytes if they are known, else by its stamp, which a quick change may leave as it was."""
    return sight.version == version if sight.version and version else sight.stamp == stamp_of(found)


def _told(shown: str, operation: str, before: str, after: str, size: int) -> Written:
    from ostler.text.diff import unified

    change = unified(before, after, shown, max_lines=DIFF_LINES)
    return Written(shown, operation, size, change.additions, change.deletions, change.text, change.cut)  # type: ignore[arg-type]  # one of the operations


def _as_text(shown: str, raw: bytes | None) -> TextFile | None:
    try:
        return as_text(shown, raw) if raw is not None else None
    except PathRefused:
        return None


def _executable(mode: int, wanted: bool | None) -> int:
    """A mode with leave to execute for all who may read, or for nobody."""
    if wanted is None:
        return mode
    return mode | (mode & 0o444) >> 2 if wanted else mode & ~0o111


def _chmod(spot: Spot, mode: int) -> None:
    fd = os.open(spot.name, READ | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=spot.directory)
    try:
        os.fchmod(fd, mode)
    finally:
        os.close(fd)


def _is_directory(jail: Jail, relative: str) -> bool:
    try:
        os.close(jail.open(relative, DIRECTORY))
    except FileNotFoundError:
        return False
    return True


def _remove_directory(jail: Jail, relative: str) -> None:
    with jail.entry(relative) as spot:
        os.rmdir(spot.name, dir_fd=spot.directory)
