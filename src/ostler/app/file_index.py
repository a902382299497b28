"""The names of a workspace's files, looked up in a thread and found by a few of their letters; nobody waits for it."""

import heapq
import os
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence

import msgspec

from ostler.processes.placeholders import entry_is_placeholder
from ostler.workspace.gitignore import IgnoreRules

MAX_PATHS = 500_000
STALE_SECONDS = 10.0
SEARCH_SECONDS = 0.15
MAX_SEARCH_SECONDS = 2.0
DEFAULT_LIMIT = 50
MAX_COMPARED = 5000
MAX_QUERY_LENGTH = 200
_OPEN_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class _IndexedPath(msgspec.Struct, frozen=True):
    """One path; a folder's ends with a slash. `low` is what letters are compared with."""

    path: str
    lower_path: str
    ignored: bool


class FileIndex:
    """Folder by folder, the shallow ones first, so that what is near is known at once."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._paths: list[_IndexedPath] = []
        self._thread: threading.Thread | None = None
        self._finished_at = float("-inf")
        self.complete = threading.Event()

    def refresh(self) -> None:
        """Look again, unless that is being done or was done a moment ago."""
        if self._thread is None and time.monotonic() - self._finished_at >= STALE_SECONDS:
            self._thread = threading.Thread(target=self._walk, daemon=True, name="file index")
            self._thread.start()

    def find(self, query: str, limit: int = DEFAULT_LIMIT) -> list[str]:
        """The paths that have these letters in this order, the likeliest first; after a moment, the best so far.

        Where nothing is found by then it is looked further, for a while: an empty list would say that there is nothing.
        """
        low = query.lower()[:MAX_QUERY_LENGTH]
        now = time.monotonic()
        until, latest = now + SEARCH_SECONDS, now + MAX_SEARCH_SECONDS
        hits = _find_hits(self._paths, lambda name: low in name, until, latest)
        if not hits or (len(hits) < limit and time.monotonic() < until):
            more = _find_hits(self._paths, _subsequence_matcher(low), until, until if hits else latest)
            hits = list(dict.fromkeys([*hits, *more]))
        return [name.path for name in heapq.nsmallest(limit, hits, key=lambda name: _rank(name, low))]

    def _walk(self) -> None:
        first = not self._paths
        names: list[_IndexedPath] = self._paths if first else []
        try:
            for name in _walk_paths(self._root):
                names.append(name)
                if len(names) >= MAX_PATHS:
                    break
        except OSError:
            pass  # the folder is gone; what is known stays
        self._paths, self._finished_at, self._thread = names, time.monotonic(), None
        self.complete.set()


def _subsequence_matcher(query: str) -> Callable[[str], object]:
    """Whether a name has these letters in this order; no letter is looked at twice."""
    return re.compile("".join(f"[^{re.escape(c)}]*+{re.escape(c)}" for c in query), re.DOTALL).match


def _find_hits(
    names: Sequence[_IndexedPath], matches: Callable[[str], object], deadline: float, last_deadline: float
) -> list[_IndexedPath]:
    """The first that fit, which are the shallow ones: as many as are worth comparing, and as a moment allows."""
    hits: list[_IndexedPath] = []
    for number in range(0, len(names), 2000):
        hits += [name for name in names[number : number + 2000] if matches(name.lower_path)]
        if len(hits) >= MAX_COMPARED or time.monotonic() > (deadline if hits else last_deadline):
            break
    return hits


def _rank(name: _IndexedPath, query: str) -> tuple[bool, int, bool, int, int]:
    """What is ignored last; then by how well it fits, folders first, then the shallow and short."""
    path = name.lower_path
    folder = path.endswith("/")
    base = path.rstrip("/").rpartition("/")[2]
    fit = 0 if base.startswith(query) or path.startswith(query) else 1 if query in base else 2 if query in path else 3
    return name.ignored, fit, not folder, path.count("/"), len(path)


def _walk_paths(root: str) -> Iterator[_IndexedPath]:
    """Below an ignored folder nothing is looked at; links are names, and not followed."""
    waiting: deque[tuple[str, IgnoreRules]] = deque([("", IgnoreRules())])
    while waiting:
        here, above = waiting.popleft()
        try:
            folder = os.open(os.path.join(root, here), _OPEN_FLAGS)
        except OSError:
            continue
        try:
            rules = above.for_subfolder(folder, here)
            for name, is_folder in _list_folder(folder):
                path = f"{here}{name}{'/' * is_folder}"
                ignored = rules.is_ignored(here + name, is_directory=is_folder)
                yield _IndexedPath(path, path.lower(), ignored)
                if is_folder and not ignored:
                    waiting.append((path, rules))
        finally:
            os.close(folder)


def _list_folder(folder: int) -> list[tuple[str, bool]]:
    """Names that can be typed, sorted, without git's own folder."""
    with os.scandir(folder) as scan:
        return sorted(
            (entry.name, entry.is_dir(follow_symlinks=False))
            for entry in scan
            if entry.name != ".git" and entry.name.isprintable() and not entry_is_placeholder(entry, folder)
        )


def list_matching_paths(root: str, prefix: str, limit: int = DEFAULT_LIMIT) -> list[str]:
    """What a path outside the workspace may be going to mean: `~/x`, `/etc/ho`, `../a`; folders first."""
    head, _, begin = prefix.rpartition("/")
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
