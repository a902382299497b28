"""The sandbox policy, and the real paths it comes down to on this machine."""

import os
from collections.abc import Iterator
from typing import Literal

import msgspec

from ostler.processes.git_folders import GitFolders
from ostler.processes.watch import stands_in
from ostler.vocabulary.errors import ToolFailure

# Whoever can write these runs code outside the sandbox later, or changes what Ostler itself may do.
_LOCKED_NAMES = (".git/hooks", ".git/config", ".ostler", ".mcp.json", ".vscode")
# The same, but an empty folder in their place would break git or a login, so they are locked only where they exist.
_IF_THERE_NAMES = (".git/commondir", ".git/config.worktree")
_HOME_NAMES = (
    *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile"),
    *(".zshrc", ".zshenv", ".zprofile", ".zlogin", ".config/fish/config.fish"),
    *(".gitconfig", ".config/git/config", ".ssh"),
)


class Confinement(msgspec.Struct, frozen=True):
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


class SandboxUnavailable(ToolFailure):
    """A sandbox is required and this machine offers none; nothing was run."""

    code = "sandbox_unavailable"
    exit_code = 2


class Layout(msgspec.Struct, frozen=True):
    """A policy on this machine, symbolic links resolved.

    Inside writable folders, `locked` exist and must stay as they are, `absent` must not come to be, and `pinned` are
    the folders between, which must not be moved away with what they hold. `watched` can only be looked at afterwards.
    `visible` must be readable whatever is masked.
    """

    writable: tuple[str, ...]
    locked: tuple[str, ...]
    absent: tuple[str, ...]
    pinned: tuple[str, ...]
    watched: tuple[str, ...]
    hidden: tuple[str, ...]
    visible: tuple[str, ...]
    network: bool
    temp: str

    @property
    def protected(self) -> tuple[str, ...]:
        return (*self.locked, *self.absent, *self.watched)


def inside(path: str, folder: str) -> bool:
    """Whether a real path is a folder or something in it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def lay_out(confinement: Confinement, temp: str, visible: tuple[str, ...] = ()) -> Layout:
    roots = tuple(sorted({os.path.realpath(path) for path in confinement.writable if os.path.isdir(path)}))
    locked: list[str] = []
    absent: list[str] = []
    watched: list[str] = []
    for path, placeable in _protected(confinement, roots):
        if os.path.islink(path) or not os.path.isdir(os.path.dirname(path)):
            watched.append(path)
        elif os.path.exists(path) and not stands_in(path):
            locked.append(path)
        else:
            (absent if placeable else watched).append(path)
    return Layout(
        writable=roots,
        locked=tuple(locked),
        absent=tuple(absent),
        pinned=_between(roots, (*locked, *absent)),
        watched=tuple(watched),
        hidden=tuple(sorted({os.path.realpath(path) for path in confinement.hidden if os.path.lexists(path)})),
        visible=tuple(os.path.realpath(path) for path in visible),
        network=confinement.network,
        temp=os.path.realpath(temp),
    )


def _protected(confinement: Confinement, roots: tuple[str, ...]) -> Iterator[tuple[str, bool]]:
    """Each path to protect in a writable folder, once, and whether an empty folder may stand in for it."""
    seen: set[str] = set()
    for path, placeable in _candidates(confinement, roots):
        parent = os.path.realpath(os.path.dirname(path))
        path = os.path.join(parent, os.path.basename(path))
        if path not in seen and any(inside(path, root) and path != root for root in roots):
            seen.add(path)
            yield path, placeable


def _candidates(confinement: Confinement, roots: tuple[str, ...]) -> Iterator[tuple[str, bool]]:
    for root in roots:
        if os.path.isfile(git := os.path.join(root, ".git")):
            yield git, False
        yield from ((os.path.join(root, name), True) for name in _LOCKED_NAMES)
        yield from ((os.path.join(root, name), False) for name in _IF_THERE_NAMES)
        for module in _submodules(root):
            yield os.path.join(module, "config"), False
            yield os.path.join(module, "hooks"), True
    home = os.path.expanduser("~")
    yield from ((os.path.join(home, name), False) for name in _HOME_NAMES)
    yield from ((path, True) for path in confinement.read_only)


def _submodules(root: str) -> list[str]:
    """Also those in folders of their own: a submodule's name is its path."""
    return sorted(GitFolders((os.path.join(root, ".git/modules"),)).find().directories)


def _between(roots: tuple[str, ...], paths: tuple[str, ...]) -> tuple[str, ...]:
    """The folders below a root on the way to the paths, outer ones first."""
    found: set[str] = set()
    for path in paths:
        while (path := os.path.dirname(path)) not in roots and any(inside(path, root) for root in roots):
            found.add(path)
    return tuple(sorted(found))
