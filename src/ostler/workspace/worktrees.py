"""Git worktrees for sessions: each is a folder of its own, on a branch of its own."""

import os
import re
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ostler.core.errors import UsageError
from ostler.settings.home import ensure_home, project_id
from ostler.text.sanitise import sanitise

BRANCH_PREFIX = "ostler/"
TIMEOUT_SECONDS = 120.0
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
# No program of the repository's configuration runs, and every file that is not committed is a change.
_OPTIONS = (
    *("core.hooksPath=/dev/null", "core.fsmonitor=false", "submodule.recurse=false"),
    "status.showUntrackedFiles=all",
)


class Worktree(msgspec.Struct, frozen=True):
    """A worktree that Ostler made, on the branch `branch`, unless another one was checked out there.

    `changes` is the number of changed files, `unchecked` of files whose changes git ignores, and `commits`
    of commits that only this worktree and its branch have. `problem` tells why nothing is known about it.
    """

    name: str
    path: str
    branch: str
    changes: int = 0
    unchecked: int = 0
    commits: int = 0
    is_locked: bool = False
    problem: str = ""

    @property
    def obstacles(self) -> Sequence[str]:
        """Why it must not be removed."""
        parts = (
            self.problem,
            _count(self.changes, "changed file"),
            _count(self.unchecked, "file", " whose changes git ignores (see `git ls-files -v`)"),
            _count(self.commits, "commit", " that no other branch has"),
            "locked (see `git worktree unlock`)" if self.is_locked else "",
        )
        return [part for part in parts if part]


def add_worktree(folder: Path, name: str = "") -> Path:
    """Make a worktree of the folder's repository at its current commit. Return its path."""
    root = _repository(folder)
    name = name or time.strftime("%Y%m%d-%H%M%S")
    if not _NAME.fullmatch(name) or ".." in name:
        raise UsageError(f"{name!r} is not a name of a worktree", hint="use letters, digits, '.', '_' and '-'")
    path = worktrees_folder(root) / name
    if path.exists():
        raise UsageError(f"the worktree {name} already exists", hint=f"start there: --cwd {path}")
    if not _exists(root, "HEAD^{commit}"):
        raise UsageError(f"the repository {root} has no commit", hint="commit first")
    if _exists(root, f"refs/heads/{BRANCH_PREFIX}{name}"):
        raise UsageError(f"there is already a branch {BRANCH_PREFIX}{name}", hint="choose another name")
    path.parent.mkdir(parents=True, exist_ok=True)
    _git(root, "worktree", "add", "--quiet", "-b", f"{BRANCH_PREFIX}{name}", str(path), "HEAD")
    return path


def list_worktrees(folder: Path) -> list[Worktree]:
    """Return the worktrees of the folder's repository that Ostler made."""
    root = _repository(folder)
    parent = worktrees_folder(root)
    names = sorted(entry.name for entry in parent.iterdir() if (entry / ".git").is_file()) if parent.is_dir() else []
    return [_describe(root, parent / name) for name in names]


def remove_worktree(folder: Path, name: str, *, is_used: bool) -> None:
    """Remove a worktree and its branch, unless something would be lost or a session is open in it (`is_used`)."""
    found = next((tree for tree in list_worktrees(folder) if tree.name == name), None)
    if found is None:
        raise UsageError(f"there is no worktree {name}", hint="`ostler worktree list` shows them")
    if is_used:
        raise UsageError(f"a session is open in {found.path}", hint="close it first")
    if found.obstacles:
        raise UsageError(
            f"{found.path} was not removed: {', '.join(found.obstacles)}",
            hint="commit and merge what you need, and discard the rest",
        )
    root = _repository(folder)
    _git(root, "worktree", "remove", found.path)
    if _exists(root, f"refs/heads/{found.branch}"):
        _git(root, "branch", "-D", "--quiet", found.branch)


def worktree_path(folder: Path, name: str) -> Path:
    """Return the path of a worktree of the folder's repository, which may not exist."""
    return worktrees_folder(_repository(folder)) / name


def worktrees_folder(root: Path) -> Path:
    """Return the folder of the worktrees of a repository."""
    return ensure_home(os.environ) / "worktrees" / project_id(root)


def _describe(root: Path, path: Path) -> Worktree:
    name, branch = path.name, f"{BRANCH_PREFIX}{path.name}"
    try:
        changed = _git(path, "status", "--porcelain", "--ignored", "--ignore-submodules=dirty").splitlines()
        git_folder = _git(path, "rev-parse", "--absolute-git-dir").strip()
        return Worktree(
            name,
            str(path),
            branch,
            len(changed),
            _count_unchecked(path),
            _count_own_commits(path, branch),
            os.path.exists(os.path.join(git_folder, "locked")),
        )
    except UsageError as error:
        return Worktree(name, str(path), branch, problem=error.fault.message)


def _count_unchecked(path: Path) -> int:
    """Return the number of existing files with the flag assume-unchanged or skip-worktree."""
    entries = [entry.partition(" ") for entry in _git(path, "ls-files", "-v", "-z").split("\0")]
    flagged = [file for tag, _, file in entries if tag == "S" or tag.islower()]
    return sum(os.path.lexists(path / file) for file in flagged)


def _count_own_commits(path: Path, branch: str) -> int:
    """Return the number of commits of a worktree and its branch that no other branch has."""
    tips = [tip for tip in ("HEAD", f"refs/heads/{branch}") if _exists(path, tip)]
    if not tips:
        return 0
    others = ["--not", f"--exclude={branch}", "--branches", "--remotes"]
    return int(_git(path, "rev-list", "--count", *tips, *others))


def _repository(folder: Path) -> Path:
    """Return the main worktree of the folder's repository."""
    try:
        common = _git(folder, "rev-parse", "--path-format=absolute", "--git-common-dir").strip()
    except UsageError:
        raise UsageError(f"{folder} is not in a git repository", hint="run `git init` and commit first") from None
    return Path(common).parent if common.endswith("/.git") else Path(common)


def _exists(folder: Path, revision: str) -> bool:
    try:
        return bool(_git(folder, "rev-parse", "--verify", "--quiet", revision))
    except UsageError:
        return False


def _count(number: int, noun: str, more: str = "") -> str:
    return f"{number} {noun}{'s' * (number != 1)}{more}" if number else ""


def _git(folder: Path, *arguments: str) -> str:
    options = [part for option in _OPTIONS for part in ("-c", option)]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", *options, *arguments],
            cwd=folder,
            env={**environment, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        raise UsageError("git was not found", hint="install git") from None
    except subprocess.TimeoutExpired:
        raise UsageError(f"git {arguments[0]} took too long") from None
    if done.returncode:
        message = sanitise(done.stderr.decode(errors="replace")).strip().splitlines()
        raise UsageError(f"git {arguments[0]} failed: {message[-1] if message else done.returncode}")
    return done.stdout.decode(errors="replace")
