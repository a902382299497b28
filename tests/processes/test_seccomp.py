"""The filter program, run by a small BPF machine: what each call gets, on each kind of machine."""

import errno
import struct

import pytest

from ostler.processes import seccomp

_ALLOW, _KILL = "allow", "kill"
_X86, _ARM = 0xC000003E, 0xC00000B7


def _verdict(program: bytes, architecture: int, number: int, *arguments: int):
    data = struct.pack("<IIQ6Q", number, architecture, 0, *arguments, *[0] * (6 - len(arguments)))
    steps = [struct.unpack_from("<HBBI", program, at) for at in range(0, len(program), 8)]
    at, register = 0, 0
    while True:
        code, yes, no, value = steps[at]
        at += 1
        if code == 0x06:
            return _KILL if value == 0x80000000 else _ALLOW if value == 0x7FFF0000 else errno.errorcode[value & 0xFFFF]
        if code == 0x20:
            (register,) = struct.unpack_from("<I", data, value)
        elif code == 0x54:
            register &= value
        else:
            holds = {0x15: register == value, 0x35: register >= value, 0x45: bool(register & value)}[code]
            at += yes if holds else no


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
        ("fchmodat, as its owner", 268, 53, (0, 0, 0o4755), "EPERM"),
        ("fchmod, as its group, which folders have", 91, 52, (0, 0o2775), _ALLOW),
        ("fchmod, as its owner", 91, 52, (0, 0o104755), "EPERM"),
        ("mknodat, as its owner", 259, 33, (0, 0, 0o104755), "EPERM"),
        ("openat", 257, 56, (0, 0, 0o101, 0o644), _ALLOW),
        ("openat, a new file as its owner", 257, 56, (0, 0, 0o101, 0o4755), "EPERM"),
        ("openat, one without a name", 257, 56, (0, 0, 0o20200002, 0o4755), "EPERM"),
        ("openat, a mode that does not count", 257, 56, (0, 0, 0o2, 0o4755), _ALLOW),
        ("openat2", 437, 437, (), "ENOSYS"),
    ],
)
def test_each_call_gets_its_verdict(monkeypatch, call, x86, arm, arguments, expected):
    assert _verdict(_program(monkeypatch, "x86_64"), _X86, x86, *arguments) == expected
    assert _verdict(_program(monkeypatch, "aarch64"), _ARM, arm, *arguments) == expected


def test_grants_open_what_they_name(monkeypatch):
    program = _program(monkeypatch, "x86_64", families=None, connect=True)
    assert _verdict(program, _X86, 41, 2, 2) == _ALLOW and _verdict(program, _X86, 42) == _ALLOW
    assert _verdict(program, _X86, 53, 1, 2) == _ALLOW


@pytest.mark.parametrize("number", [90, 91, 268, 452, 92, 93, 94, 260, 188, 189, 190])
def test_attributes_can_be_refused(monkeypatch, number):
    assert _verdict(_program(monkeypatch, "x86_64", attributes=False), _X86, number) == "EPERM"


def test_calls_of_another_machine_do_not_pass(monkeypatch):
    program = _program(monkeypatch, "x86_64")
    assert _verdict(program, 0x40000003, 0) == _KILL  # 32 bit, where the numbers mean something else
    assert _verdict(program, _X86, 0x40000000 | 41, 2) == "ENOSYS"  # x32


def test_an_unknown_machine_is_told(monkeypatch):
    monkeypatch.setattr(seccomp, "machine", lambda: "riscv64")
    assert not seccomp.is_supported()
