"""Local implementation of the `Workspace` protocol: every path is confined, every change is locked."""

import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from ostler.core.commands import CommandRequest, CommandResult
from ostler.core.errors import ToolError
from ostler.core.protocols import DirectoryEntry, FileChange, PathInfo, ResolvedPath, TextFile, WriteResult
from ostler.workspace import file_operations, listing
from ostler.workspace.file_reading import STAT_FLAGS, read_all, read_up_to, stat_regular, to_text_file, version_of
from ostler.workspace.gitignore import IgnoreRules
from ostler.workspace.jail import DIRECTORY_FLAGS
from ostler.workspace.path_access import PathAccess, path_errors
from ostler.workspace.path_errors import outside_error
from ostler.workspace.paths import escape_path, split_path
from ostler.workspace.read_tracker import ReadTracker, ReadVersion, stamp_of
from ostler.workspace.rw_lock import ReadWriteLock, run_in_thread
from ostler.workspace.text_save import WriteTarget, save

if TYPE_CHECKING:
    from ostler.workspace.change_steps import ResolvedChange

THREADED_READ_BYTES = 1024 * 1024
MAX_FILES = 100_000
T = TypeVar("T")
BeforeChange = Callable[[Sequence[str]], Awaitable[None]]  # gets the relative paths that are about to change
RunCommand = Callable[[CommandRequest], Awaitable[CommandResult]]


