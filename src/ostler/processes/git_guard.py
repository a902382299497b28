"""Quarantines git settings and hooks that a sandboxed command created and that would run a program later.

A repository can make git run programs: by its settings, its hooks and pointers to other settings. A command that can
write to the workspace can create such a repository, and git would run these programs outside the sandbox at the user's
next `git status`. So changes are checked while commands run and when they have ended; harmless ones are kept.
"""

import asyncio
import contextlib
import os
import stat
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import TYPE_CHECKING

from ostler.processes.git_config import GitConfigUnreadable, GitSetting, format_config, is_safe_setting, read_settings
from ostler.processes.git_discovery import GitDirectoryScanner
from ostler.processes.git_exec_files import (
    QUARANTINE_SUFFIX,
    GitExecFile,
    GitExecFiles,
    containing_root,
    quarantine,
    read_exec_files,
)
from ostler.processes.other_vcs import is_safe_config

if TYPE_CHECKING:
    from ostler.processes.git_guard_marker import GuardMarker

_INTERVAL_SECONDS = 0.2
_PAUSE_FACTOR = 50  # pause between checks, as a multiple of the duration of a check
_MAX_NOTES = 20
_MAX_UNREADABLE = 50
_MAX_CONFIGS_READ = 1_000
CheckResult = tuple[str, bytes | None]


