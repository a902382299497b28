"""The sandbox policy and the real paths it resolves to on this machine."""

import os
from collections.abc import Iterator
from typing import Literal, NamedTuple

import msgspec

from ostler.core.errors import ToolError
from ostler.processes.git_discovery import GitDirectoryScanner
from ostler.processes.other_vcs import SETTINGS_PATHS
from ostler.processes.placeholders import is_placeholder
from ostler.processes.startup_files import PlaceholderKind, home_directories, startup_paths

# A command that can write these can run code outside the sandbox later, or change Ostler's permissions.
_LOCKED_NAMES = (".git/hooks", ".git/config", ".ostler", ".mcp.json", ".vscode")
# The same, but an empty placeholder would break git or OpenCode, so they are locked only if they exist.
_LOCKED_IF_PRESENT = (".git/commondir", ".git/config.worktree", *SETTINGS_PATHS, "opencode.json", "opencode.jsonc")


class SandboxPolicy(msgspec.Struct, frozen=True):
    """The files and the network that commands may use. Paths are absolute.

    Without a sandbox, `require` refuses to run commands, and `prefer` runs them with a warning. Everything is read-only
    except the `writable` folders and the temporary one. `read_only` paths stay protected inside writable folders, even
    if they do not exist. `hidden` paths cannot be read. An empty `temp` means a folder of the session.
    """

    mode: Literal["require", "prefer", "off"] = "prefer"
    writable: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    network: bool = False
    temp: str = ""


class SandboxUnavailable(ToolError):
    """Raised when a sandbox is required and none is available; nothing was run."""

    code = "sandbox_unavailable"
    exit_code = 2


class SandboxLayout(msgspec.Struct, frozen=True):
    """A policy resolved on this machine, with symlinks followed.

    Inside writable folders, `locked` paths exist and must not change, `must_not_exist` paths must not be created, and
    `must_not_move` are the folders between them and the root. `checked_afterwards` paths cannot be locked, only checked
    after a command. `never_writable` paths are protected even by sandboxes that cannot lock: these make the other
    entries of the surrounding folders writable instead of the folders. `caller_paths` are the ones that the caller
    listed as `read_only`. `visible` paths must be readable even in masked folders.
    """

    writable: tuple[str, ...]
    locked: tuple[str, ...]
    must_not_exist: tuple[str, ...]
    must_not_move: tuple[str, ...]
    checked_afterwards: tuple[str, ...]
    never_writable: tuple[str, ...]
    caller_paths: tuple[str, ...]
    hidden: tuple[str, ...]
    visible: tuple[str, ...]
    network: bool
    temp: str

    @property
    def protected(self) -> tuple[str, ...]:
        return (*self.locked, *self.must_not_exist, *self.checked_afterwards)


def is_inside(path: str, folder: str) -> bool:
    """Return whether a resolved path is the folder itself or inside it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


class _ProtectedPath(NamedTuple):
    """A path to protect, the kind of placeholder it may get, and whether it must never be writable."""

    path: str
    placeholder: PlaceholderKind
    never_writable: bool = False


def resolve_layout(policy: SandboxPolicy, temp: str, visible: tuple[str, ...] = ()) -> SandboxLayout:
    roots = tuple(sorted({os.path.realpath(path) for path in policy.writable if os.path.isdir(path)}))
    locked: list[str] = []
    must_not_exist: list[str] = []
    checked_afterwards: list[str] = []
    found = list(_protected_paths(policy, roots))
    for path, placeholder, _ in found:
        if os.path.islink(path) or not os.path.isdir(os.path.dirname(path)):
            checked_afterwards.append(path)
        elif os.path.exists(path) and not is_placeholder(path):
            locked.append(path)
        else:
            (checked_afterwards if placeholder == "nothing" else must_not_exist).append(path)
    return SandboxLayout(
        writable=roots,
        locked=tuple(locked),
        must_not_exist=tuple(must_not_exist),
        must_not_move=_folders_between(roots, (*locked, *must_not_exist)),
        checked_afterwards=tuple(checked_afterwards),
        never_writable=_never_writable(roots, found),
        caller_paths=tuple(os.path.realpath(path) for path in policy.read_only),
        hidden=tuple(sorted({os.path.realpath(path) for path in policy.hidden if os.path.lexists(path)})),
        visible=tuple(os.path.realpath(path) for path in visible),
        network=policy.network,
        temp=os.path.realpath(temp),
    )


def home_placeholder_paths() -> Iterator[str]:
    """Yield the paths in home directories where a session may have created placeholders."""
    yield from (path for path, _ in startup_paths())
    yield from (os.path.join(home, name) for home in home_directories() for name in _LOCKED_NAMES)


def _never_writable(roots: tuple[str, ...], found: list[_ProtectedPath]) -> tuple[str, ...]:
    """Return the protected paths of roots with never-writable paths, except git's own files, which the guard covers."""
    affected = [root for root in roots if any(entry.never_writable and is_inside(entry.path, root) for entry in found)]
    paths = [entry.path for entry in found if "/.git/" not in f"{entry.path}/"]
    return tuple(path for path in paths if any(is_inside(path, root) for root in affected))


def _protected_paths(policy: SandboxPolicy, roots: tuple[str, ...]) -> Iterator[_ProtectedPath]:
    """Yield each path to protect in a writable folder, without those inside an already protected path."""
    seen: list[str] = []
    real: dict[str, str] = {}  # cache: most paths are in the same few folders
    for candidate in _candidates(policy, roots):
        folder, name = os.path.split(candidate.path)
        if folder not in real:
            real[folder] = os.path.realpath(folder)
        for path in _with_target(os.path.join(real[folder], name)):
            in_root = any(is_inside(path, root) and path != root for root in roots)
            if in_root and not any(is_inside(path, other) for other in seen):
                seen.append(path)
                yield candidate._replace(path=path)


def _with_target(path: str) -> tuple[str, ...]:
    return (path, os.path.realpath(path)) if os.path.islink(path) and os.path.exists(path) else (path,)


def _candidates(policy: SandboxPolicy, roots: tuple[str, ...]) -> Iterator[_ProtectedPath]:
    for root in roots:
        if os.path.isfile(git := os.path.join(root, ".git")):
            yield _ProtectedPath(git, "nothing")
        yield from (_ProtectedPath(os.path.join(root, name), "folder") for name in _LOCKED_NAMES)
        yield from (_ProtectedPath(os.path.join(root, name), "nothing") for name in _LOCKED_IF_PRESENT)
        for module in _submodules(root):
            yield _ProtectedPath(os.path.join(module, "config"), "nothing")
            yield _ProtectedPath(os.path.join(module, "hooks"), "folder")
    yield from (_ProtectedPath(path, "folder", never_writable=True) for path in policy.read_only)
    yield from (_ProtectedPath(path, placeholder, never_writable=True) for path, placeholder in startup_paths())


def _submodules(root: str) -> list[str]:
    """Return the git directories of submodules, also nested ones: a submodule's name is its path."""
    return sorted(GitDirectoryScanner((os.path.join(root, ".git/modules"),)).find().directories)


def _folders_between(roots: tuple[str, ...], paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return the folders between the roots and the paths, outer ones first."""
    found: set[str] = set()
    for path in paths:
        while (path := os.path.dirname(path)) not in roots and any(is_inside(path, root) for root in roots):
            found.add(path)
    return tuple(sorted(found))
