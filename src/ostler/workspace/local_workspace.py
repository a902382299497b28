"""The workspace of a session: every file goes through one jail, every change through one lock."""

import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import msgspec

from ostler.core.errors import ToolError
from ostler.core.protocols import (
    CommandRequest,
    CommandResult,
    DirectoryEntry,
    FileChange,
    ResolvedPath,
    TextFile,
    WriteResult,
)
from ostler.workspace import file_operations, listing
from ostler.workspace.file_reading import STAT_FLAGS, read_all, read_up_to, stat_regular, to_text_file, version_of
from ostler.workspace.gitignore import IgnoreRules
from ostler.workspace.jail import DIRECTORY_FLAGS
from ostler.workspace.path_access import PathAccess, path_errors
from ostler.workspace.path_errors import outside_error
from ostler.workspace.paths import escape_path, resolve_path, split_path
from ostler.workspace.read_tracker import ReadTracker, ReadVersion, stamp_of
from ostler.workspace.rw_lock import ReadWriteLock, run_in_thread
from ostler.workspace.text_save import WriteTarget, save

if TYPE_CHECKING:
    from ostler.workspace.change_steps import ResolvedChange

THREADED_READ_BYTES = 1024 * 1024
MAX_FILES = 100_000
T = TypeVar("T")
RunCommand = Callable[[CommandRequest], Awaitable[CommandResult]]


class PathStat(msgspec.Struct, frozen=True):
    """What is known of a path without reading it; a link at its end is followed."""

    path: str
    kind: listing.EntryKind
    size: int
    mode: int
    modified: float


