"""What this machine offers to hold commands with, and proof by trying: for `ostler doctor sandbox` and for tests."""

import contextlib
import json
import os
import shlex
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ostler.processes import bubblewrap, landlock, seccomp
from ostler.processes.child_python import python_command
from ostler.processes.sandbox import BACKENDS
from ostler.processes.sandbox_policy import SandboxPolicy, SandboxUnavailable
from ostler.processes.session_processes import SessionProcesses

_TEXT = "precious\n"
_MODE = 0o640
_MAX_BASE_LENGTH = 64  # the name of a socket file may have little more than a hundred bytes in all


class Capability(msgspec.Struct, frozen=True):
    """Something this machine may offer, and in what form or why not."""

    name: str
    available: bool
    detail: str


class SelfTestResult(msgspec.Struct, frozen=True):
    """One thing a sandboxed command tried that it must not do, and whether it was held."""

    name: str
    blocked: bool
    detail: str


def probe() -> list[Capability]:
    """What is there, told without starting anything but the version of bubblewrap."""
    no_bubblewrap, no_landlock = bubblewrap.unavailable_reason(), landlock.unavailable_reason()
    version = landlock.abi()
    return [
        Capability("bubblewrap", not no_bubblewrap, no_bubblewrap or _bubblewrap_version()),
        Capability("landlock", not no_landlock, no_landlock or f"version {version}"),
        Capability("landlock for TCP", version >= 4, f"version {version}, from 4 on"),
        Capability("landlock for signals and abstract sockets", version >= 6, f"version {version}, from 6 on"),
        Capability("seccomp", seccomp.is_supported(), "system call filter for this machine"),
    ]


def _bubblewrap_version() -> str:
    answer = subprocess.run(
        [bubblewrap.find_bwrap(), "--version"], capture_output=True, text=True, timeout=5, check=False
    )
    return answer.stdout.strip() or answer.stderr.strip()


async def run_selftest(
    backends: tuple[str, ...] = BACKENDS, *, base: str = "", network: bool = False
) -> list[SelfTestResult]:
    """Put a hostile program into the sandbox and look at what it achieved.

    The first proof names the sandbox; if there is none it is the only one. `base` is a folder outside the masked ones
    in which to build the scene, the home directory if not given.
    """
    with _open_fixture(base) as scene:
        confinement = SandboxPolicy(mode="require", writable=(scene.workspace,), network=network)
        processes = SessionProcesses(scene.workspace, policy=confinement, backends=backends, grace=0.2)
        try:
            name = await processes.prepare()
            tried = await _run_attacks(processes, scene)
        except SandboxUnavailable as error:
            return [SelfTestResult("sandbox", False, str(error))]
        finally:
            await processes.aclose()
        return [SelfTestResult("sandbox", True, name), *_make_results(scene, tried, network)]


async def _run_attacks(processes: SessionProcesses, fixture: "_SelfTestFixture") -> dict[str, str]:
    words = python_command("ostler.processes.sandbox_attacks:main", json.dumps(fixture.targets()))
    ran = await processes.run(shlex.join(words), timeout=30)
    tried: dict[str, str] = dict(json.loads(line) for line in ran.stdout.splitlines())
    if not tried:
        raise SandboxUnavailable(f"the proof could not be run in the sandbox ({ran.stderr.strip()[-300:]})")
    return tried


def _make_results(fixture: "_SelfTestFixture", outcomes: dict[str, str], network: bool) -> list[SelfTestResult]:
    happened = fixture.observed_effects()
    granted = {"TCP", "UDP"} if network else set()
    proofs = []
    for name, outcome in outcomes.items():
        if name in granted:
            continue
        through = outcome == "went through"
        breach = happened.get(name, through)
        proofs.append(SelfTestResult(name, not breach, "without effect outside" if through and not breach else outcome))
    return proofs


