"""Git worktrees for sessions: each is a folder of its own, on a branch of its own."""

import os
import re
import subprocess
import time
from pathlib import Path

import msgspec

from ostler.core.errors import UsageError
from ostler.settings.home import ensure_home, project_id
from ostler.text.sanitise import sanitise

BRANCH_PREFIX = "ostler/"
TIMEOUT_SECONDS = 120.0
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
# No program of the repository's configuration runs.
_OPTIONS = ("core.hooksPath=/dev/null", "core.fsmonitor=false", "submodule.recurse=false")


class Worktree(msgspec.Struct, frozen=True):
    """A worktree that Ostler made. `changes` is the number of changed files, `commits` of commits only it has."""

    name: str
    path: str
    branch: str
    changes: int = 0
    commits: int = 0


def add_worktree(folder: Path, name: str = "") -> Path:
    """Make a worktree of the folder's repository at its current commit. Return its path."""
    root = _repository(folder)
    name = name or time.strftime("%Y%m%d-%H%M%S")
    if not _NAME.fullmatch(name) or ".." in name:
        raise UsageError(f"{name!r} is not a name of a worktree", hint="use letters, digits, '.', '_' and '-'")
    path = worktrees_folder(root) / name
    if path.exists():
        raise UsageError(f"the worktree {name} already exists", hint=f"start there: --cwd {path}")
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
    """Remove a worktree and its branch, unless it has changes, commits of its own or an open session (`is_used`)."""
    found = next((tree for tree in list_worktrees(folder) if tree.name == name), None)
    if found is None:
        raise UsageError(f"there is no worktree {name}", hint="`ostler worktree list` shows them")
    if is_used:
        raise UsageError(f"a session is open in {found.path}", hint="close it first")
    if found.changes:
        raise UsageError(f"{found.path} has {found.changes} changed files", hint="commit, stash or delete them first")
    if found.commits:
        raise UsageError(
            f"{found.branch} has {found.commits} commits that no other branch has", hint="merge the branch first"
        )
    root = _repository(folder)
    _git(root, "worktree", "remove", found.path)
    _git(root, "branch", "-D", "--quiet", found.branch)


def worktrees_folder(root: Path) -> Path:
    """Return the folder of the worktrees of a repository."""
    return ensure_home(os.environ) / "worktrees" / project_id(root)


def _describe(root: Path, path: Path) -> Worktree:
    branch = f"{BRANCH_PREFIX}{path.name}"
    changed = _git(path, "status", "--porcelain", "--ignored", "--ignore-submodules=dirty").splitlines()
    refs = _git(root, "for-each-ref", "--format=%(refname)", "refs/heads", "refs/remotes").split()
    others = [ref for ref in refs if ref != f"refs/heads/{branch}"]
    commits = _git(path, "rev-list", "--count", "HEAD", *(f"^{ref}" for ref in others)).strip()
    return Worktree(path.name, str(path), branch, len(changed), int(commits or 0))


def _repository(folder: Path) -> Path:
    """Return the main worktree of the folder's repository."""
    try:
        common = _git(folder, "rev-parse", "--path-format=absolute", "--git-common-dir").strip()
    except UsageError:
        raise UsageError(f"{folder} is not in a git repository", hint="run `git init` and commit first") from None
    return Path(common).parent if common.endswith("/.git") else Path(common)


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
