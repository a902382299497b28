"""Landlock: the kernel's own jail for writes, TCP and signals, for any user and without a helper program.

It cannot take back inside a folder what it gave for the folder, so protected paths in a writable folder are watched,
not locked. In a home, where start-up files lie, what lies there is given instead of the folder: nothing new can be made
in it. It knows no UDP and no sockets in the file system: the filter of `seccomp` stands in, so that without a
grant there are no sockets but local ones, and none may be connected. It does not see chmod and chown: the filter
refuses them where no workspace is writable, and elsewhere they stay open, since half of all builds need them.
"""

import os
import struct
import sys
from typing import Any

from ostler.processes import seccomp
from ostler.processes.sandbox_policy import SandboxLayout, is_inside

_WRITE_FILE, _READ_FILE = 1 << 1, 1 << 2
_MAKE_CHAR, _MAKE_BLOCK, _REFER, _TRUNCATE, _IOCTL_DEV = 1 << 6, 1 << 11, 1 << 13, 1 << 14, 1 << 15
_IN_FOLDERS = 1 << 4 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 12 | _REFER
_WRITE = _WRITE_FILE | _TRUNCATE
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx")

_TRUNCATE_ABI, _TCP_ABI, _IOCTL_ABI, _SCOPE_ABI = 3, 4, 5, 6
# As root: what acts on files the other rules already confine, and on processes of the sandbox itself.
CAPABILITIES = sum(1 << number for number in (0, 1, 3, 4, 6, 7, 10))
_CAP_KILL = 1 << 5


def abi() -> int:
    """The version the kernel speaks; 0 when it has none."""
    if sys.platform != "linux":
        return 0
    import ctypes

    version: int = ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1)
    return max(version, 0)


def unavailable_reason() -> str:
    """Why it cannot be used here; empty when it can."""
    version = abi()
    if version == 0:
        return "the kernel has no Landlock or it is switched off"
    if version < _TRUNCATE_ABI:
        return f"the kernel's Landlock (version {version}) cannot stop files from being emptied; version 3 is needed"
    if not seccomp.is_supported():
        return f"no system call filter for {seccomp.machine()} machines"
    return ""


def plan(layout: SandboxLayout) -> dict[str, Any]:
    """What the keeper has to do to itself, as plain data."""
    version = abi()
    scoped = 3 if version >= _SCOPE_ABI else 0
    handled = _WRITE | _IN_FOLDERS | _MAKE_CHAR | _MAKE_BLOCK
    if version >= _IOCTL_ABI:
        handled |= _IOCTL_DEV
    given = _writable_paths(layout)
    hidden = tuple(path for path in layout.hidden if not any(is_inside(path, folder) for folder in given))
    if hidden:
        handled |= _READ_FILE
    rules = [(path, _WRITE | (_IN_FOLDERS if os.path.isdir(path) else 0)) for path in (*given, layout.temp, "/dev/shm")]
    rules += [(path, (_WRITE | _IOCTL_DEV) & handled) for path in _DEVICES]
    if hidden:
        rules += [(path, _READ_FILE) for path in _all_except("/", hidden)]
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


def scope_only_plan() -> dict[str, Any]:
    """Landlock for nothing but signals and abstract sockets, which stay inside; empty where it cannot."""
    return {"ruleset": struct.pack("<QQQ", 0, 0, 3), "rules": []} if abi() >= _SCOPE_ABI else {}


def _writable_paths(layout: SandboxLayout) -> list[str]:
    """What may be written to: the folders as they are, or what lies in one that holds what must stay shut."""
    given: list[str] = []
    kept = (*layout.never_writable, *layout.hidden)
    for root in layout.writable:
        given += _all_except(root, kept) if any(is_inside(path, root) for path in layout.never_writable) else [root]
    return given


def _all_except(folder: str, excluded: tuple[str, ...]) -> list[str]:
    """Paths that together hold everything in the folder but the hidden ones."""
    found: list[str] = []
    try:
        with os.scandir(folder) as there:
            entries = [entry.path for entry in there if not entry.is_symlink()]
    except OSError:
        return found
    for path in entries:
        if path in excluded:
            continue
        if any(is_inside(secret, path) for secret in excluded):
            found += _all_except(path, excluded)
        else:
            found.append(path)
    return found
