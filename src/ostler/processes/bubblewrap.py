"""Builds the bubblewrap command line of a sandbox."""

import os
import stat
from collections.abc import Iterable, Iterator
from typing import Any

from ostler.processes import landlock, seccomp
from ostler.processes.child_python import program_paths
from ostler.processes.command_environment import path_without
from ostler.processes.sandbox_policy import SandboxLayout, is_inside, links_on

# They contain sockets of daemons and of the desktop, and temporary files of other users.
_MASKED_FOLDERS = ("/run", "/tmp", "/var/tmp")
# Needed from /run on some systems: the programs themselves and graphics drivers.
_NEEDED_RUN_PATHS = ("/run/current-system", "/run/opengl-driver", "/run/booted-system")
_CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "NET_BIND_SERVICE")


def unavailable_reason(layout: SandboxLayout | None = None) -> str:
    """Return why bubblewrap cannot be used here, as far as known without trying, or an empty string."""
    return "" if find_bwrap(layout) else "bwrap is not installed"


def find_bwrap(layout: SandboxLayout | None = None) -> str:
    """Return the path of bwrap, or an empty string. A bwrap in the workspace or the current folder is ignored."""
    import shutil

    folders = (*layout.writable, *layout.visible) if layout else (os.path.realpath("."),)
    untrusted = [path for path in folders if path != "/"]
    return shutil.which("bwrap", path=path_without(os.environ.get("PATH", os.defpath), untrusted)) or ""


def plan(layout: SandboxLayout) -> dict[str, Any]:
    """Return the plan that the spawner applies inside, in addition to the namespaces."""
    plan: dict[str, Any] = {}
    if layout.network and (scope := landlock.scope_only_plan()):
        plan["landlock"] = scope  # a shared network gives access to abstract sockets of the desktop
    if seccomp.is_supported():
        families = None if layout.network else seccomp.local_families()
        plan["seccomp"] = seccomp.build_filter(families=families, connect=True, attributes=True)
    return plan


def wrapper_command(layout: SandboxLayout) -> list[str]:
    """Return the bwrap command line to put before the spawner's."""
    arguments = [find_bwrap(layout), "--die-with-parent", "--as-pid-1", "--unshare-pid", "--unshare-ipc"]
    if os.geteuid() == 0:
        # No user namespace for root: in it, files of other users would have no owner.
        arguments += ["--cap-drop", "ALL", *(word for name in _CAPABILITIES for word in ("--cap-add", f"CAP_{name}"))]
    else:
        arguments += ["--unshare-user"]
    if not layout.network:
        arguments += ["--unshare-net"]
    # A writable folder around a masked one, such as "/", comes first, or it would unmask it again.
    wide = [
        root for root in layout.writable if any(is_inside(mask, root) for mask in ("/dev", "/proc", *_MASKED_FOLDERS))
    ]
    arguments += ["--ro-bind", "/", "/"]
    arguments += _bind_arguments(wide)
    # Root could change kernel settings through a writable /proc, even without capabilities.
    arguments += ["--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc"]
    arguments += _mask_arguments(layout)
    arguments += _bind_arguments([path for path in (*layout.writable, *layout.must_not_move) if path not in wide])
    for path in layout.locked:
        arguments += ["--ro-bind", path, path]
    # A path where no placeholder could be created cannot be created by a command either.
    for path in layout.must_not_exist:
        arguments += ["--ro-bind-try", path, path]
    arguments += _hide_arguments(layout)
    for home in _emptied_homes(layout):
        arguments += ["--remount-ro", home]
    return [*arguments, "--chdir", "/", "--"]


def _bind_arguments(paths: list[str]) -> list[str]:
    return [word for path in paths for word in ("--bind", path, path)]


