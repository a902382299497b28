"""Binding of the openat2 system call, which Python lacks: opens a path only if it stays below a directory."""

import os
import struct
import sys
from collections.abc import Callable
from functools import cache

_SYSCALL_NUMBER = 437  # the same on all Linux architectures
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_BENEATH = 0x08

Openat2 = Callable[[int, str, int], int]


@cache
def load_openat2() -> Openat2 | None:
    """Return openat2 as `(directory, path, flags) -> descriptor`, or None if it is missing or blocked."""
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    syscall = ctypes.CDLL(None, use_errno=True).syscall
    syscall.restype = ctypes.c_long
    syscall.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t)

    def call(directory: int, path: str, flags: int) -> int:
        how = struct.pack("=QQQ", flags | os.O_CLOEXEC, 0, _RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS)
        fd: int = syscall(_SYSCALL_NUMBER, directory, os.fsencode(path), how, len(how))
        if fd < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), path)
        return fd

    return call if _is_supported(call) else None


def _is_supported(call: Openat2) -> bool:
    here = os.open("/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.close(call(here, ".", os.O_RDONLY | os.O_DIRECTORY))
    except OSError:
        return False
    finally:
        os.close(here)
    return True
