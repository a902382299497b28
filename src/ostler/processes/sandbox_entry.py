"""Enters the sandbox from inside the spawner process. Standard library only.

Runs in the spawner's process, so it does not use `typing` (see `spawner`). Raises `OSError` if a step fails.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PDEATHSIG, DUMPABLE, NAME, CHILD_SUBREAPER = 1, 4, 15, 36
_SECCOMP, _NO_NEW_PRIVS = 22, 38
_LANDLOCK_CREATE, _LANDLOCK_ADD_RULE, _LANDLOCK_RESTRICT = 444, 445, 446
_CAPABILITY_VERSION_3 = 0x20080522


def enter_sandbox(plan: dict[str, Any]) -> None:
    if plan.get("landlock") or plan.get("seccomp"):
        _check_result(prctl(_NO_NEW_PRIVS, 1), "no_new_privs")
    if "capabilities" in plan:
        _limit_capabilities(plan["capabilities"])
    if plan.get("landlock"):
        _enter_landlock(plan["landlock"])
    if plan.get("seccomp"):
        _enter_seccomp(plan["seccomp"])


def _limit_capabilities(allowed: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    header = struct.pack("<Ii", _CAPABILITY_VERSION_3, 0)
    data = ctypes.create_string_buffer(24)
    _check_result(libc.capget(header, data), "capget")
    words = [word & (allowed >> (32 if i >= 3 else 0)) for i, word in enumerate(struct.unpack("<6I", data.raw[:24]))]
    _check_result(libc.capset(header, struct.pack("<6I", *words)), "capset")


def _enter_landlock(plan: dict[str, Any]) -> None:
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    attributes: bytes = plan["ruleset"]
    ruleset = _check_result(
        syscall(_LANDLOCK_CREATE, attributes, ctypes.c_size_t(len(attributes)), 0), "landlock ruleset"
    )
    for path, access in plan["rules"]:
        try:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        rule = struct.pack("<Qi", access, fd)
        _check_result(syscall(_LANDLOCK_ADD_RULE, ruleset, 1, rule, 0), f"landlock rule for {path}")
        os.close(fd)
    _check_result(syscall(_LANDLOCK_RESTRICT, ruleset, 0), "landlock")
    os.close(ruleset)


def _enter_seccomp(program: bytes) -> None:
    class _Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))

    filter_program = _Program(len(program) // 8, program)
    _check_result(prctl(_SECCOMP, 2, ctypes.byref(filter_program)), "seccomp")


def prctl(option: int, value: Any, more: Any = 0) -> int:
    if sys.platform != "linux":
        return 0
    result: int = ctypes.CDLL(None, use_errno=True).prctl(option, value, more, 0, 0)
    return result


def _check_result(result: int, action: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{action}: {os.strerror(number)}")
    return result
