"""The sandbox policy, and the real paths it comes down to on this machine."""

import os
from collections.abc import Iterator
from typing import Literal, NamedTuple

import msgspec

from ostler.core.errors import ToolError
from ostler.processes.git_discovery import GitDirectoryScanner
from ostler.processes.other_vcs import SETTINGS_PATHS
from ostler.processes.placeholders import is_placeholder
from ostler.processes.startup_files import PlaceholderKind, home_directories, startup_paths

# Whoever can write these runs code outside the sandbox later, or changes what Ostler itself may do.
_LOCKED_NAMES = (".git/hooks", ".git/config", ".ostler", ".mcp.json", ".vscode")
# The same, but an empty folder in their place would break git, so they are locked only where they exist.
_LOCKED_IF_PRESENT = (".git/commondir", ".git/config.worktree", *SETTINGS_PATHS)


class SandboxPolicy(msgspec.Struct, frozen=True):
    """What commands may touch. Paths are absolute.

    `require` refuses to run where no sandbox can be had; `prefer` runs without and says so. All else is read-only
    but the `writable` folders and the temporary one; a read-only workspace is one that is not in `writable`.
    `read_only` adds to the paths that stay protected inside a writable folder, there or not. What is `hidden` cannot
    be read. An empty `temp` is a folder of the session's own.
    """

    mode: Literal["require", "prefer", "off"] = "prefer"
    writable: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    network: bool = False
    temp: str = ""


class SandboxUnavailable(ToolError):
    """A sandbox is required and this machine offers none; nothing was run."""

    code = "sandbox_unavailable"
    exit_code = 2


class SandboxLayout(msgspec.Struct, frozen=True):
    """A policy on this machine, symbolic links resolved.

    Inside writable folders, `locked` exist and must stay as they are, `absent` must not come to be, and `pinned` are
    the folders between, which must not be moved away with what they hold. `watched` can only be looked at afterwards.
    Where a sandbox cannot lock, what is `shut` is kept shut all the same: it does not open the folders around, but what
    else lies in them. `own` are those of them that the caller named. `visible` must be readable whatever is masked.
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
    """Whether a real path is a folder or something in it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


class _ProtectedPath(NamedTuple):
    """A path to protect, what may keep its place, and whether no folder around it may be opened where it lies."""

    path: str
    placeholder: PlaceholderKind
    never_writable: bool = False


def resolve_layout(policy: SandboxPolicy, temp: str, visible: tuple[str, ...] = ()) -> SandboxLayout:
    roots = tuple(sorted({os.path.realpath(path) for path in policy.writable if os.path.isdir(path)}))
    locked: list[str] = []
    absent: list[str] = []
    watched: list[str] = []
    found = list(_protected_paths(policy, roots))
    for path, stand_in, _ in found:
        if os.path.islink(path) or not os.path.isdir(os.path.dirname(path)):
            watched.append(path)
        elif os.path.exists(path) and not is_placeholder(path):
            locked.append(path)
        else:
            (watched if stand_in == "nothing" else absent).append(path)
    return SandboxLayout(
        writable=roots,
        locked=tuple(locked),
        must_not_exist=tuple(absent),
        must_not_move=_folders_between(roots, (*locked, *absent)),
        checked_afterwards=tuple(watched),
        never_writable=_never_writable(roots, found),
        caller_paths=tuple(os.path.realpath(path) for path in policy.read_only),
        hidden=tuple(sorted({os.path.realpath(path) for path in policy.hidden if os.path.lexists(path)})),
        visible=tuple(os.path.realpath(path) for path in visible),
        network=policy.network,
        temp=os.path.realpath(temp),
    )


def home_placeholder_paths() -> Iterator[str]:
    """Where a session in a home may have put what keeps a place."""
    yield from (path for path, _ in startup_paths())
    yield from (os.path.join(home, name) for home in home_directories() for name in _LOCKED_NAMES)


def _never_writable(roots: tuple[str, ...], found: list[_ProtectedPath]) -> tuple[str, ...]:
    """What of a root that holds something to be kept shut is to be: git's own files are looked after otherwise."""
    wary = [root for root in roots if any(one.never_writable and is_inside(one.path, root) for one in found)]
    paths = [one.path for one in found if "/.git/" not in f"{one.path}/"]
    return tuple(path for path in paths if any(is_inside(path, root) for root in wary))


def _protected_paths(policy: SandboxPolicy, roots: tuple[str, ...]) -> Iterator[_ProtectedPath]:
    """Each path to protect in a writable folder, once, and not what lies in one already protected."""
    seen: list[str] = []
    real: dict[str, str] = {}  # most lie in the same few folders
    for one in _candidates(policy, roots):
        folder, name = os.path.split(one.path)
        if folder not in real:
            real[folder] = os.path.realpath(folder)
        for path in _with_target(os.path.join(real[folder], name)):
            within = any(is_inside(path, root) and path != root for root in roots)
            if within and not any(is_inside(path, other) for other in seen):
                seen.append(path)
                yield one._replace(path=path)


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
    yield from (_ProtectedPath(path, stand_in, never_writable=True) for path, stand_in in startup_paths())


def _submodules(root: str) -> list[str]:
    """Also those in folders of their own: a submodule's name is its path."""
    return sorted(GitDirectoryScanner((os.path.join(root, ".git/modules"),)).find().directories)


def _folders_between(roots: tuple[str, ...], paths: tuple[str, ...]) -> tuple[str, ...]:
    """The folders below a root on the way to the paths, outer ones first."""
    found: set[str] = set()
    for path in paths:
        while (path := os.path.dirname(path)) not in roots and any(is_inside(path, root) for root in roots):
            found.add(path)
    return tuple(sorted(found))
