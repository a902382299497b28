"""Index of the workspace's file names for fuzzy completion, built in a thread."""

import asyncio
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
from ostler.workspace.jail import closing_fd

MAX_PATHS = 500_000
STALE_SECONDS = 10.0
SEARCH_SECONDS = 0.15
FIRST_SCAN_SECONDS = 0.05
MAX_SEARCH_SECONDS = 2.0
DEFAULT_LIMIT = 50
MAX_COMPARED = 5000
MAX_QUERY_LENGTH = 200
_OPEN_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class _IndexedPath(msgspec.Struct, frozen=True):
    """A path; a folder ends with a slash. Queries are compared with `lower_path`."""

    path: str
    lower_path: str
    ignored: bool


class FileIndex:
    """Indexes folders breadth-first, so that paths near the root can be found early."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._paths: list[_IndexedPath] = []
        self._thread: threading.Thread | None = None
        self._finished_at = float("-inf")
        self.complete = threading.Event()

    def refresh(self) -> None:
        """Start a new scan, unless one is running or has just finished."""
        if self._thread is None and time.monotonic() - self._finished_at >= STALE_SECONDS:
            self._thread = threading.Thread(target=self._walk, daemon=True, name="file index")
            self._thread.start()

    def find(self, query: str, limit: int = DEFAULT_LIMIT) -> list[str]:
        """Return the paths that contain the letters of `query` in order, best matches first.

        The search stops after a short time, or after a longer one if nothing was found yet.
        """
        lower = query.lower()[:MAX_QUERY_LENGTH]
        now = time.monotonic()
        deadline, last_deadline = now + SEARCH_SECONDS, now + MAX_SEARCH_SECONDS
        hits = _find_hits(self._paths, lambda name: lower in name, deadline, last_deadline)
        if not hits or (len(hits) < limit and time.monotonic() < deadline):
            more = _find_hits(self._paths, _subsequence_matcher(lower), deadline, deadline if hits else last_deadline)
            hits = list(dict.fromkeys([*hits, *more]))
        return [name.path for name in heapq.nsmallest(limit, hits, key=lambda name: _rank(name, lower))]

    async def search(self, query: str) -> list[str]:
        """Return the paths for what a user typed. While the first scan is running, wait until something is found."""
        if query.startswith(("/", "~/", "../")):
            return await asyncio.to_thread(list_matching_paths, self._root, query)
        found = await asyncio.to_thread(self._search_once, query)
        while not found and not self.complete.is_set():
            await asyncio.sleep(FIRST_SCAN_SECONDS)
            found = await asyncio.to_thread(self._search_once, query)
        return found

    def _search_once(self, query: str) -> list[str]:
        self.refresh()
        self.complete.wait(FIRST_SCAN_SECONDS)
        return self.find(query.removeprefix("./"))

    def _walk(self) -> None:
        first = not self._paths
        names: list[_IndexedPath] = self._paths if first else []
        try:
            for name in _walk_paths(self._root):
                names.append(name)
                if len(names) >= MAX_PATHS:
                    break
        except OSError:
            pass  # the folder was deleted; keep the paths found so far
        self._paths, self._finished_at, self._thread = names, time.monotonic(), None
        self.complete.set()


def _subsequence_matcher(query: str) -> Callable[[str], object]:
    """Return a function that matches the letters in order, without backtracking."""
    return re.compile("".join(f"[^{re.escape(c)}]*+{re.escape(c)}" for c in query), re.DOTALL).match


def _find_hits(
    names: Sequence[_IndexedPath], matches: Callable[[str], object], deadline: float, last_deadline: float
) -> list[_IndexedPath]:
    """Return the first matches, limited by number and by time; shallow paths come first."""
    hits: list[_IndexedPath] = []
    for start in range(0, len(names), 2000):
        hits += [name for name in names[start : start + 2000] if matches(name.lower_path)]
        if len(hits) >= MAX_COMPARED or time.monotonic() > (deadline if hits else last_deadline):
            break
    return hits


def _rank(name: _IndexedPath, query: str) -> tuple[bool, int, bool, int, int]:
    """Sort key: ignored paths last, then by quality of the match, folders first, shallow and short first."""
    path = name.lower_path
    folder = path.endswith("/")
    base = path.rstrip("/").rpartition("/")[2]
    fit = 0 if base.startswith(query) or path.startswith(query) else 1 if query in base else 2 if query in path else 3
    return name.ignored, fit, not folder, path.count("/"), len(path)


def _walk_paths(root: str) -> Iterator[_IndexedPath]:
    """Yield all paths except those below ignored folders; symlinks are not followed."""
    waiting: deque[tuple[str, IgnoreRules]] = deque([("", IgnoreRules())])
    while waiting:
        prefix, parent_rules = waiting.popleft()
        try:
            folder = os.open(os.path.join(root, prefix), _OPEN_FLAGS)
        except OSError:
            continue
        with closing_fd(folder):
            rules = parent_rules.for_subfolder(folder, prefix)
            for name, is_folder in _list_folder(folder):
                path = f"{prefix}{name}{'/' * is_folder}"
                ignored = rules.is_ignored(prefix + name, is_directory=is_folder)
                yield _IndexedPath(path, path.lower(), ignored)
                if is_folder and not ignored:
                    waiting.append((path, rules))


def _list_folder(folder: int) -> list[tuple[str, bool]]:
    """Return the printable names, sorted, without `.git`."""
    with os.scandir(folder) as scan:
        return sorted(
            (entry.name, entry.is_dir(follow_symlinks=False))
            for entry in scan
            if entry.name != ".git" and entry.name.isprintable() and not entry_is_placeholder(entry, folder)
        )


def list_matching_paths(root: str, prefix: str) -> list[str]:
    """Complete a path outside the workspace, such as `~/x`, `/etc/ho` or `../a`; folders come first."""
    head, _, start = prefix.rpartition("/")
    folder = os.path.join(root, os.path.expanduser(f"{head}/"))
    try:
        with os.scandir(folder) as scan:
            entries = [(not entry.is_dir(), entry.name) for entry in scan if entry.name.isprintable()]
    except OSError:
        return []
    lower = start.lower()
    matches = [(is_file, name) for is_file, name in entries if name.lower().startswith(lower)]
    matches = [(is_file, name) for is_file, name in matches if start or not name.startswith(".")]
    return [f"{head}/{name}{'' if is_file else '/'}" for is_file, name in sorted(matches)[:DEFAULT_LIMIT]]
