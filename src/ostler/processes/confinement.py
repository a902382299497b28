"""The sandbox policy, and the real paths it comes down to on this machine."""

import os
from collections.abc import Iterator
from typing import Literal, NamedTuple

import msgspec

from ostler.processes.git_folders import GitFolders
from ostler.processes.other_repositories import SETTINGS as OTHERS_SETTINGS
from ostler.processes.placeholders import stands_in
from ostler.processes.start_up import StandIn, homes, start_up_paths
from ostler.vocabulary.errors import ToolFailure

# Whoever can write these runs code outside the sandbox later, or changes what Ostler itself may do.
_LOCKED_NAMES = (".git/hooks", ".git/config", ".ostler", ".mcp.json", ".vscode")
# The same, but an empty folder in their place would break git, so they are locked only where they exist.
_IF_THERE_NAMES = (".git/commondir", ".git/config.worktree", *OTHERS_SETTINGS)


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
    Where a sandbox cannot lock, what is `shut` is kept shut all the same: it does not open the folders around, but what
    else lies in them. `own` are those of them that the caller named. `visible` must be readable whatever is masked.
    """

    writable: tuple[str, ...]
    locked: tuple[str, ...]
    absent: tuple[str, ...]
    pinned: tuple[str, ...]
    watched: tuple[str, ...]
    shut: tuple[str, ...]
    own: tuple[str, ...]
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


class _Candidate(NamedTuple):
    """A path to protect, what may keep its place, and whether no folder around it may be opened where it lies."""

    path: str
    stand_in: StandIn
    shut: bool = False


def lay_out(confinement: Confinement, temp: str, visible: tuple[str, ...] = ()) -> Layout:
    roots = tuple(sorted({os.path.realpath(path) for path in confinement.writable if os.path.isdir(path)}))
    locked: list[str] = []
    absent: list[str] = []
    watched: list[str] = []
    found = list(_protected(confinement, roots))
    for path, stand_in, _ in found:
        if os.path.islink(path) or not os.path.isdir(os.path.dirname(path)):
            watched.append(path)
        elif os.path.exists(path) and not stands_in(path):
            locked.append(path)
        else:
            (watched if stand_in == "nothing" else absent).append(path)
    return Layout(
        writable=roots,
        locked=tuple(locked),
        absent=tuple(absent),
        pinned=_between(roots, (*locked, *absent)),
        watched=tuple(watched),
        shut=_shut(roots, found),
        own=tuple(os.path.realpath(path) for path in confinement.read_only),
        hidden=tuple(sorted({os.path.realpath(path) for path in confinement.hidden if os.path.lexists(path)})),
        visible=tuple(os.path.realpath(path) for path in visible),
        network=confinement.network,
        temp=os.path.realpath(temp),
    )


def held_in_homes() -> Iterator[str]:
    """Where a session in a home may have put what keeps a place."""
    yield from (path for path, _ in start_up_paths())
    yield from (os.path.join(home, name) for home in homes() for name in _LOCKED_NAMES)


def _shut(roots: tuple[str, ...], found: list[_Candidate]) -> tuple[str, ...]:
    """What of a root that holds something to be kept shut is to be: git's own files are looked after otherwise."""
    wary = [root for root in roots if any(one.shut and inside(one.path, root) for one in found)]
    paths = [one.path for one in found if "/.git/" not in f"{one.path}/"]
    return tuple(path for path in paths if any(inside(path, root) for root in wary))


def _protected(confinement: Confinement, roots: tuple[str, ...]) -> Iterator[_Candidate]:
    """Each path to protect in a writable folder, once, and not what lies in one already protected."""
    seen: list[str] = []
    real: dict[str, str] = {}  # most lie in the same few folders
    for one in _candidates(confinement, roots):
        folder, name = os.path.split(one.path)
        if folder not in real:
            real[folder] = os.path.realpath(folder)
        for path in _with_target(os.path.join(real[folder], name)):
            within = any(inside(path, root) and path != root for root in roots)
            if within and not any(inside(path, other) for other in seen):
                seen.append(path)
                yield one._replace(path=path)


def _with_target(path: str) -> tuple[str, ...]:
    return (path, os.path.realpath(path)) if os.path.islink(path) and os.path.exists(path) else (path,)


def _candidates(confinement: Confinement, roots: tuple[str, ...]) -> Iterator[_Candidate]:
    for root in roots:
        if os.path.isfile(git := os.path.join(root, ".git")):
            yield _Candidate(git, "nothing")
        yield from (_Candidate(os.path.join(root, name), "folder") for name in _LOCKED_NAMES)
        yield from (_Candidate(os.path.join(root, name), "nothing") for name in _IF_THERE_NAMES)
        for module in _submodules(root):
            yield _Candidate(os.path.join(module, "config"), "nothing")
            yield _Candidate(os.path.join(module, "hooks"), "folder")
    yield from (_Candidate(path, "folder", shut=True) for path in confinement.read_only)
    yield from (_Candidate(path, stand_in, shut=True) for path, stand_in in start_up_paths())


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