class LocalWorkspace:
    """A workspace in a folder of this machine."""

    def __init__(
        self, root: str, *, run: RunCommand | None = None, read_anywhere: bool = False, without_openat2: bool = False
    ) -> None:
        self._access = PathAccess(root, read_anywhere=read_anywhere, without_openat2=without_openat2)
        self._run = run
        self._read_tracker = ReadTracker()
        self._lock = ReadWriteLock()
        self.before_change: BeforeChange | None = None

    @property
    def root(self) -> str:
        return self._access.jail.root

    def close(self) -> None:
        """Close the root directory."""
        self._access.close()

    def exclusive(self) -> AbstractAsyncContextManager[None]:
        """Hold the write lock, so that reads and writes form one operation."""
        return self._lock.writing()

    def resolve(self, path: str) -> ResolvedPath:
        """Resolve a path, following all symlinks, without opening it."""
        return self._access.resolve(path)

    def grant_read(self, path: str) -> None:
        """Allow reading a file outside the workspace that the user named."""
        self._access.grant_file(path)

    def grant_folders(self, paths: Sequence[str]) -> None:
        """Allow reading folders outside the workspace that were named when the session was opened."""
        for path in paths:
            self._access.grant_folder(path)

    async def read_text(self, path: str) -> TextFile:
        """Read and decode a file, and record its version as read."""
        real_path, display_path, _ = self._access.locate(path)
        file, version = await self._load(path, real_path, display_path)
        self._read_tracker.record(real_path, version, file.text)
        return file

    async def read_for_edit(self, path: str) -> TextFile:
        """Read a file in order to edit it, without recording it as read. Raises if it changed since the last read."""
        real_path, display_path, _ = self._access.locate(path)
        file, current = await self._load(path, real_path, display_path)
        last = self._read_tracker.get(real_path)
        if last is not None and not last.is_same(current.version, current.stamp):
            raise self._read_tracker.stale_error(real_path, file.path, file, file.size)
        return file

    async def _load(self, path: str, real_path: str, display_path: str) -> tuple[TextFile, ReadVersion]:
        last = self._read_tracker.get(real_path)
        preferred = last.encoding if last else ""
        async with self._lock.reading():
            with self._access.open_for_reading(path) as fd, path_errors(path):
                found = stat_regular(fd, display_path)

                def load() -> TextFile:
                    return to_text_file(display_path, read_all(fd, display_path), preferred)

                file = load() if found.st_size <= THREADED_READ_BYTES else await run_in_thread(load)
        return file, ReadVersion(file.version, file.encoding, file.size, stamp_of(found))

    async def read_bytes(self, path: str, limit: int) -> bytes:
        """Return the first `limit` bytes of a file. A completely read file is recorded as read."""
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
                self._access.locate(path)[0], ReadVersion(version_of(raw), "", len(raw), stamp_of(found))
            )
        return raw

    async def write_text(self, path: str, text: str) -> WriteResult:
        """Replace a file atomically, keeping its encoding. Raises if it changed since it was last read here."""
        target = self._target(path)
        work = partial(save, self._access.jail, self._read_tracker, target, text)
        return await self._run_exclusive(path, work, [target.real_path])

    async def apply(self, changes: Sequence[FileChange], *, dry_run: bool = False) -> Sequence[WriteResult]:
        """Apply all changes or none. A dry run validates them and returns what they would do."""
        from ostler.workspace.transaction import apply_changes  # imported late: only needed for changes

        resolved = [self._resolve_change(change) for change in changes]
        work = partial(apply_changes, self._access.jail, self._read_tracker, resolved, dry_run=dry_run)
        targets = [target for each in resolved for target in (each.target, each.new_target) if target]
        return await self._run_exclusive(".", work, [] if dry_run else [target.real_path for target in targets])

    async def append_bytes(self, path: str, data: bytes) -> int:
        """Append bytes, sync them to disk and return the new size."""
        target = self._target(path)
        work = partial(file_operations.append, self._access.jail, self._read_tracker, target, data)
        return await self._run_exclusive(path, work, [target.real_path])

    async def make_directory(self, path: str) -> bool:
        """Create a directory and its parents. Return False if it existed."""
        work = partial(file_operations.make_directory, self._access.jail, self._access.relative_path(path))
        return await self._run_exclusive(path, work, [self._access.locate(path)[0]])

    async def stat(self, path: str) -> PathInfo:
        """Return the metadata of a path."""
        with self._access.open_for_reading(path, STAT_FLAGS) as fd:
            found = os.fstat(fd)
        kind = listing.entry_kind(found.st_mode)
        return PathInfo(self.resolve(path).display_path, kind, found.st_size, found.st_mode & 0o7777, found.st_mtime)

    async def entries(self, path: str) -> Sequence[DirectoryEntry]:
        """Return the entries of a directory, sorted by name."""
        async with self._lock.reading():
            with self._access.open_for_reading(path, DIRECTORY_FLAGS) as fd, path_errors(path):
                return listing.list_entries(fd, path)

    def iter_files(
        self, path: str = ".", *, hidden: bool = False, folders: bool = False, limit: int = MAX_FILES
    ) -> Iterator[str]:
        """Yield at most `limit` files below a directory, as sorted paths relative to it, except git-ignored ones.

        With `folders`, directories are included (before their content, with a trailing slash) and symlinks (with two).
        """
        resolved = self.resolve(path)
        base = f"{resolved.display_path}/" if resolved.in_workspace and resolved.display_path != "." else ""
        rules = self._ignore_rules_above(base)
        with self._access.open_for_reading(path, DIRECTORY_FLAGS) as fd, path_errors(path):
            yield from listing.walk_files(fd, base, rules, hidden=hidden, folders=folders, limit=limit)

    async def run(self, request: CommandRequest) -> CommandResult:
        """Run a command, without the lock because it can take long. Raises `ToolError` if that is not supported."""
        if self._run is None:
            raise ToolError("commands are not supported in this workspace", code="no_shell")
        return await self._run(request)

    def _target(self, path: str) -> WriteTarget:
        relative = self._access.relative_path(path)
        real_path, display_path, inside = self._access.locate(path)
        if not inside:
            raise outside_error(path)
        return WriteTarget(display_path, real_path, relative)

    def _resolve_change(self, change: FileChange) -> "ResolvedChange":
        from ostler.workspace.change_steps import ResolvedChange

        target = self._entry_target(change.path) if change.delete or change.new_path else self._target(change.path)
        new_target = self._entry_target(change.new_path) if change.new_path else None
        return ResolvedChange(
            change, target, new_target, self._target(change.template_path) if change.template_path else None
        )

    def _entry_target(self, path: str) -> WriteTarget:
        """Return the target for a path whose last component is not followed if it is a symlink."""
        lexical = self._access.jail.relative_path(self._access.unescape(path))
        if lexical is None:
            raise outside_error(path)
        parent, name = split_path(lexical.rstrip("/"))
        real_path = f"{self._access.real_path(parent).rstrip('/')}/{name}"
        relative = real_path.removeprefix(f"{self.root.rstrip('/')}/")
        if relative.startswith("/"):
            raise outside_error(path)
        return WriteTarget(escape_path(relative), real_path, relative)

    def _ignore_rules_above(self, base: str) -> IgnoreRules:
        """Return the ignore rules from the directories above `base`."""
        rules = IgnoreRules()
        for end in [index for index, char in enumerate(base) if char == "/"]:
            parent = base[: base.rfind("/", 0, end) + 1]
            with self._access.open_for_reading(parent or ".", DIRECTORY_FLAGS) as fd:
                rules = rules.for_subfolder(fd, parent)
        return rules

    async def can_commands_write(self) -> bool:
        """Return whether a command could change files of the workspace."""
        return self._run is not None

    def is_read_only_command(self, command: str) -> bool:
        """Return False: this workspace has no sandbox."""
        return False

    async def _prepare_change(self, real_paths: Sequence[str]) -> None:
        """Let `before_change` save what is there. Paths outside are left out; changing them fails anyway."""
        inside = f"{self.root.rstrip('/')}/"
        paths = [path.removeprefix(inside) for path in real_paths if path.startswith(inside)]
        if self.before_change is not None and paths:
            await self.before_change(paths)

    async def _run_exclusive(self, path: str, work: Callable[[], T], changed: Sequence[str]) -> T:
        """Run work that changes the resolved paths `changed`."""
        async with self._lock.writing():
            await self._prepare_change(changed)
            with path_errors(path):
                return await run_in_thread(work)
