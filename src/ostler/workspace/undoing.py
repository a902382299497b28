"""A way back: what a turn changed is put as it was, unless somebody has changed it since."""

import os
import stat
from collections.abc import Callable, Iterable

import msgspec

from ostler.workspace import writing
from ostler.workspace.census import LARGEST, PIPE, Item
from ostler.workspace.changes import Gap, Undone, UndoPlan
from ostler.workspace.contents import Contents, MissingError, digest_of
from ostler.workspace.files import READ, read_up_to
from ostler.workspace.hardlinks import all_names_inside
from ostler.workspace.jail import DIRECTORY, Jail, Spot
from ostler.workspace.ledger import UNSURE, Change, same
from ostler.workspace.paths import escaped, split

Action = Callable[["Step"], str]

_ELSEWHERE = Item(-1, -1, -1, 0, b"")  # like nothing a turn could have left


class Step(msgspec.Struct, frozen=True):
    """One path: what must stand there now, and what shall."""

    path: str
    expected: Item | None
    wanted: Item | None

    @property
    def removes(self) -> bool:
        """Whether what stands there must go first: for good, or because a thing of another kind takes its place."""
        if self.expected is None:
            return False
        return self.wanted is None or stat.S_IFMT(self.expected.mode) != stat.S_IFMT(self.wanted.mode)


def steps_of(changes: Iterable[Change], direction: str) -> list[Step]:
    """The steps back before a turn, or forth again."""
    if direction == "undo":
        return [Step(change.path, change.after, change.before) for change in changes]
    return [Step(change.path, change.before, change.after) for change in changes if change.after != UNSURE]


