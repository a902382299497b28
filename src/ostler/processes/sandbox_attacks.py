"""Program run inside the sandbox by the self-test: tries everything that must be blocked.

Uses only the standard library and prints one line per attempt; `sandbox_selftest` checks the real effects.
"""

import contextlib
import ctypes
import errno
import json
import os
import socket
from collections.abc import Callable
from pathlib import Path

_PTRACE_ATTACH = 16
_KERNEL_SETTING = "/proc/sys/vm/swappiness"


def main(targets: str) -> None:
    for name, attempt in _attacks(json.loads(targets)).items():
        try:
            attempt()
            outcome = "went through"
        except Exception as error:
            outcome = getattr(error, "strerror", None) or str(error)
        print(json.dumps([name, outcome]), flush=True)  # noqa: T201


def _attacks(targets: dict[str, str]) -> dict[str, Callable[[], object]]:
    file, outside, workspace = targets["file"], targets["outside"], targets["workspace"]
    victim = int(targets["victim"])
    return {
        "write": lambda: _write(file),
        "create": lambda: _write(os.path.join(outside, "new")),
        "truncate": lambda: os.truncate(file, 0),
        "through a symbolic link": lambda: _write_through_link(file, os.path.join(workspace, "link")),
        "through a hard link": lambda: _write_through_hard_link(file, os.path.join(workspace, "hard")),
        "rename": lambda: os.rename(file, os.path.join(workspace, "moved")),
        "delete": lambda: os.unlink(file),
        "chmod": lambda: os.chmod(file, 0o777),
        "read a home directory": lambda: Path(targets["home"], "private").read_text(),
        "list a home directory": lambda: _list(targets["home"]),
        "run as its owner": lambda: os.chmod(_create(os.path.join(workspace, "as-owner")), 0o4755),
        "TCP": lambda: socket.create_connection(("127.0.0.1", int(targets["tcp"])), 2).sendall(b"x"),
        "UDP": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(
            b"x", ("127.0.0.1", int(targets["udp"]))
        ),
        "abstract socket": lambda: socket.socket(socket.AF_UNIX).connect("\0" + targets["abstract"]),
        "socket file": lambda: socket.socket(socket.AF_UNIX).connect(targets["socket"]),
        "datagram socket file": lambda: _send_datagram(targets["datagram"]),
        "datagram socket file, from a pair": lambda: _send_datagram_from_pair(targets["datagram"]),
        "kill": lambda: os.kill(victim, 9),
        "ptrace": lambda: _call_libc("ptrace", _PTRACE_ATTACH, victim, 0, 0),
        "kernel settings": lambda: _write(
            _KERNEL_SETTING, Path(_KERNEL_SETTING).read_text()
        ),  # the current value, so that a success changes nothing
        "mount": lambda: _call_libc("mount", b"tmpfs", os.fsencode(workspace), b"tmpfs", 0, None),
        "protected hooks": lambda: _write(os.path.join(workspace, ".git/hooks/pre-commit")),
        "protected config": lambda: _write(os.path.join(workspace, ".git/config")),
        "protected and absent": lambda: _write(os.path.join(workspace, ".mcp.json")),
        "protected by way of its folder": lambda: _replace_folder(os.path.join(workspace, ".git")),
    }


def _write(path: str, text: str = "intruder") -> None:
    with open(path, "a") as file:
        file.write(text)


def _list(folder: str) -> None:
    if not os.listdir(folder):
        raise OSError(errno.ENOENT, "it is empty")


def _create(path: str) -> str:
    _write(path)
    return path


def _send_datagram(path: str) -> None:
    socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"x", path)


def _send_datagram_from_pair(path: str) -> None:
    socket.socketpair(type=socket.SOCK_DGRAM)[0].sendto(b"x", path)


def _write_through_link(target: str, link: str) -> None:
    with contextlib.suppress(FileExistsError):
        os.symlink(target, link)
    _write(link)


def _write_through_hard_link(target: str, link: str) -> None:
    os.link(target, link)
    _write(link)


def _replace_folder(folder: str) -> None:
    os.rename(folder, folder + "-away")
    os.mkdir(folder)


def _call_libc(name: str, *arguments: object) -> None:
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
