"""The workspace of a session: every file goes through one jail, every change through one lock."""

import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import msgspec

from ostler.vocabulary.errors import ToolFailure
from ostler.vocabulary.seams import Entry, FileChange, Place, Ran, Running, TextFile, Written
from ostler.workspace import listing, moves
from ostler.workspace.files import STATE, as_text, read_up_to, read_whole, regular, version_of
from ostler.workspace.ignores import Ignores
from ostler.workspace.jail import DIRECTORY
from ostler.workspace.locks import ReadWriteLock, in_thread
from ostler.workspace.paths import escaped, resolved, split
from ostler.workspace.reach import Reach, refusals
from ostler.workspace.refusals import outside
from ostler.workspace.save import Target, save
from ostler.workspace.seen import Seen, Sight, stamp_of

if TYPE_CHECKING:
    from ostler.workspace.steps import Wish

LARGE = 1024 * 1024
MOST_FILES = 100_000
T = TypeVar("T")
Run = Callable[[Running], Awaitable[Ran]]


class Stat(msgspec.Struct, frozen=True):
    """What is known of a path without reading it; a link at its end is followed."""

    path: str
    kind: listing.Kind
    size: int
    mode: int
    modified: float


class Workspace:
    """A folder on this machine as a ground for tools."""

    def __init__(
        self, root: str, *, run: Run | None = None, read_anywhere: bool = False, by_hand: bool = False
    ) -> None:
        self._reach = Reach(root, read_anywhere=read_anywhere, by_hand=by_hand)
        self._run = run
        self._seen = Seen()
        self._lock = ReadWriteLock()

    @property
    def root(self) -> str:
        return self._reach.jail.root

    def close(self) -> None:
        """Let the root directory go."""
        self._reach.close()

    def reading(self) -> AbstractAsyncContextManager[None]:
        """Several reads as one: nobody writes through this ground meanwhile."""
        return self._lock.reading()

    def writing(self) -> AbstractAsyncContextManager[None]:
        """Reads and writes as one: nobody else uses this ground meanwhile."""
        return self._lock.writing()

    def place(self, path: str) -> Place:
        """Where a path leads, with every link followed, and nothing touched."""
        return self._reach.place(path)

    def grant_read(self, path: str) -> None:
        """Let one file outside be read, because a person named it."""
        self._reach.grant(path)

    def grant_folders(self, paths: Sequence[str]) -> None:
        """Let folders outside be read, because whoever opened the session named them."""
        for path in paths:
            self._reach.grant_folder(path)

    async def read_text(self, path: str) -> TextFile:
        """A whole text, remembered as seen."""
        where, shown, _ = self._reach.locate(path)
        file, sight = await self._load(path, where, shown)
        self._seen.note(where, sight, file.text)
        return file

    async def read_to_change(self, path: str) -> TextFile:
        """A text that is to be changed: refused when it changed since it was last read, and not remembered as seen."""
        where, shown, _ = self._reach.locate(path)
        file, now = await self._load(path, where, shown)
        sight = self._seen.get(where)
        if sight is not None and (sight.version != now.version if sight.version else sight.stamp != now.stamp):
            raise self._seen.stale(where, file.path, file, file.size)
        return file

    async def _load(self, path: str, where: str, shown: str) -> tuple[TextFile, Sight]:
        sight = self._seen.get(where)
        prefer = sight.encoding if sight else ""
        async with self._lock.reading():
            with self._reach.reading(path) as fd, refusals(path):
                found = regular(fd, shown)

                def load() -> TextFile:
                    return as_text(shown, read_whole(fd, shown), prefer)

                file = load() if found.st_size <= LARGE else await in_thread(load)
        return file, Sight(file.version, file.encoding, file.size, stamp_of(found))

    async def read_bytes(self, path: str, limit: int) -> bytes:
        """The first bytes of a file; when they are all, the file counts as seen."""
        async with self._lock.reading():
            with self._reach.reading(path) as fd, refusals(path):
                found = regular(fd, path)
                raw = await in_thread(lambda: read_up_to(fd, limit)) if limit > LARGE else read_up_to(fd, limit)
        if len(raw) >= found.st_size:
            self._seen.note(self._where(path), Sight(version_of(raw), "", len(raw), stamp_of(found)))
        return raw

    async def write_text(self, path: str, text: str, *, base: str | None = None) -> Written:
        """Whole and at once, in the file's own form; refused when it is not as last read (or not of version `base`)."""
        target = self._target(path, base)
        return await self._change(path, lambda: save(self._reach.jail, self._seen, target, text))

    async def apply(self, changes: Sequence[FileChange], *, dry_run: bool = False) -> Sequence[Written]:
        """All changes or none; a dry run refuses what would be refused and tells what would be done."""
        from ostler.workspace.together import make_together  # only who changes something pays for it

        wishes = [self._wish(change) for change in changes]
        work = partial(make_together, self._reach.jail, self._seen, wishes, really=not dry_run)
        return await self._change(".", work)

    async def append_bytes(self, path: str, data: bytes) -> int:
        """Bytes at the end of a file, on disk when this returns; the size it has then."""
        target = self._target(path)
        return await self._change(path, lambda: moves.append(self._reach.jail, self._seen, target, data))

    async def make_directory(self, path: str) -> bool:
        """A directory with its parents; False when it was there."""
        relative = self._reach.relative(path)
        return await self._change(path, lambda: moves.make_directory(self._reach.jail, relative))

    async def delete(self, path: str) -> None:
        """A file, a link (not what it leads to) or an empty directory, gone."""
        target = self._name(path)
        await self._change(path, lambda: moves.delete(self._reach.jail, self._seen, target))

    async def rename(self, path: str, new: str) -> None:
        """A file, link or directory under another name that was free."""
        old, free = self._name(path), self._name(new)
        await self._change(path, lambda: moves.rename(self._reach.jail, self._seen, old, free))

    async def stat(self, path: str) -> Stat:
        """What is known of a path without reading it."""
        with self._reach.reading(path, STATE) as fd:
            found = os.fstat(fd)
        kind = listing.kind_of(found.st_mode)
        return Stat(self.place(path).shown, kind, found.st_size, found.st_mode & 0o7777, found.st_mtime)

    async def entries(self, path: str) -> Sequence[Entry]:
        """What a directory holds, by name."""
        async with self._lock.reading():
            with self._reach.reading(path, DIRECTORY) as fd, refusals(path):
                return listing.entries(fd, path)

    def iter_files(
        self, path: str = ".", *, hidden: bool = False, folders: bool = False, most: int = MOST_FILES
    ) -> Iterator[str]:
        """The files below a directory as paths from it, sorted, without what git ignores; at most so many.

        With `folders` the directories come too, each before what it holds, with a slash at its end; links with two.
        """
        place = self.place(path)
        base = f"{place.shown}/" if place.inside and place.shown != "." else ""
        rules = self._ignores_above(base)
        with self._reach.reading(path, DIRECTORY) as fd, refusals(path):
            yield from listing.walk_files(fd, base, rules, hidden=hidden, folders=folders, most=most)

    async def run(self, running: Running) -> Ran:
        """A command, by whoever runs commands for this ground; it takes no lock, for it may run long."""
        if self._run is None:
            raise ToolFailure("this workspace runs no commands", code="no_shell")
        return await self._run(running)

    def _where(self, path: str) -> str:
        """Where a file really is; the key under which it is remembered."""
        return resolved(self._reach.meant(path), self.root)

    def _target(self, path: str, base: str | None = None) -> Target:
        relative = self._reach.relative(path)
        where, shown, inside = self._reach.locate(path)
        if not inside:
            raise outside(path)
        return Target(shown, where, relative, base)

    def _wish(self, change: FileChange) -> "Wish":
        from ostler.workspace.steps import Wish

        target = self._name(change.path) if change.delete or change.to else self._target(change.path)
        goal = self._name(change.to) if change.to else None
        return Wish(change, target, goal, self._target(change.like) if change.like else None)

    def _name(self, path: str) -> Target:
        """A path whose last name is meant itself, also when it is a link."""
        relative = self._reach.relative(path).rstrip("/")
        above, name = split(relative)
        where = f"{resolved(above, self.root)}/{name}"
        return Target(escaped(where.removeprefix(f"{self.root}/")), where, relative)

    def _ignores_above(self, base: str) -> Ignores:
        """The rules that directories above one state for it."""
        rules = Ignores()
        for end in [at for at, c in enumerate(base) if c == "/"]:
            above = base[: base.rfind("/", 0, end) + 1]
            with self._reach.reading(above or ".", DIRECTORY) as fd:
                rules = rules.below(fd, above)
        return rules

    async def _change(self, path: str, work: Callable[[], T]) -> T:
        async with self._lock.writing():
            with refusals(path):
                return await in_thread(work)
