"""The sandbox policy and the real paths it resolves to on this machine."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from ostler.core.errors import ToolError
from ostler.processes.git_discovery import GitDirectoryScanner
from ostler.processes.other_vcs import SETTINGS_PATHS
from ostler.processes.placeholders import is_placeholder
from ostler.processes.startup_files import home_directories, startup_paths

if TYPE_CHECKING:
    from ostler.processes.startup_files import PlaceholderKind

# A command that can write these can run code outside the sandbox later, or change Ostler's permissions.
_LOCKED_NAMES = (".git/hooks", ".git/config", ".ostler", ".mcp.json", ".vscode")
# The same, but an empty placeholder would break git or OpenCode, so they are locked only if they exist.
_LOCKED_IF_PRESENT = (".git/commondir", ".git/config.worktree", *SETTINGS_PATHS, "opencode.json", "opencode.jsonc")
# A home that is or contains one of these is part of the system.
_SYSTEM_FOLDERS = (
    *("/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/nix", "/opt", "/proc", "/run", "/sbin", "/srv"),
    *("/sys", "/tmp", "/usr", "/var", "/usr/bin", "/usr/games", "/usr/lib", "/usr/local", "/usr/sbin", "/usr/share"),
    *("/var/cache", "/var/lib", "/var/run", "/var/spool", "/var/tmp"),
)
_MAX_LINKS = 40


class SandboxPolicy(msgspec.Struct, frozen=True):
    """The files and the network that commands may use. Paths are absolute.

    Without a sandbox, `require` refuses to run commands, and `prefer` runs them with a warning. Everything is read-only
    except the `writable` folders and the temporary one. `read_only` paths stay protected inside writable folders, even
    if they do not exist. `hidden` paths cannot be read. In `homes`, folders with home directories, only the
    workspace, the program itself and `readable` paths can be read.
    """

    mode: Literal["require", "prefer", "off"] = "prefer"
    writable: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    homes: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    network: bool = False


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
    listed as `read_only`. `visible` paths must be readable even in masked folders, `readable` ones also in `homes`, of
    which only those are listed that can be hidden; `shows_home` means that one cannot.
    """

    writable: tuple[str, ...]
    locked: tuple[str, ...]
    must_not_exist: tuple[str, ...]
    must_not_move: tuple[str, ...]
    checked_afterwards: tuple[str, ...]
    never_writable: tuple[str, ...]
    caller_paths: tuple[str, ...]
    hidden: tuple[str, ...]
    homes: tuple[str, ...]
    shows_home: bool
    visible: tuple[str, ...]
    readable: tuple[str, ...]
    network: bool
    temp: str

    @property
    def protected(self) -> tuple[str, ...]:
        return (*self.locked, *self.must_not_exist, *self.checked_afterwards)


def is_inside(path: str, folder: str) -> bool:
    """Return whether a resolved path is the folder itself or inside it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def links_on(path: str) -> Iterator[str]:
    """Yield each symlink that is followed to resolve an absolute path."""
    done, rest = "/", path.split("/")
    for _ in range(_MAX_LINKS):
        while rest:
            part = rest.pop(0)
            if part == "..":
                done = os.path.dirname(done)
            elif part not in ("", "."):
                done = os.path.join(done, part)
                if os.path.islink(done):
                    break
        else:
            return
        yield done
        target = os.readlink(done)
        rest = target.split("/") + rest
        done = "/" if target.startswith("/") else os.path.dirname(done)


def leads_through(path: str, folder: str) -> bool:
    """Return whether a symlink in a folder is followed to resolve an absolute path."""
    real = os.path.realpath(folder) if folder else ""
    return bool(folder) and any(is_inside(link, real) for link in links_on(path))


class _ProtectedPath(NamedTuple):
    """A path to protect, the kind of placeholder it may get, and whether it must never be writable."""

    path: str
    placeholder: "PlaceholderKind"
    never_writable: bool = False


def resolve_layout(policy: SandboxPolicy, temp: str, visible: tuple[str, ...] = ()) -> SandboxLayout:
    roots = tuple(sorted({os.path.realpath(path) for path in policy.writable if os.path.isdir(path)}))
    locked: list[str] = []
    must_not_exist: list[str] = []
    checked_afterwards: list[str] = []
    found = list(_protected_paths(policy, roots))
    homes, shows_home = _hideable_homes(policy, roots)
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
        homes=homes,
        shows_home=shows_home,
        readable=_readable_in_homes(policy, homes, os.path.realpath(temp)),
        visible=tuple(os.path.realpath(path) for path in visible),
        network=policy.network,
        temp=os.path.realpath(temp),
    )


def describe_homes(layout: SandboxLayout) -> str:
    """Return what commands can read in home directories, as part of a sentence."""
    hidden = f"commands cannot read {', '.join(layout.homes)}, except for the workspace, known tools and granted paths"
    shown = "the home directory is readable except for credentials"
    return "; ".join([*([hidden] if layout.homes else []), *([shown] if layout.shows_home else [])]) or shown


def _hideable_homes(policy: SandboxPolicy, roots: tuple[str, ...]) -> tuple[tuple[str, ...], bool]:
    """Return the outermost homes that can be hidden, and whether some must be shown, as part of what is needed."""
    needed = (*roots, *(os.path.realpath(path) for path in policy.readable))
    homes: list[str] = []
    shows_home = False
    for home in sorted({os.path.realpath(path) for path in policy.homes if os.path.isdir(path)}):
        if any(is_inside(home, path) for path in needed) or any(is_inside(path, home) for path in _SYSTEM_FOLDERS):
            shows_home = True
        elif not any(is_inside(home, outer) for outer in homes):
            homes.append(home)
    return tuple(homes), shows_home


def _readable_in_homes(policy: SandboxPolicy, homes: tuple[str, ...], temp: str) -> tuple[str, ...]:
    """Return the outermost readable paths in homes, also those that a symlink leads to.

    Symlinks in the temporary folder do not count, because commands can change them.
    """
    found: list[str] = []
    for path in policy.readable:
        if is_inside(path, temp):
            continue
        folder, name = os.path.split(path)
        found += [os.path.join(os.path.realpath(folder), name), os.path.realpath(path)] if name else []
    outermost: list[str] = []
    for path in sorted(set(found), key=lambda path: path.split("/")):
        in_home = any(is_inside(path, home) for home in homes)
        if in_home and os.path.exists(path) and not (outermost and is_inside(path, outermost[-1])):
            outermost.append(path)
    return tuple(outermost)


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