def _mask_arguments(layout: SandboxLayout) -> list[str]:
    arguments = ["--tmpfs", "/run", *_home_arguments(layout)]
    for path in ("/tmp", "/var/tmp", layout.temp):
        if os.path.isdir(path) and not os.path.islink(path):
            arguments += ["--bind", layout.temp, path]
    visible = {path for path in _visible_paths(layout) if _is_masked(path, layout)}
    for path in sorted(visible):
        arguments += ["--ro-bind-try", path, path]
    return arguments


def _home_arguments(layout: SandboxLayout) -> list[str]:
    """Return the arguments for empty home directories; a symlink that leads to the user's own stays."""
    homes = _emptied_homes(layout)
    arguments = [word for home in homes for word in ("--tmpfs", home)]
    own = os.path.expanduser("~")
    if any(is_inside(os.path.realpath(own), home) for home in homes):
        arguments += ["--dir", os.path.realpath(own)]
    links = [link for link in links_on(own) if any(is_inside(link, home) for home in homes)]
    return arguments + [word for link in links for word in ("--symlink", os.readlink(link), link)]


def _emptied_homes(layout: SandboxLayout) -> list[str]:
    return [home for home in layout.homes if not any(is_inside(home, mask) for mask in _MASKED_FOLDERS)]


def _is_masked(path: str, layout: SandboxLayout) -> bool:
    return any(is_inside(path, mask) for mask in (*_MASKED_FOLDERS, *layout.homes))


def _visible_paths(layout: SandboxLayout) -> Iterator[str]:
    yield from _NEEDED_RUN_PATHS
    yield os.path.realpath("/etc/resolv.conf")
    yield from (*program_paths(), *layout.visible, *layout.readable)


def _hide_arguments(layout: SandboxLayout) -> list[str]:
    arguments: list[str] = []
    shown = (*layout.writable, *_visible_paths(layout))
    for path in layout.hidden:
        if _is_masked(path, layout) and not any(is_inside(path, folder) for folder in shown):
            continue
        if os.path.isdir(path):
            arguments += ["--tmpfs", path, "--remount-ro", path]
        else:
            arguments += ["--ro-bind", "/dev/null", path]
    for path in _exposed(_socket_paths(), layout):
        arguments += ["--ro-bind", "/dev/null", path]
    return arguments


def bound_sockets() -> frozenset[tuple[bytes, bytes]]:
    """Return the inode and path of each socket that accepts connections or messages at a path."""
    try:
        with open("/proc/net/unix", "rb") as file:
            rows = [line.rstrip(b"\n").split(None, 7) for line in file]
    except OSError:
        return frozenset()
    # Flags and type: accepted connections have the path of their listener, but nothing can connect to them.
    return frozenset(
        (row[6], row[7])
        for row in rows
        if len(row) == 8 and row[7].startswith(b"/") and (row[3] == b"00010000" or row[4] == b"0002")
    )


def exposes(layout: SandboxLayout, sockets: Iterable[tuple[bytes, bytes]]) -> bool:
    """Return whether commands could connect to one of these sockets, which were bound after the sandbox was opened."""
    return bool(_exposed(_existing_paths(sockets), layout))


def _exposed(paths: list[str], layout: SandboxLayout) -> list[str]:
    """Return the paths that must be hidden; sockets in a writable folder belong to the work."""

    def is_reachable(path: str) -> bool:
        visible = (*layout.visible, *layout.readable)
        writable = any(is_inside(path, folder) for folder in layout.writable)
        return not writable and (not _is_masked(path, layout) or any(is_inside(path, folder) for folder in visible))

    return [path for path in paths if is_reachable(path)]


def _socket_paths() -> list[str]:
    """Return the socket files of the system; a socket in a read-only folder still accepts connections."""
    return _existing_paths(bound_sockets())


def _existing_paths(sockets: Iterable[tuple[bytes, bytes]]) -> list[str]:
    names = {os.path.realpath(os.fsdecode(name)) for _, name in sockets}
    return sorted(name for name in names if _is_socket(name))


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)
    except OSError:
        return False
