"""Keeps commands from making git outside the sandbox run a program: what would do that is set aside, and told.

A repository names programs: in its settings, by its hooks, by pointers to other settings. Whoever may write in a
workspace may make a repository there, and git believes it when a person next asks for its status. So what came to be
while commands ran is looked at, as they run and when they have ended. What git needs and runs nothing stays.
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
_PAUSE_FACTOR = 50  # looking takes at most one part in so many of the time
_MAX_NOTES = 20
_MAX_UNREADABLE = 50
_MAX_CONFIGS_READ = 1_000
CheckResult = tuple[str, bytes | None]


class GitGuard:
    """The repositories in some folders; what is `locked` at a moment no command can have changed until then."""

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
        """A command is about to start. When none runs, whatever there is is a person's, and stays."""
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
        """Commands have run since this was so, whoever kept it."""
        self._known = known

    async def command_ended(self) -> None:
        """A command has ended, with all it started."""
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
        """Set aside what commands made."""
        async with self._scan_lock:
            now = await asyncio.to_thread(self._scan)
            locked = self._locked_paths()
            known = {path: piece for path, piece in self._known.items() if path in now}
            for path, piece in now.items():
                if piece.is_same(self._known.get(path)) or containing_root(path, locked):
                    known[path] = piece
                else:
                    await self._accept_or_quarantine(path, piece, known)
            self._known = known

    @property
    def is_busy(self) -> bool:
        """Whether a command runs."""
        return self._running > 0

    def take_notes(self) -> list[str]:
        """What there is to tell since it was last asked for."""
        notes, self._notes = self._notes, []
        return notes

    async def _watch_loop(self) -> None:
        pause = _INTERVAL_SECONDS
        while True:
            await asyncio.sleep(pause)
            began = time.monotonic()
            await self.check()
            pause = max(_INTERVAL_SECONDS, _PAUSE_FACTOR * (time.monotonic() - began))

    def _scan(self, *, first: bool = False) -> GitExecFiles:
        found = self._scanner.find()
        self._unreadable = found.unreadable if first else self._unreadable & found.unreadable
        for _ in range(_MAX_UNREADABLE):
            if not (shut := found.unreadable - self._unreadable):
                break
            self._unreadable |= {path for path in shut if not _reopen(path)}
            self._report(f"{min(shut)} was opened again, for git finds its way in folders that cannot be listed")
            found = self._scanner.find()
        if not found.is_complete or found.unreadable - self._unreadable:
            self._report("there are too many folders here to look in each for what git would run; mind that")
        return read_exec_files(found, self._roots, self._known)

    async def _accept_or_quarantine(self, path: str, file: GitExecFile, known: GitExecFiles) -> None:
        """Take a new piece as known, or set it aside and take what stands there instead as known."""
        before = known.pop(path, None)
        why, instead = await self._check(path, file, before)
        if not why:
            known[path] = file
            return
        mode = before.mode if before else file.mode
        try:
            await asyncio.to_thread(quarantine, path, self._roots, instead, mode)
        except OSError as error:
            self._report(
                f"{path} ({why}) could not be set aside ({error.strerror}): remove it before you use git there"
            )
            return
        if instead is not None:
            known[path] = GitExecFile(
                file.kind, (), mode & 0o777, instead, points_to=before.points_to if before else ""
            )
        note = f"{path} was set aside, with {QUARANTINE_SUFFIX} at its end, for it would make git run what a command chose: {why}"
        self._reported.discard(note)
        self._report(note)

    def _report(self, note: str) -> None:
        note = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in note)
        if note not in self._reported and len(self._notes) < _MAX_NOTES:
            self._reported.add(note)
            self._notes.append(note)

    async def _check(self, path: str, file: GitExecFile, before: GitExecFile | None) -> CheckResult:
        """Why it may not stay, empty if it may; and what is to stand there instead."""
        was = before.data if before else None
        if file.is_link:
            return "it is a link", was  # it may lead git elsewhere than us
        if file.kind == "hook":
            return "it is a new hook", was
        if file.kind == "other":
            return ("" if is_safe_config(file.data or b"-") else "it may name programs"), was
        if file.kind == "pointer":
            return ("" if containing_root(file.points_to, self._roots) else "it leads out of the workspace"), was
        if file.kind == "common":
            return ("" if _is_worktree(path, file.data) else "it leads to other settings"), was
        if file.data is None:
            return "it is no plain file", was
        return await self._check_settings(path, file.data, was)

    async def _check_settings(self, path: str, data: bytes, old_data: bytes | None) -> CheckResult:
        try:
            pairs = await self._parse_config(data)
        except GitConfigUnreadable as error:
            return str(error), old_data
        try:
            old = set(await self._parse_config(old_data)) if old_data else set()
        except GitConfigUnreadable:
            old = set()

        def may_lead_to(place: str) -> bool:
            return bool(containing_root(os.path.realpath(os.path.join(os.path.dirname(path), place)), self._roots))

        good = [pair for pair in pairs if pair in old or is_safe_setting(*pair, may_lead_to)]
        bad = sorted({key for key, value in pairs if (key, value) not in set(good)})
        return f"it sets {', '.join(bad[:5])}" if bad else "", format_config(good)

    async def _parse_config(self, data: bytes) -> list[GitSetting]:
        """What some settings say; a thousand new files are read, not more: whoever makes them has all the time."""
        if data not in self._parsed_configs:
            if len(self._parsed_configs) >= _MAX_CONFIGS_READ:
                raise GitConfigUnreadable("there are too many new repositories to look at each")
            self._parsed_configs[data] = await read_settings(data, self._roots)
        return self._parsed_configs[data]


def _reopen(path: str) -> bool:
    """Whether a folder that was shut to us, its owner, is open again."""
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
    """A worktree's own folder leads to the repository it lies in, and nothing else has such a file."""
    return data == b"../..\n" and os.path.basename(os.path.dirname(os.path.dirname(path))) == "worktrees"


@contextlib.asynccontextmanager
async def guard_command(guard: GitGuard | None) -> AsyncIterator[None]:
    """While a command runs, and when it has ended, in whatever way."""
    if guard is None:
        yield
        return
    await guard.command_started()
    try:
        yield
    finally:
        await asyncio.shield(guard.command_ended())
