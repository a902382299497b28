"""The one system call Python lacks: openat2, which resolves a whole path under a directory or refuses, in one step."""

import os
import struct
import sys
from collections.abc import Callable
from functools import cache

_SYSCALL_NUMBER = 437  # the same on every Linux architecture since calls got common numbers
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_BENEATH = 0x08

Openat2 = Callable[[int, str, int], int]


@cache
def load_openat2() -> Openat2 | None:
    """`(directory, path, flags) -> descriptor` by openat2, or None where the kernel (or its guard) has none."""
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