class _SelfTestFixture:
    """A workspace, and around it everything a command could reach for."""

    def __init__(self, base: str) -> None:
        self.root = os.path.realpath(tempfile.mkdtemp(prefix="ostler-proof-", dir=base))
        self.workspace = os.path.join(self.root, "workspace")
        self.outside = os.path.join(self.root, "outside")
        self.file = os.path.join(self.outside, "file")
        os.makedirs(os.path.join(self.workspace, ".git", "hooks"))
        os.mkdir(self.outside)
        Path(self.workspace, ".git", "config").write_text(_TEXT)
        Path(self.file).write_text(_TEXT)
        os.chmod(self.file, _MODE)
        self.tcp, self.udp = socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        self.abstract, self.socket = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
        self.abstract.bind("\0" + self.root)
        self.socket.bind(os.path.join(self.outside, "socket"))
        for listener in (self.abstract, self.socket):
            listener.listen()
        self.datagram = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.datagram.bind(os.path.join(self.outside, "datagram"))
        # last, so that nothing can go wrong between its start and `close`
        quiet = subprocess.DEVNULL
        self.victim = subprocess.Popen(
            [sys.executable, "-I", "-c", "import time; time.sleep(60)"], stdin=quiet, stdout=quiet, stderr=quiet
        )

    def targets(self) -> dict[str, str]:
        return {
            "workspace": self.workspace,
            "outside": self.outside,
            "file": self.file,
            "victim": str(self.victim.pid),
            "tcp": str(self.tcp.getsockname()[1]),
            "udp": str(self.udp.getsockname()[1]),
            "abstract": self.root,
            "socket": os.path.join(self.outside, "socket"),
            "datagram": os.path.join(self.outside, "datagram"),
        }

    def observed_effects(self) -> dict[str, bool]:
        """By attempt, whether it had its effect; seen from outside, whatever the program said."""
        file = Path(self.file)
        spoilt = not file.exists() or file.read_text() != _TEXT
        git = Path(self.workspace, ".git")
        return {
            **dict.fromkeys(("write", "truncate", "through a symbolic link", "through a hard link"), spoilt),
            "create": Path(self.outside, "new").exists(),
            **dict.fromkeys(("rename", "delete"), not file.exists()),
            "chmod": file.exists() and file.stat().st_mode & 0o777 != _MODE,
            "run as its owner": _is_setuid(os.path.join(self.workspace, "as-owner")),
            "TCP": _was_reached(self.tcp),
            "UDP": _was_reached(self.udp),
            "abstract socket": _was_reached(self.abstract),
            "socket file": _was_reached(self.socket),
            **dict.fromkeys(("datagram socket file", "datagram socket file, from a pair"), _was_reached(self.datagram)),
            "kill": self.victim.poll() is not None,
            "protected hooks": any(git.parent.glob(".git*/hooks/pre-commit")),
            "protected config": not (git / "config").exists() or (git / "config").read_text() != _TEXT,
            "protected and absent": Path(self.workspace, ".mcp.json").is_file(),
            "protected by way of its folder": Path(self.workspace, ".git-away").exists(),
        }

    def close(self) -> None:
        for one in (self.tcp, self.udp, self.abstract, self.socket, self.datagram):
            one.close()
        self.victim.kill()
        self.victim.wait()
        shutil.rmtree(self.root, ignore_errors=True)


def _is_setuid(path: str) -> bool:
    return os.path.exists(path) and bool(os.stat(path).st_mode & stat.S_ISUID)


def _was_reached(listener: socket.socket) -> bool:
    """Whether a connection or a datagram came; the sender has ended, so what was sent is here."""
    listener.setblocking(False)
    try:
        if listener.type == socket.SOCK_DGRAM:
            listener.recv(16)
        else:
            listener.accept()[0].close()
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def _open_fixture(base: str) -> Iterator[_SelfTestFixture]:
    places = (base, os.path.expanduser("~"), os.getcwd(), tempfile.gettempdir())
    usable = (place for place in places if place and len(place) < _MAX_BASE_LENGTH and os.access(place, os.W_OK))
    scene = _SelfTestFixture(next(usable, tempfile.gettempdir()))
    try:
        yield scene
    finally:
        scene.close()
