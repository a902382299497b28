"""The seccomp filter, run by a small BPF interpreter: the result of each call on each architecture."""

import errno
import struct

import pytest

from ostler.processes import seccomp

_ALLOW, _KILL = "allow", "kill"
_X86, _ARM = 0xC000003E, 0xC00000B7


def _verdict(program: bytes, architecture: int, number: int, *arguments: int):
    data = struct.pack("<IIQ6Q", number, architecture, 0, *arguments, *[0] * (6 - len(arguments)))
    steps = [struct.unpack_from("<HBBI", program, index) for index in range(0, len(program), 8)]
    index, register = 0, 0
    while True:
        code, yes, no, value = steps[index]
        index += 1
        if code == 0x06:
            return _KILL if value == 0x80000000 else _ALLOW if value == 0x7FFF0000 else errno.errorcode[value & 0xFFFF]
        if code == 0x20:
            (register,) = struct.unpack_from("<I", data, value)
        elif code == 0x54:
            register &= value
        else:
            jumps = {0x15: register == value, 0x35: register >= value, 0x45: bool(register & value)}[code]
            index += yes if jumps else no


def _program(monkeypatch, machine, **options):
    monkeypatch.setattr(seccomp, "machine", lambda: machine)
    return seccomp.build_filter(**{"families": (1,), "connect": False, "attributes": True, **options})


@pytest.mark.req("SH-8")
@pytest.mark.parametrize(
    ("call", "x86", "arm", "arguments", "expected"),
    [
        ("read", 0, 63, (), _ALLOW),
        ("mount", 165, 40, (), "EPERM"),
        ("unshare", 272, 97, (), "EPERM"),
        ("setns", 308, 268, (), "EPERM"),
        ("open_by_handle_at", 304, 265, (), "EPERM"),
        ("bpf", 321, 280, (), "EPERM"),
        ("reboot", 169, 142, (), "EPERM"),
        ("io_uring_setup", 425, 425, (), "ENOSYS"),
        ("clone3", 435, 435, (), "ENOSYS"),
        ("clone", 56, 220, (17,), _ALLOW),
        ("clone with a user namespace", 56, 220, (0x10000011,), "EPERM"),
        ("socket AF_UNIX, stream", 41, 198, (1, 1), _ALLOW),
        ("socket AF_UNIX, stream, close on exec", 41, 198, (1, 0o2000001), _ALLOW),
        ("socket AF_UNIX, datagram", 41, 198, (1, 2), "EACCES"),
        ("socket AF_UNIX, raw", 41, 198, (1, 3), "EACCES"),
        ("socketpair, stream", 53, 199, (1, 1), _ALLOW),
        ("socketpair, datagram", 53, 199, (1, 2), "EACCES"),
        ("socket AF_INET", 41, 198, (2,), "EACCES"),
        ("socket AF_INET6", 41, 198, (10,), "EACCES"),
        ("socket AF_VSOCK", 41, 198, (40,), "EACCES"),
        ("socket AF_INET in high bits", 41, 198, (1 << 32 | 2,), "EACCES"),
        ("connect", 42, 203, (), "EPERM"),
        ("ioctl TIOCSTI", 16, 29, (0, 0x5412), "EPERM"),
        ("ioctl TIOCSTI with high bits", 16, 29, (0, 1 << 32 | 0x5412), "EPERM"),
        ("ioctl TCGETS", 16, 29, (0, 0x5401), _ALLOW),
        ("ptrace", 101, 117, (), _ALLOW),
        ("fchmodat", 268, 53, (0, 0, 0o755), _ALLOW),
        ("fchmodat, setuid", 268, 53, (0, 0, 0o4755), "EPERM"),
        ("fchmod, setgid, which folders have", 91, 52, (0, 0o2775), _ALLOW),
        ("fchmod, setuid", 91, 52, (0, 0o104755), "EPERM"),
        ("mknodat, setuid", 259, 33, (0, 0, 0o104755), "EPERM"),
        ("openat", 257, 56, (0, 0, 0o101, 0o644), _ALLOW),
        ("openat, a new setuid file", 257, 56, (0, 0, 0o101, 0o4755), "EPERM"),
        ("openat, an unnamed setuid file", 257, 56, (0, 0, 0o20200002, 0o4755), "EPERM"),
        ("openat, an ignored mode", 257, 56, (0, 0, 0o2, 0o4755), _ALLOW),
        ("openat2", 437, 437, (), "ENOSYS"),
    ],
)
def test_result_of_each_call(monkeypatch, call, x86, arm, arguments, expected):
    assert _verdict(_program(monkeypatch, "x86_64"), _X86, x86, *arguments) == expected
    assert _verdict(_program(monkeypatch, "aarch64"), _ARM, arm, *arguments) == expected


def test_granted_calls_are_allowed(monkeypatch):
    program = _program(monkeypatch, "x86_64", families=None, connect=True)
    assert _verdict(program, _X86, 41, 2, 2) == _ALLOW and _verdict(program, _X86, 42) == _ALLOW
    assert _verdict(program, _X86, 53, 1, 2) == _ALLOW


@pytest.mark.parametrize("number", [90, 91, 268, 452, 92, 93, 94, 260, 188, 189, 190])
def test_attribute_calls_can_be_blocked(monkeypatch, number):
    assert _verdict(_program(monkeypatch, "x86_64", attributes=False), _X86, number) == "EPERM"


def test_calls_of_other_architectures_are_blocked(monkeypatch):
    program = _program(monkeypatch, "x86_64")
    assert _verdict(program, 0x40000003, 0) == _KILL  # 32 bit, where the call numbers are different
    assert _verdict(program, _X86, 0x40000000 | 41, 2) == "ENOSYS"  # x32


def test_unknown_architecture_is_not_supported(monkeypatch):
    monkeypatch.setattr(seccomp, "machine", lambda: "riscv64")
    assert not seccomp.is_supported()