class GitGuard:
    """Guards the repositories below `roots`. Files in `locked_paths()` cannot have been changed by a command."""

    def __init__(self, roots: tuple[str, ...], locked_paths: Callable[[], tuple[str, ...]] = tuple) -> None:
        self._roots = roots
        self._locked_paths = locked_paths
        self._scanner = GitDirectoryScanner(roots)
        self._known: GitExecFiles = {}
        self._unreadable: set[str] = set()
        self._running = 0
        self.marker: GuardMarker | None = None
        self._scan_lock = asyncio.Lock()
        self._watch_task: asyncio.Task[None] | None = None
        self._notes: list[str] = []
        self._reported: set[str] = set()
        self._parsed_configs: dict[bytes, list[GitSetting]] = {}

    async def command_started(self) -> None:
        """Record that a command starts. If it is the first, the current files are trusted as the user's."""
        async with self._scan_lock:
            if self._running == 0:
                self._parsed_configs = {}
                self._known = await asyncio.to_thread(partial(self._scan, first=True))
                if self.marker:
                    self.marker.set(self._roots, self._known)
            self._running += 1
        if self._watch_task is None:
            self._watch_task = asyncio.create_task(self._watch_loop(), name="git guard")

    def restore_baseline(self, known: GitExecFiles) -> None:
        """Set the trusted files from before commands ran, as read from a marker."""
        self._known = known

    async def command_ended(self) -> None:
        """Check for changes after a command and all its processes have ended."""
        try:
            await self.check()
        finally:
            self._running -= 1
            if self._running == 0 and self._watch_task:
                self._watch_task.cancel()
                self._watch_task = None
            if self._running == 0 and self.marker:
                self.marker.clear()

    async def check(self) -> None:
        """Quarantine dangerous files that commands created or changed."""
        async with self._scan_lock:
            current = await asyncio.to_thread(self._scan)
            locked = self._locked_paths()
            known = {path: file for path, file in self._known.items() if path in current}
            for path, file in current.items():
                if file.is_same(self._known.get(path)) or containing_root(path, locked):
                    known[path] = file
                else:
                    await self._accept_or_quarantine(path, file, known)
            self._known = known

    @property
    def is_busy(self) -> bool:
        """Whether a command is running."""
        return self._running > 0

    def take_notes(self) -> list[str]:
        """Return and clear the notes since the last call."""
        notes, self._notes = self._notes, []
        return notes

    async def _watch_loop(self) -> None:
        pause = _INTERVAL_SECONDS
        while True:
            await asyncio.sleep(pause)
            started = time.monotonic()
            await self.check()
            pause = max(_INTERVAL_SECONDS, _PAUSE_FACTOR * (time.monotonic() - started))

    def _scan(self, *, first: bool = False) -> GitExecFiles:
        found = self._scanner.find()
        self._unreadable = found.unreadable if first else self._unreadable & found.unreadable
        for _ in range(_MAX_UNREADABLE):
            if not (newly_unreadable := found.unreadable - self._unreadable):
                break
            self._unreadable |= {path for path in newly_unreadable if not _reopen(path)}
            self._report(f"{min(newly_unreadable)} was made readable again, so that it can be checked")
            found = self._scanner.find()
        if not found.is_complete or found.unreadable - self._unreadable:
            self._report("too many folders to check them all for programs that git would run; be careful with git here")
        return read_exec_files(found, self._roots, self._known)

    async def _accept_or_quarantine(self, path: str, file: GitExecFile, known: GitExecFiles) -> None:
        """Trust a new file, or quarantine it and trust its replacement."""
        before = known.pop(path, None)
        reason, replacement = await self._check(path, file, before)
        if not reason:
            known[path] = file
            return
        mode = before.mode if before else file.mode
        try:
            await asyncio.to_thread(quarantine, path, self._roots, replacement, mode)
        except OSError as error:
            self._report(
                f"{path} ({reason}) could not be quarantined ({error.strerror}); remove it before you use git there"
            )
            return
        if replacement is not None:
            known[path] = GitExecFile(
                file.kind, (), mode & 0o777, replacement, points_to=before.points_to if before else ""
            )
        note = (
            f"{path} was quarantined (renamed, suffix {QUARANTINE_SUFFIX}): a command created or changed it,"
            f" and git would run a program because of it: {reason}"
        )
        self._reported.discard(note)
        self._report(note)

    def _report(self, note: str) -> None:
        note = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in note)
        if note not in self._reported and len(self._notes) < _MAX_NOTES:
            self._reported.add(note)
            self._notes.append(note)

    async def _check(self, path: str, file: GitExecFile, before: GitExecFile | None) -> CheckResult:
        """Return why a file is dangerous (empty if it is not), and the content to replace it with."""
        old_data = before.data if before else None
        if file.is_link:
            return "it is a symlink", old_data  # git might resolve it differently
        if file.kind == "hook":
            return "it is a new hook", old_data
        if file.kind == "other":
            return ("" if is_safe_config(file.data or b"-") else "it may run programs"), old_data
        if file.kind == "pointer":
            return ("" if containing_root(file.points_to, self._roots) else "it points outside the workspace"), old_data
        if file.kind == "common":
            return ("" if _is_worktree(path, file.data) else "it points to other settings"), old_data
        if file.data is None:
            return "it is not a regular file", old_data
        return await self._check_settings(path, file.data, old_data)

    async def _check_settings(self, path: str, data: bytes, old_data: bytes | None) -> CheckResult:
        try:
            pairs = await self._parse_config(data)
        except GitConfigUnreadable as error:
            return str(error), old_data
        try:
            old = set(await self._parse_config(old_data)) if old_data else set()
        except GitConfigUnreadable:
            old = set()

        def may_point_to(target: str) -> bool:
            return bool(containing_root(os.path.realpath(os.path.join(os.path.dirname(path), target)), self._roots))

        safe = [pair for pair in pairs if pair in old or is_safe_setting(*pair, may_point_to)]
        unsafe = sorted({key for key, value in pairs if (key, value) not in set(safe)})
        return f"it sets {', '.join(unsafe[:5])}" if unsafe else "", format_config(safe)

    async def _parse_config(self, data: bytes) -> list[GitSetting]:
        """Parse a config file, with a cache. Limited, because a command could create any number of files."""
        if data not in self._parsed_configs:
            if len(self._parsed_configs) >= _MAX_CONFIGS_READ:
                raise GitConfigUnreadable("there are too many new repositories to check")
            self._parsed_configs[data] = await read_settings(data, self._roots)
        return self._parsed_configs[data]


def _reopen(path: str) -> bool:
    """Make an own folder readable again. Return whether that worked."""
    try:
        fd = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.chmod(f"/proc/self/fd/{fd}", stat.S_IMODE(os.fstat(fd).st_mode) | 0o500)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


def _is_worktree(path: str, data: bytes | None) -> bool:
    """Return whether a `commondir` file is that of a worktree, which points to its own repository."""
    return data == b"../..\n" and os.path.basename(os.path.dirname(os.path.dirname(path))) == "worktrees"


@contextlib.asynccontextmanager
async def guard_command(guard: GitGuard | None) -> AsyncIterator[None]:
    """Guard the repositories while a command runs, and check them when it has ended."""
    if guard is None:
        yield
        return
    await guard.command_started()
    try:
        yield
    finally:
        await asyncio.shield(guard.command_ended())
