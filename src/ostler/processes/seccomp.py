"""Builds the seccomp filter of sandboxed commands.

The BPF program is packed directly from tables of system call numbers for x86-64 and arm64, so no library is needed.
"""

import errno
import os
import socket
import struct

# (x86-64, arm64); -1 if the architecture has no such call.
_REFUSED_CALLS = {
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "move_mount": (429, 429),
    "open_tree": (428, 428),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "unshare": (272, 97),
    "setns": (308, 268),
    "open_by_handle_at": (304, 265),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
}
# Calls that change file attributes; a filter cannot see of which file.
_ATTRIBUTE_CALLS = {
    "chmod": (90, -1),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, -1),
    "fchown": (93, 55),
    "lchown": (94, -1),
    "fchownat": (260, 54),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
}
# Calls that set a file mode, with the index of that argument: a setuid program would outlive the sandbox.
_MODE_CALLS = {
    "chmod": (90, -1, 1),
    "fchmod": (91, 52, 1),
    "fchmodat": (268, 53, 2),
    "fchmodat2": (452, 452, 2),
    "creat": (85, -1, 1),
    "mknod": (133, -1, 1),
    "mknodat": (259, 33, 2),
}
_OPEN_CALLS = {
    "open": (2, -1, 1),
    "openat": (257, 56, 2),
}  # index of the flags; the next argument is the mode of a new file
# Reported as missing, so that programs fall back to older calls whose arguments a filter can check.
_REPORTED_MISSING = {
    "clone3": (435, 435),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "openat2": (437, 437),
}
_CLONE, _SOCKET, _SOCKETPAIR, _CONNECT, _IOCTL = (56, 220), (41, 198), (53, 199), (42, 203), (16, 29)

_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
_X32_BIT = 0x40000000
_NEW_USER_NAMESPACE = 0x10000000
_SETUID_BIT = 0o4000
_CREATE_BITS = 0o20000100  # O_CREAT, O_TMPFILE
_INJECTIONS = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX: inject input into a terminal

_LOAD, _AND, _EQUAL, _AT_LEAST, _HAS_BIT, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000


def machine() -> str:
    return os.uname().machine


def is_supported() -> bool:
    return machine() in _ARCHITECTURES


def build_filter(*, families: tuple[int, ...] | None, connect: bool, attributes: bool) -> bytes:
    """Return the filter program.

    Only sockets of `families` can be created (None: any). Without `connect`, sockets cannot be connected, and socket
    types that send without connecting cannot be created. Without `attributes`, modes, owners and extended attributes
    cannot be changed; with it, only the setuid bit is blocked.
    """
    architecture, column = _ARCHITECTURES[machine()]
    code = [
        _instruction(_LOAD, _ARCHITECTURE_AT),
        _instruction(_EQUAL, architecture, yes=1),
        _instruction(_RETURN, _KILL),
    ]
    code.append(_instruction(_LOAD, _NUMBER_AT))
    if column == 0:
        code += [_instruction(_AT_LEAST, _X32_BIT, no=1), _instruction(_RETURN, _ERROR | errno.ENOSYS)]
    refused = [
        *_REFUSED_CALLS.values(),
        *(_ATTRIBUTE_CALLS.values() if not attributes else ()),
        *(() if connect else (_CONNECT,)),
    ]
    for numbers in refused:
        code += _refuse(numbers[column], errno.EPERM)
    for numbers in _REPORTED_MISSING.values():
        code += _refuse(numbers[column], errno.ENOSYS)
    code += _check_call(_CLONE[column], [_load_argument(0), *_refuse_bit(_NEW_USER_NAMESPACE)])
    code += _check_call(
        _IOCTL[column], [_load_argument(1), *(step for number in _INJECTIONS for step in _refuse(number, errno.EPERM))]
    )
    code += _refuse_setuid(column)
    types = (
        []
        if connect
        else [_load_argument(1), _instruction(_AND, 0xF), *_allow_only((socket.SOCK_STREAM, socket.SOCK_SEQPACKET))]
    )
    if families is not None:
        code += _check_call(_SOCKET[column], [_load_argument(0), *_allow_only(families), *types])
    code += _check_call(_SOCKETPAIR[column], types)
    return b"".join([*code, _instruction(_RETURN, _ALLOW)])


def local_families() -> tuple[int, ...]:
    """Return the socket families that stay on this machine inside a network namespace."""
    return (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK)


def _refuse_setuid(column: int) -> list[bytes]:
    code: list[bytes] = []
    for *numbers, index in _MODE_CALLS.values():
        code += _check_call(numbers[column], [_load_argument(index), *_refuse_bit(_SETUID_BIT)])
    for *numbers, index in _OPEN_CALLS.values():
        check = [_load_argument(index + 1), *_refuse_bit(_SETUID_BIT)]
        code += _check_call(
            numbers[column], [_load_argument(index), _instruction(_HAS_BIT, _CREATE_BITS, no=len(check)), *check]
        )
    return code


def _refuse(number: int, error: int) -> list[bytes]:
    return [] if number < 0 else [_instruction(_EQUAL, number, no=1), _instruction(_RETURN, _ERROR | error)]


def _refuse_bit(bit: int) -> list[bytes]:
    return [_instruction(_HAS_BIT, bit, no=1), _instruction(_RETURN, _ERROR | errno.EPERM)]


def _allow_only(values: tuple[int, ...]) -> list[bytes]:
    """Continue if the loaded value is one of `values`, else return EACCES."""
    tests = [_instruction(_EQUAL, value, yes=len(values) - index) for index, value in enumerate(values)]
    return [*tests, _instruction(_RETURN, _ERROR | errno.EACCES)]


def _check_call(number: int, checks: list[bytes]) -> list[bytes]:
    """Apply checks to one call and allow it if they all pass."""
    if number < 0:
        return []
    body = [*checks, _instruction(_RETURN, _ALLOW)]
    return [_instruction(_EQUAL, number, no=len(body)), *body]


def _load_argument(index: int) -> bytes:
    """Load the low half of an argument; the kernel ignores the rest in these calls."""
    return _instruction(_LOAD, _ARGUMENTS_AT + 8 * index)


def _instruction(code: int, value: int, *, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("<HBBI", code, yes, no, value)
