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

from ostler.processes.git_folders import GitFolders
from ostler.processes.git_pieces import ASIDE, Piece, Pieces, pieces_of, put_aside, root_of
from ostler.processes.git_settings import Pair, Unreadable, harmless, read_settings, written
from ostler.processes.other_repositories import harmless as others_harmless

if TYPE_CHECKING:
    from ostler.processes.git_marks import Mark

_EVERY = 0.2
_SHARE = 50  # looking takes at most one part in so many of the time
_MOST_TOLD = 20
_MOST_SHUT = 50
_MOST_READ = 1_000
Judgement = tuple[str, bytes | None]


class GitGuard:
    """The repositories in some folders; what is `locked` at a moment no command can have changed until then."""

    def __init__(self, roots: tuple[str, ...], locked: Callable[[], tuple[str, ...]] = tuple) -> None:
        self._roots = roots
        self._locked = locked
        self._folders = GitFolders(roots)
        self._known: Pieces = {}
        self._shut: set[str] = set()
        self._running = 0
        self.mark: Mark | None = None
        self._looking = asyncio.Lock()
        self._watch: asyncio.Task[None] | None = None
        self._notes: list[str] = []
        self._told: set[str] = set()
        self._read: dict[bytes, list[Pair]] = {}

    async def enter(self) -> None:
        """A command is about to start. When none runs, whatever there is is a person's, and stays."""
        async with self._looking:
            if self._running == 0:
                self._read = {}
                self._known = await asyncio.to_thread(partial(self._look, first=True))
                if self.mark:
                    self.mark.set(self._roots, self._known)
            self._running += 1
        if self._watch is None:
            self._watch = asyncio.create_task(self._keep_watch(), name="git guard")

    def begin_from(self, known: Pieces) -> None:
        """Commands have run since this was so, whoever kept it."""
        self._known = known

    async def leave(self) -> None:
        """A command has ended, with all it started."""
        try:
            await self.check()
        finally:
            self._running -= 1
            if self._running == 0 and self._watch:
                self._watch.cancel()
                self._watch = None
            if self._running == 0 and self.mark:
                self.mark.clear()

    async def check(self) -> None:
        """Set aside what commands made."""
        async with self._looking:
            now = await asyncio.to_thread(self._look)
            locked = self._locked()
            known = {path: piece for path, piece in self._known.items() if path in now}
            for path, piece in now.items():
                if piece.same(self._known.get(path)) or root_of(path, locked):
                    known[path] = piece
                else:
                    await self._settle(path, piece, known)
            self._known = known

    @property
    def busy(self) -> bool:
        """Whether a command runs."""
        return self._running > 0

    def take_notes(self) -> list[str]:
        """What there is to tell since it was last asked for."""
        notes, self._notes = self._notes, []
        return notes

    async def _keep_watch(self) -> None:
        pause = _EVERY
        while True:
            await asyncio.sleep(pause)
            began = time.monotonic()
            await self.check()
            pause = max(_EVERY, _SHARE * (time.monotonic() - began))

    def _look(self, *, first: bool = False) -> Pieces:
        found = self._folders.find()
        self._shut = found.shut if first else self._shut & found.shut
        for _ in range(_MOST_SHUT):
            if not (shut := found.shut - self._shut):
                break
            self._shut |= {path for path in shut if not _opened(path)}
            self._tell(f"{min(shut)} was opened again, for git finds its way in folders that cannot be listed")
            found = self._folders.find()
        if not found.complete or found.shut - self._shut:
            self._tell("there are too many folders here to look in each for what git would run; mind that")
        return pieces_of(found, self._roots, self._known)

    async def _settle(self, path: str, piece: Piece, known: Pieces) -> None:
        """Take a new piece as known, or set it aside and take what stands there instead as known."""
        before = known.pop(path, None)
        why, instead = await self._judge(path, piece, before)
        if not why:
            known[path] = piece
            return
        mode = before.mode if before else piece.mode
        try:
            await asyncio.to_thread(put_aside, path, self._roots, instead, mode)
        except OSError as error:
            self._tell(f"{path} ({why}) could not be set aside ({error.strerror}): remove it before you use git there")
            return
        if instead is not None:
            known[path] = Piece(piece.kind, (), mode & 0o777, instead, leads_to=before.leads_to if before else "")
        note = f"{path} was set aside, with {ASIDE} at its end, for it would make git run what a command chose: {why}"
        self._told.discard(note)
        self._tell(note)

    def _tell(self, note: str) -> None:
        note = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in note)
        if note not in self._told and len(self._notes) < _MOST_TOLD:
            self._told.add(note)
            self._notes.append(note)

    async def _judge(self, path: str, piece: Piece, before: Piece | None) -> Judgement:
        """Why it may not stay, empty if it may; and what is to stand there instead."""
        was = before.data if before else None
        if piece.is_link:
            return "it is a link", was  # it may lead git elsewhere than us
        if piece.kind == "hook":
            return "it is a new hook", was
        if piece.kind == "other":
            return ("" if others_harmless(piece.data or b"-") else "it may name programs"), was
        if piece.kind == "pointer":
            return ("" if root_of(piece.leads_to, self._roots) else "it leads out of the workspace"), was
        if piece.kind == "common":
            return ("" if _is_worktree(path, piece.data) else "it leads to other settings"), was
        if piece.data is None:
            return "it is no plain file", was
        return await self._judge_settings(path, piece.data, was)

    async def _judge_settings(self, path: str, data: bytes, was: bytes | None) -> Judgement:
        try:
            pairs = await self._settings(data)
        except Unreadable as error:
            return str(error), was
        try:
            old = set(await self._settings(was)) if was else set()
        except Unreadable:
            old = set()

        def may_lead_to(place: str) -> bool:
            return bool(root_of(os.path.realpath(os.path.join(os.path.dirname(path), place)), self._roots))

        good = [pair for pair in pairs if pair in old or harmless(*pair, may_lead_to)]
        bad = sorted({key for key, value in pairs if (key, value) not in set(good)})
        return f"it sets {', '.join(bad[:5])}" if bad else "", written(good)

    async def _settings(self, data: bytes) -> list[Pair]:
        """What some settings say; a thousand new files are read, not more: whoever makes them has all the time."""
        if data not in self._read:
            if len(self._read) >= _MOST_READ:
                raise Unreadable("there are too many new repositories to look at each")
            self._read[data] = await read_settings(data, self._roots)
        return self._read[data]


def _opened(path: str) -> bool:
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
async def guarded(guard: GitGuard | None) -> AsyncIterator[None]:
    """While a command runs, and when it has ended, in whatever way."""
    if guard is None:
        yield
        return
    await guard.enter()
    try:
        yield
    finally:
        await asyncio.shield(guard.leave())
