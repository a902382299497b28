"""Builds a Landlock ruleset for file writes, TCP and signals; needs no helper program.

Landlock cannot revoke a permission inside a permitted folder, so protected paths in a writable folder are checked
afterwards, not locked. In a home directory the existing entries are made writable instead of the folder, so that
nothing new can be created next to the startup files. For the same reason what is created next to a hidden home later
cannot be read. Landlock does not cover UDP and socket files; without network access the seccomp filter allows only
local sockets and no connections. It does not cover chmod and chown either: the filter blocks them if no workspace is
writable; otherwise they are allowed, because many builds need them.
"""

import os
import struct
import sys
from typing import Any

from ostler.processes import seccomp
from ostler.processes.child_python import program_paths
from ostler.processes.sandbox_policy import SandboxLayout, is_inside

_WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_BLOCK, _REFER, _TRUNCATE, _IOCTL_DEV = 1 << 6, 1 << 11, 1 << 13, 1 << 14, 1 << 15
_IN_FOLDERS = 1 << 4 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 12 | _REFER
_WRITE = _WRITE_FILE | _TRUNCATE
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx")

_TRUNCATE_ABI, _TCP_ABI, _IOCTL_ABI, _SCOPE_ABI = 3, 4, 5, 6
# Kept when running as root: they only affect files restricted by other rules, and processes in the sandbox.
CAPABILITIES = sum(1 << number for number in (0, 1, 3, 4, 6, 7, 10))
_CAP_KILL = 1 << 5


def abi() -> int:
    """Return the Landlock ABI version of the kernel, or 0 if it has none."""
    if sys.platform != "linux":
        return 0
    import ctypes

    version: int = ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1)
    return max(version, 0)


def unavailable_reason() -> str:
    """Return why Landlock cannot be used here, or an empty string."""
    version = abi()
    if version == 0:
        return "Landlock is missing or disabled in this kernel"
    if version < _TRUNCATE_ABI:
        return f"Landlock version {version} cannot block truncation; version 3 is required"
    if not seccomp.is_supported():
        return f"seccomp is not supported on {seccomp.machine()}"
    return ""


def plan(layout: SandboxLayout) -> dict[str, Any]:
    """Return the sandbox plan that the spawner applies to itself, as plain data."""
    version = abi()
    scoped = 3 if version >= _SCOPE_ABI else 0
    handled = _WRITE | _IN_FOLDERS | _MAKE_CHAR | _MAKE_BLOCK
    if version >= _IOCTL_ABI:
        handled |= _IOCTL_DEV
    writable = _writable_paths(layout)
    hidden = tuple(path for path in layout.hidden if not any(is_inside(path, folder) for folder in writable))
    if hidden or layout.homes:
        handled |= _READ_FILE
    if layout.homes:
        handled |= _READ_DIR
    rules = [
        (path, _WRITE | (_IN_FOLDERS if os.path.isdir(path) else 0)) for path in (*writable, layout.temp, "/dev/shm")
    ]
    rules += [(path, (_WRITE | _IOCTL_DEV) & handled) for path in _DEVICES]
    rules += _read_rules(layout, hidden, handled & (_READ_FILE | _READ_DIR))
    tcp = 0 if layout.network or version < _TCP_ABI else 3
    ruleset = struct.pack("<QQQ", handled, tcp, scoped)[
        : 24 if version >= _SCOPE_ABI else 16 if version >= _TCP_ABI else 8
    ]
    families = None if layout.network else (1,)
    return {
        "guard": True,
        "landlock": {"ruleset": ruleset, "rules": rules},
        "seccomp": seccomp.build_filter(families=families, connect=layout.network, attributes=bool(layout.writable)),
        "capabilities": CAPABILITIES | (_CAP_KILL if scoped else 0),
    }


def _read_rules(layout: SandboxLayout, hidden: tuple[str, ...], handled: int) -> list[tuple[str, int]]:
    """Return rules for reading everything but homes and hidden paths; the folders around homes cannot be listed."""
    shown = [*_all_except("/", layout.homes)]
    in_homes = (*program_paths(), *layout.visible, *layout.readable, *layout.writable, layout.temp)
    shown += [path for path in in_homes if any(is_inside(path, home) for home in layout.homes)]
    rules = [(path, handled & _READ_DIR) for path in shown if os.path.isdir(path)]
    for path in shown:
        around = any(is_inside(other, path) for other in hidden)
        rules += [(part, handled & _READ_FILE) for part in (_all_except(path, hidden) if around else [path])]
    return [rule for rule in rules if rule[1]]


def scope_only_plan() -> dict[str, Any]:
    """Return a plan that only restricts signals and abstract sockets; empty if not supported."""
    return {"ruleset": struct.pack("<QQQ", 0, 0, 3), "rules": []} if abi() >= _SCOPE_ABI else {}


def _writable_paths(layout: SandboxLayout) -> list[str]:
    """Return the writable paths: whole folders, or the entries of a folder that contains never-writable paths."""
    writable: list[str] = []
    excluded = (*layout.never_writable, *layout.hidden)
    for root in layout.writable:
        writable += (
            _all_except(root, excluded) if any(is_inside(path, root) for path in layout.never_writable) else [root]
        )
    return writable


def _all_except(folder: str, excluded: tuple[str, ...]) -> list[str]:
    """Return paths that together cover everything in the folder except the excluded ones."""
    found: list[str] = []
    try:
        with os.scandir(folder) as scan:
            entries = [entry.path for entry in scan if not entry.is_symlink()]
    except OSError:
        return found
    for path in entries:
        if path in excluded:
            continue
        if any(is_inside(excluded_path, path) for excluded_path in excluded):
            found += _all_except(path, excluded)
        else:
            found.append(path)
    return found