class LocalWorkspace:
    """A folder on this machine as a ground for tools."""

    def __init__(
        self, root: str, *, run: RunCommand | None = None, read_anywhere: bool = False, without_openat2: bool = False
    ) -> None:
        self._access = PathAccess(root, read_anywhere=read_anywhere, without_openat2=without_openat2)
        self._run = run
        self._read_tracker = ReadTracker()
        self._lock = ReadWriteLock()

    @property
    def root(self) -> str:
        return self._access.jail.root

    def close(self) -> None:
        """Let the root directory go."""
        self._access.close()

    def shared(self) -> AbstractAsyncContextManager[None]:
        """Several reads as one: nobody writes through this ground meanwhile."""
        return self._lock.reading()

    def exclusive(self) -> AbstractAsyncContextManager[None]:
        """Reads and writes as one: nobody else uses this ground meanwhile."""
        return self._lock.writing()

    def resolve(self, path: str) -> ResolvedPath:
        """Where a path leads, with every link followed, and nothing touched."""
        return self._access.resolve(path)

    def grant_read(self, path: str) -> None:
        """Let one file outside be read, because a person named it."""
        self._access.grant_file(path)

    def grant_folders(self, paths: Sequence[str]) -> None:
        """Let folders outside be read, because whoever opened the session named them."""
        for path in paths:
            self._access.grant_folder(path)

    async def read_text(self, path: str) -> TextFile:
        """A whole text, remembered as seen."""
        where, shown, _ = self._access.locate(path)
        file, sight = await self._load(path, where, shown)
        self._read_tracker.record(where, sight, file.text)
        return file

    async def read_for_edit(self, path: str) -> TextFile:
        """A text that is to be changed: refused when it changed since it was last read, and not remembered as seen."""
        where, shown, _ = self._access.locate(path)
        file, now = await self._load(path, where, shown)
        sight = self._read_tracker.get(where)
        if sight is not None and (sight.version != now.version if sight.version else sight.stamp != now.stamp):
            raise self._read_tracker.stale_error(where, file.path, file, file.size)
        return file

    async def _load(self, path: str, real_path: str, display_path: str) -> tuple[TextFile, ReadVersion]:
        sight = self._read_tracker.get(real_path)
        prefer = sight.encoding if sight else ""
        async with self._lock.reading():
            with self._access.open_for_reading(path) as fd, path_errors(path):
                found = stat_regular(fd, display_path)

                def load() -> TextFile:
                    return to_text_file(display_path, read_all(fd, display_path), prefer)

                file = load() if found.st_size <= THREADED_READ_BYTES else await run_in_thread(load)
        return file, ReadVersion(file.version, file.encoding, file.size, stamp_of(found))

    async def read_bytes(self, path: str, limit: int) -> bytes:
        """The first bytes of a file; when they are all, the file counts as seen."""
        async with self._lock.reading():
            with self._access.open_for_reading(path) as fd, path_errors(path):
                found = stat_regular(fd, path)
                raw = (
                    await run_in_thread(lambda: read_up_to(fd, limit))
                    if limit > THREADED_READ_BYTES
                    else read_up_to(fd, limit)
                )
        if len(raw) >= found.st_size:
            self._read_tracker.record(
                self._real_path(path), ReadVersion(version_of(raw), "", len(raw), stamp_of(found))
            )
        return raw

    async def write_text(self, path: str, text: str, *, base_version: str | None = None) -> WriteResult:
        """Whole and at once, in the file's own form; refused when it is not as last read (or not of version `base`)."""
        target = self._target(path, base_version)
        return await self._run_exclusive(path, lambda: save(self._access.jail, self._read_tracker, target, text))

    async def apply(self, changes: Sequence[FileChange], *, dry_run: bool = False) -> Sequence[WriteResult]:
        """All changes or none; a dry run refuses what would be refused and tells what would be done."""
        from ostler.workspace.transaction import apply_changes  # only who changes something pays for it

        wishes = [self._resolve_change(change) for change in changes]
        work = partial(apply_changes, self._access.jail, self._read_tracker, wishes, commit=not dry_run)
        return await self._run_exclusive(".", work)

    async def append_bytes(self, path: str, data: bytes) -> int:
        """Bytes at the end of a file, on disk when this returns; the size it has then."""
        target = self._target(path)
        return await self._run_exclusive(
            path, lambda: file_operations.append(self._access.jail, self._read_tracker, target, data)
        )

    async def make_directory(self, path: str) -> bool:
        """A directory with its parents; False when it was there."""
        relative = self._access.relative_path(path)
        return await self._run_exclusive(path, lambda: file_operations.make_directory(self._access.jail, relative))

    async def delete(self, path: str) -> None:
        """A file, a link (not what it leads to) or an empty directory, gone."""
        target = self._entry_target(path)
        await self._run_exclusive(path, lambda: file_operations.delete(self._access.jail, self._read_tracker, target))

    async def rename(self, path: str, new_path: str) -> None:
        """A file, link or directory under another name that was free."""
        old, free = self._entry_target(path), self._entry_target(new_path)
        await self._run_exclusive(
            path, lambda: file_operations.rename(self._access.jail, self._read_tracker, old, free)
        )

    async def stat(self, path: str) -> PathStat:
        """What is known of a path without reading it."""
        with self._access.open_for_reading(path, STAT_FLAGS) as fd:
            found = os.fstat(fd)
        kind = listing.entry_kind(found.st_mode)
        return PathStat(self.resolve(path).display_path, kind, found.st_size, found.st_mode & 0o7777, found.st_mtime)

    async def entries(self, path: str) -> Sequence[DirectoryEntry]:
        """What a directory holds, by name."""
        async with self._lock.reading():
            with self._access.open_for_reading(path, DIRECTORY_FLAGS) as fd, path_errors(path):
                return listing.list_entries(fd, path)

    def iter_files(
        self, path: str = ".", *, hidden: bool = False, folders: bool = False, limit: int = MAX_FILES
    ) -> Iterator[str]:
        """The files below a directory as paths from it, sorted, without what git ignores; at most so many.

        With `folders` the directories come too, each before what it holds, with a slash at its end; links with two.
        """
        place = self.resolve(path)
        base = f"{place.display_path}/" if place.in_workspace and place.display_path != "." else ""
        rules = self._ignore_rules_above(base)
        with self._access.open_for_reading(path, DIRECTORY_FLAGS) as fd, path_errors(path):
            yield from listing.walk_files(fd, base, rules, hidden=hidden, folders=folders, limit=limit)

    async def run(self, request: CommandRequest) -> CommandResult:
        """A command, by whoever runs commands for this ground; it takes no lock, for it may run long."""
        if self._run is None:
            raise ToolError("this workspace runs no commands", code="no_shell")
        return await self._run(request)

    def _real_path(self, path: str) -> str:
        """Where a file really is; the key under which it is remembered."""
        return resolve_path(self._access.unescape(path), self.root)

    def _target(self, path: str, base_version: str | None = None) -> WriteTarget:
        relative = self._access.relative_path(path)
        where, shown, inside = self._access.locate(path)
        if not inside:
            raise outside_error(path)
        return WriteTarget(shown, where, relative, base_version)

    def _resolve_change(self, change: FileChange) -> "ResolvedChange":
        from ostler.workspace.change_steps import ResolvedChange

        target = self._entry_target(change.path) if change.delete or change.new_path else self._target(change.path)
        goal = self._entry_target(change.new_path) if change.new_path else None
        return ResolvedChange(
            change, target, goal, self._target(change.template_path) if change.template_path else None
        )

    def _entry_target(self, path: str) -> WriteTarget:
        """A path whose last name is meant itself, also when it is a link."""
        relative = self._access.relative_path(path).rstrip("/")
        above, name = split_path(relative)
        where = f"{resolve_path(above, self.root)}/{name}"
        return WriteTarget(escape_path(where.removeprefix(f"{self.root}/")), where, relative)

    def _ignore_rules_above(self, base: str) -> IgnoreRules:
        """The rules that directories above one state for it."""
        rules = IgnoreRules()
        for end in [at for at, c in enumerate(base) if c == "/"]:
            above = base[: base.rfind("/", 0, end) + 1]
            with self._access.open_for_reading(above or ".", DIRECTORY_FLAGS) as fd:
                rules = rules.for_subfolder(fd, above)
        return rules

    async def _run_exclusive(self, path: str, work: Callable[[], T]) -> T:
        async with self._lock.writing():
            with path_errors(path):
                return await run_in_thread(work)