class WayBack:
    """Carries out steps under a root, with contents from a shelf."""

    def __init__(self, jail: Jail, contents: Contents) -> None:
        self._jail = jail
        self._contents = contents

    def plan(self, plan: UndoPlan, steps: list[Step]) -> UndoPlan:
        """What the steps would do, as things stand."""
        restore: list[str] = []
        delete: dict[str, Step] = {}
        conflicts: list[Gap] = []
        uncovered: list[Gap] = []
        making_way: set[str] = set()  # files and links where a directory shall be: nothing is below them yet
        for step in steps:
            now = None if _below(step.path, making_way) else self._observe(step.path, step.expected)
            if same(now, step.wanted):
                continue
            if not same(now, step.expected):
                conflicts.append(Gap(escaped(step.path), _what_happened(now, step.expected)))
            elif step.wanted is None:
                delete[step.path] = step
            elif not step.wanted.content and stat.S_ISREG(step.wanted.mode):
                uncovered.append(Gap(escaped(step.path), "its content was not kept"))
            else:
                restore.append(escaped(step.path))
                if step.removes and step.wanted.is_directory:
                    making_way.add(step.path)
                if step.wanted.is_directory and step.wanted.content:
                    uncovered.append(Gap(escaped(step.path), "what it held was not kept"))
        for path in self._not_empty(delete):
            conflicts.append(Gap(escaped(path), "it holds files that the turn did not make, or that are not covered"))
        gone = tuple(escaped(path) for path in delete)
        return msgspec.structs.replace(
            plan, restore=tuple(restore), delete=gone, conflicts=tuple(conflicts), uncovered=tuple(uncovered)
        )

    def carry_out(self, steps: list[Step]) -> Undone:
        """Take the steps: what must go goes first, deepest first; then all else, from the top down."""
        restored: list[str] = []
        deleted: list[str] = []
        left: list[Gap] = []
        given, steps = steps, self._open_up(steps)
        unlocked = self._unlock({split(step.path)[0] for step in steps} - {step.path for step in steps})
        for step in reversed(steps):
            if step.removes and self._try(self._remove, step, left) and step.wanted is None:
                deleted.append(escaped(step.path))
        blocked = {gap.path for gap in left}
        for step in steps:
            if step.wanted is not None and escaped(step.path) not in blocked and self._try(self._restore, step, left):
                restored.append(escaped(step.path))
        self._close_up(given)
        for path, mode in unlocked.items():
            self._chmod(path, mode)
        return Undone(tuple(restored), tuple(reversed(deleted)), tuple(left))

    def _try(self, action: Action, step: Step, left: list[Gap]) -> bool:
        try:
            why = action(step)
        except MissingError:
            why = "its content is no longer in the store"
        except OSError as error:
            why = f"the operating system reports: {os.strerror(error.errno or 0)}"
        except writing.ChangedMeanwhileError:
            why = "it was changed at this very moment"
        if why:
            left.append(Gap(escaped(step.path), why))
        return not why

    def _remove(self, step: Step) -> str:
        if not same(self._observe(step.path, step.expected), step.expected):
            return "it was changed since the turn"
        with self._spot(step.path) as spot:
            if step.expected is not None and step.expected.is_directory:
                os.rmdir(spot.name, dir_fd=spot.directory)
            else:
                os.unlink(spot.name, dir_fd=spot.directory)
        return ""

    def _restore(self, step: Step) -> str:
        wanted, expected = step.wanted, None if step.removes else step.expected
        assert wanted is not None
        now = self._observe(step.path, expected)
        if same(now, wanted):
            return ""
        if not same(now, expected):
            return "it was changed since the turn"
        with self._spot(step.path, create=True) as spot:
            if wanted.is_directory:
                if now is None:
                    # As it shall be, as far as we can still write in it: should we be killed, the next undo goes on.
                    os.mkdir(spot.name, 0o700, dir_fd=spot.directory)
                    self._chmod(step.path, wanted.mode | 0o700)
            elif stat.S_ISLNK(wanted.mode):
                if now is not None:
                    os.unlink(spot.name, dir_fd=spot.directory)
                os.symlink(os.fsdecode(wanted.content), spot.name, dir_fd=spot.directory)
            elif stat.S_ISFIFO(wanted.mode):
                self._make_pipe(spot, wanted)
            else:
                self._write(spot, wanted)
        return ""

    def _make_pipe(self, spot: Spot, wanted: Item) -> None:
        if spot.stat() is not None:
            os.unlink(spot.name, dir_fd=spot.directory)
        os.mkfifo(spot.name, 0o600, dir_fd=spot.directory)
        os.chmod(spot.name, wanted.mode & 0o7777, dir_fd=spot.directory)

    def _write(self, spot: Spot, wanted: Item) -> None:
        """Not synced: there may be many, and what is lost in a crash is still on the shelf."""
        data = self._contents.get(wanted.content)
        mode = wanted.mode & 0o7777
        found = spot.stat()
        if found is None:
            writing.create(spot, data, mode, sync=False)
            return
        before = self._bytes(spot)
        # Other names of the file it was then share what it was; those of another file must not change with it.
        if found.st_nlink > 1 and found.st_ino == wanted.inode and all_names_inside(self._jail, found):
            writing.overwrite(spot, data, before, mode)
        else:
            writing.replace(spot, data, before, found, mode, sync=False)

    def _open_up(self, steps: list[Step]) -> list[Step]:
        """Let us into directories whose own mode is part of the change, as long as it takes; the steps from there."""
        return [self._opened(step) for step in steps]

    def _opened(self, step: Step) -> Step:
        expected = step.expected
        if expected is None or not expected.is_directory or same(expected, step.wanted):
            return step
        mode = expected.mode | 0o700
        if mode == expected.mode or not same(self._observe(step.path, expected), expected):
            return step
        self._chmod(step.path, mode)
        return msgspec.structs.replace(step, expected=expected._replace(mode=mode))

    def _unlock(self, paths: set[str]) -> dict[str, int]:
        """Let us write in directories that were read-only and stay so; the mode each has to get back."""
        found: dict[str, int] = {}
        for path in paths:
            now = self._observe(path, None) if path != "." else None
            if now is not None and now.is_directory and not now.mode & stat.S_IWUSR:
                found[path] = now.mode
                self._chmod(path, now.mode | 0o700)
        return found

    def _close_up(self, steps: list[Step]) -> None:
        """Give every directory the mode it shall have; one that stays gets back its own."""
        for step in reversed(steps):
            for item in (step.wanted, step.expected):
                if item is not None and item.is_directory:
                    self._chmod(step.path, item.mode)
                    break

    def _chmod(self, path: str, mode: int) -> None:
        try:
            fd = self._jail.open_plain(path, DIRECTORY)
        except OSError:
            return
        try:
            os.fchmod(fd, mode & 0o7777)
        except OSError:
            pass
        finally:
            os.close(fd)

    def _observe(self, path: str, like: Item | None) -> Item | None:
        """What stands at a path now; the content only if it would tell something."""
        try:
            with self._spot(path) as spot:
                found = spot.stat()
                return None if found is None else self._item(spot, found, like)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:
            return _ELSEWHERE

    def _item(self, spot: Spot, found: os.stat_result, like: Item | None) -> Item:
        content = b""
        if stat.S_ISLNK(found.st_mode):
            content = os.fsencode(os.readlink(spot.name, dir_fd=spot.directory))
        elif stat.S_ISFIFO(found.st_mode):
            content = PIPE
        elif stat.S_ISREG(found.st_mode) and found.st_size <= LARGEST and (like is None or like.content):
            content = digest_of(self._bytes(spot))
        return Item(found.st_ctime_ns, found.st_ino, found.st_size, found.st_mode, content)

    def _bytes(self, spot: Spot) -> bytes:
        fd = os.open(spot.name, READ | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=spot.directory)
        try:
            return read_up_to(fd, os.fstat(fd).st_size + 1)
        finally:
            os.close(fd)

    def _spot(self, path: str, *, create: bool = False) -> Spot:
        """A path without any link in it: a directory that became a link since is another place."""
        above, name = split(path)
        return Spot(self._parent(above, create), name, path)

    def _parent(self, path: str, create: bool) -> int:
        missing: list[str] = []
        while True:
            try:
                fd = self._jail.open_plain(path, DIRECTORY)
                break
            except FileNotFoundError:
                if not create:
                    raise
                path, name = split(path)
                missing.append(name)
        for name in reversed(missing):
            try:
                os.mkdir(name, dir_fd=fd)
                below = os.open(name, DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
            finally:
                os.close(fd)
            fd = below
        return fd

    def _not_empty(self, delete: dict[str, Step]) -> list[str]:
        """The directories to delete that hold something else as well; taken out of what is to be deleted."""
        kept: list[str] = []
        for path in sorted(delete, reverse=True):
            expected = delete[path].expected
            if expected is None or not expected.is_directory:
                continue
            try:
                fd = self._jail.open_plain(path, DIRECTORY)
            except OSError:
                continue
            try:
                if any(f"{path}/{name}" not in delete for name in os.listdir(fd)):
                    kept.append(path)
                    del delete[path]
            finally:
                os.close(fd)
        return kept


def _below(path: str, folders: set[str]) -> bool:
    return any(path[:at] in folders for at, letter in enumerate(path) if letter == "/") if folders else False


def _what_happened(now: Item | None, expected: Item | None) -> str:
    if expected == UNSURE:
        return "the turn was cut off at that time, so that it may be its work or yours"
    if now is None:
        return "it was deleted since the turn"
    return "it was changed since the turn" if expected is not None else "something was put there since the turn"
