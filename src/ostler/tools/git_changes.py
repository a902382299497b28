"""Reads the branch and the first changed files of a repository, and stops git as soon as it has enough of them.

`git status` prints nothing before it has looked at all files, which takes long if many have changed.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

import msgspec

from ostler.tools.git_repo import Repo

MAX_HIDDEN = 2000  # changed files that may not be shown, after which the search ends
_STAGED = ("diff-index", "--cached", "--no-renames", "--ignore-submodules=dirty", "--name-status", "-z", "HEAD")
_ADDED = ("ls-files", "--full-name", "-z", "--cached", "-t")  # without any commit
_CHANGED = ("ls-files", "--full-name", "-z", "-t", "--modified", "--deleted")
_FOLDERS = ("--directory", "--no-empty-directory")  # one entry for a folder without tracked files
_UNTRACKED = ("ls-files", "--full-name", "-z", "-t", "--others", "--exclude-standard", *_FOLDERS)
_LETTERS = {"R": "D", "C": "M", "H": "A"}  # tags of ls-files: removed, changed, cached


class GitChanges(msgspec.Struct, frozen=True):
    """The branch and the first changed files by path: status (as in `git status`, with `.` for unchanged) and path."""

    branch: str
    files: tuple[tuple[str, str], ...]
    is_complete: bool


class _Found:
    """The files of one kind of change, in order of their paths, up to a limit."""

    def __init__(self, limit: int, is_shown: Callable[[str], bool]) -> None:
        self.letters: dict[str, str] = {}
        self.is_complete = True
        self._limit = limit
        self._is_shown = is_shown
        self._hidden = 0

    def add(self, path: str, letter: str) -> bool:
        """Add a file if it may be shown. Return False if no more are wanted."""
        if path in self.letters:
            return True
        if not self._is_shown(path):
            self._hidden += 1
        else:
            self.letters[path] = letter
        self.is_complete = len(self.letters) <= self._limit and self._hidden <= MAX_HIDDEN
        return self.is_complete


async def read_changes(repo: Repo, limit: int, is_shown: Callable[[str], bool]) -> GitChanges:
    """Return the first `limit` changed files for which `is_shown` is true. Raises `ToolError`.

    Each kind of change is read in order of the paths up to one file more than the limit, so that the first files of all
    kinds together are complete.
    """
    staged, changed, untracked = (_Found(limit, is_shown) for _ in range(3))
    branch, head = await asyncio.gather(
        repo.run_raw("symbolic-ref", "--short", "--quiet", "HEAD", ok_codes=(0, 1)),
        repo.run_raw("rev-parse", "--verify", "--quiet", "HEAD", ok_codes=(0, 1)),
    )
    await asyncio.gather(
        _read(repo, staged, _name_status(repo, *_STAGED) if head.stdout else _tagged(repo, *_ADDED)),
        _read(repo, changed, _tagged(repo, *_CHANGED)),
        _read(repo, untracked, _tagged(repo, *_UNTRACKED)),
    )
    paths = sorted({**staged.letters, **changed.letters, **untracked.letters})
    files = tuple((_status(path, staged.letters, changed.letters), path) for path in paths[:limit])
    is_complete = len(paths) <= limit and all(found.is_complete for found in (staged, changed, untracked))
    return GitChanges(branch.stdout.strip() or "(detached)", files, is_complete)


async def _read(repo: Repo, found: _Found, entries: AsyncGenerator[tuple[str, str], None]) -> None:
    async with aclosing(entries) as closing:
        async for letter, path in closing:
            if not found.add(repo.path_from_top(path), letter):
                return


async def _name_status(repo: Repo, *arguments: str) -> AsyncGenerator[tuple[str, str], None]:
    """Yield letter and path of each entry, which git prints one after the other."""
    letter = ""
    async with aclosing(repo.entries(*arguments)) as entries:
        async for entry in entries:
            if letter:
                yield letter, entry
            letter = "" if letter else entry


async def _tagged(repo: Repo, *arguments: str) -> AsyncGenerator[tuple[str, str], None]:
    """Yield letter and path of each entry, which begins with a tag."""
    async with aclosing(repo.entries(*arguments)) as entries:
        async for entry in entries:
            tag, _, path = entry.partition(" ")
            yield _LETTERS.get(tag, tag), path


def _status(path: str, staged: dict[str, str], changed: dict[str, str]) -> str:
    if path not in staged and path not in changed:
        return "??"
    if staged.get(path) == "U":
        return "UU"
    return staged.get(path, ".") + changed.get(path, ".")
