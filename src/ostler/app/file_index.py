"""The names of a workspace's files, looked up in a thread and found by a few of their letters; nobody waits for it."""

import heapq
import os
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence

import msgspec

from ostler.processes.placeholders import keeps_a_place
from ostler.workspace.ignores import Ignores

MOST = 500_000
STALE_SECONDS = 10.0
LOOK_SECONDS = 0.15
LONGEST_LOOK_SECONDS = 2.0
LIMIT = 50
MOST_COMPARED = 5000
LONGEST_WORD = 200
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class _Name(msgspec.Struct, frozen=True):
    """One path; a folder's ends with a slash. `low` is what letters are compared with."""

    path: str
    low: str
    ignored: bool


class FileIndex:
    """Folder by folder, the shallow ones first, so that what is near is known at once."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._names: list[_Name] = []
        self._walking: threading.Thread | None = None
        self._ended = float("-inf")
        self.whole = threading.Event()

    def refresh(self) -> None:
        """Look again, unless that is being done or was done a moment ago."""
        if self._walking is None and time.monotonic() - self._ended >= STALE_SECONDS:
            self._walking = threading.Thread(target=self._walk, daemon=True, name="file index")
            self._walking.start()

    def find(self, wanted: str, limit: int = LIMIT) -> list[str]:
        """The paths that have these letters in this order, the likeliest first; after a moment, the best so far.

        Where nothing is found by then it is looked further, for a while: an empty list would say that there is nothing.
        """
        low = wanted.lower()[:LONGEST_WORD]
        now = time.monotonic()
        until, latest = now + LOOK_SECONDS, now + LONGEST_LOOK_SECONDS
        hits = _hits(self._names, lambda name: low in name, until, latest)
        if not hits or (len(hits) < limit and time.monotonic() < until):
            more = _hits(self._names, _has(low), until, until if hits else latest)
            hits = list(dict.fromkeys([*hits, *more]))
        return [name.path for name in heapq.nsmallest(limit, hits, key=lambda name: _rank(name, low))]

    def _walk(self) -> None:
        first = not self._names
        names: list[_Name] = self._names if first else []
        try:
            for name in _names(self._root):
                names.append(name)
                if len(names) >= MOST:
                    break
        except OSError:
            pass  # the folder is gone; what is known stays
        self._names, self._ended, self._walking = names, time.monotonic(), None
        self.whole.set()


def _has(low: str) -> Callable[[str], object]:
    """Whether a name has these letters in this order; no letter is looked at twice."""
    return re.compile("".join(f"[^{re.escape(c)}]*+{re.escape(c)}" for c in low), re.DOTALL).match


def _hits(names: Sequence[_Name], fits: Callable[[str], object], until: float, latest: float) -> list[_Name]:
    """The first that fit, which are the shallow ones: as many as are worth comparing, and as a moment allows."""
    hits: list[_Name] = []
    for number in range(0, len(names), 2000):
        hits += [name for name in names[number : number + 2000] if fits(name.low)]
        if len(hits) >= MOST_COMPARED or time.monotonic() > (until if hits else latest):
            break
    return hits


def _rank(name: _Name, low: str) -> tuple[bool, int, bool, int, int]:
    """What is ignored last; then by how well it fits, folders first, then the shallow and short."""
    path = name.low
    folder = path.endswith("/")
    base = path.rstrip("/").rpartition("/")[2]
    fit = 0 if base.startswith(low) or path.startswith(low) else 1 if low in base else 2 if low in path else 3
    return name.ignored, fit, not folder, path.count("/"), len(path)


def _names(root: str) -> Iterator[_Name]:
    """Below an ignored folder nothing is looked at; links are names, and not followed."""
    waiting: deque[tuple[str, Ignores]] = deque([("", Ignores())])
    while waiting:
        here, above = waiting.popleft()
        try:
            folder = os.open(os.path.join(root, here), _OPEN)
        except OSError:
            continue
        try:
            rules = above.below(folder, here)
            for name, is_folder in _listed(folder):
                path = f"{here}{name}{'/' * is_folder}"
                ignored = rules.leave_out(here + name, is_directory=is_folder)
                yield _Name(path, path.lower(), ignored)
                if is_folder and not ignored:
                    waiting.append((path, rules))
        finally:
            os.close(folder)


def _listed(folder: int) -> list[tuple[str, bool]]:
    """Names that can be typed, sorted, without git's own folder."""
    with os.scandir(folder) as scan:
        return sorted(
            (entry.name, entry.is_dir(follow_symlinks=False))
            for entry in scan
            if entry.name != ".git" and entry.name.isprintable() and not keeps_a_place(entry, folder)
        )


def listed_paths(root: str, wanted: str, limit: int = LIMIT) -> list[str]:
    """What a path outside the workspace may be going to mean: `~/x`, `/etc/ho`, `../a`; folders first."""
    head, _, begin = wanted.rpartition("/")
    folder = os.path.join(root, os.path.expanduser(f"{head}/"))
    try:
        with os.scandir(folder) as scan:
            found = [(not entry.is_dir(), entry.name) for entry in scan if entry.name.isprintable()]
    except OSError:
        return []
    low = begin.lower()
    shown = [(is_file, name) for is_file, name in found if name.lower().startswith(low)]
    shown = [(is_file, name) for is_file, name in shown if begin or not name.startswith(".")]
    return [f"{head}/{name}{'' if is_file else '/'}" for is_file, name in sorted(shown)[:limit]]
