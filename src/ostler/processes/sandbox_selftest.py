"""Reports what sandboxing this machine offers and tests it with a hostile program."""

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
_MAX_BASE_LENGTH = 64  # the path of a socket file is limited to about 100 bytes


class Capability(msgspec.Struct, frozen=True):
    """A sandboxing feature, whether this machine has it, and the version or the reason."""

    name: str
    available: bool
    detail: str


class SelfTestResult(msgspec.Struct, frozen=True):
    """An attack from inside the sandbox, and whether it was blocked."""

    name: str
    blocked: bool
    detail: str


def probe() -> list[Capability]:
    """Return the sandboxing features of this machine; starts no program except `bwrap --version`."""
    no_bubblewrap, no_landlock = bubblewrap.unavailable_reason(), landlock.unavailable_reason()
    version = landlock.abi()
    return [
        Capability("bubblewrap", not no_bubblewrap, no_bubblewrap or _bubblewrap_version()),
        Capability("landlock", not no_landlock, no_landlock or f"version {version}"),
        Capability("landlock for TCP", version >= 4, f"version {version}, requires 4"),
        Capability("landlock for signals and abstract sockets", version >= 6, f"version {version}, requires 6"),
        Capability("seccomp", seccomp.is_supported(), "system call filter"),
    ]


def _bubblewrap_version() -> str:
    answer = subprocess.run(
        [bubblewrap.find_bwrap(), "--version"], capture_output=True, text=True, timeout=5, check=False
    )
    return answer.stdout.strip() or answer.stderr.strip()


async def run_selftest(
    backends: tuple[str, ...] = BACKENDS, *, base: str = "", network: bool = False
) -> list[SelfTestResult]:
    """Run a hostile program in the sandbox and return what it achieved.

    The first result names the sandbox; without a sandbox it is the only one. The test files are created in `base`, by
    default the home directory; it must not be one of the masked folders.
    """
    with _open_fixture(base) as fixture:
        policy = SandboxPolicy(mode="require", writable=(fixture.workspace,), network=network, homes=(fixture.home,))
        processes = SessionProcesses(fixture.workspace, policy=policy, backends=backends, grace=0.2)
        try:
            name = await processes.prepare()
            outcomes = await _run_attacks(processes, fixture)
        except SandboxUnavailable as error:
            return [SelfTestResult("sandbox", False, str(error))]
        finally:
            await processes.aclose()
        return [SelfTestResult("sandbox", True, name), *_make_results(fixture, outcomes, network)]


async def _run_attacks(processes: SessionProcesses, fixture: "_SelfTestFixture") -> dict[str, str]:
    argv = python_command("ostler.processes.sandbox_attacks:main", json.dumps(fixture.targets()))
    result = await processes.run(shlex.join(argv), timeout=30)
    outcomes: dict[str, str] = dict(json.loads(line) for line in result.stdout.splitlines())
    if not outcomes:
        raise SandboxUnavailable(f"the self-test could not be run in the sandbox ({result.stderr.strip()[-300:]})")
    return outcomes


def _make_results(fixture: "_SelfTestFixture", outcomes: dict[str, str], network: bool) -> list[SelfTestResult]:
    effects = fixture.observed_effects()
    granted = {"TCP", "UDP"} if network else set()
    results = []
    for name, outcome in outcomes.items():
        if name in granted:
            continue
        succeeded = outcome == "went through"
        breach = effects.get(name, succeeded)
        results.append(
            SelfTestResult(name, not breach, "no effect outside the sandbox" if succeeded and not breach else outcome)
        )
    return results


class _SelfTestFixture:
    """A workspace and, outside of it, targets for every attack."""

    def __init__(self, base: str) -> None:
        self.root = os.path.realpath(tempfile.mkdtemp(prefix="ostler-proof-", dir=base))
        self.workspace = os.path.join(self.root, "workspace")
        self.outside = os.path.join(self.root, "outside")
        self.home = os.path.join(self.root, "home")
        self.file = os.path.join(self.outside, "file")
        os.makedirs(os.path.join(self.workspace, ".git", "hooks"))
        os.mkdir(self.outside)
        os.mkdir(self.home)
        Path(self.home, "private").write_text(_TEXT)
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
        # Last, so that nothing can fail between its start and `close`.
        devnull = subprocess.DEVNULL
        self.victim = subprocess.Popen(
            [sys.executable, "-I", "-c", "import time; time.sleep(60)"], stdin=devnull, stdout=devnull, stderr=devnull
        )

    def targets(self) -> dict[str, str]:
        return {
            "workspace": self.workspace,
            "outside": self.outside,
            "home": self.home,
            "file": self.file,
            "victim": str(self.victim.pid),
            "tcp": str(self.tcp.getsockname()[1]),
            "udp": str(self.udp.getsockname()[1]),
            "abstract": self.root,
            "socket": os.path.join(self.outside, "socket"),
            "datagram": os.path.join(self.outside, "datagram"),
        }

    def observed_effects(self) -> dict[str, bool]:
        """Return for each attack whether it had an effect, observed from outside."""
        file = Path(self.file)
        damaged = not file.exists() or file.read_text() != _TEXT
        git = Path(self.workspace, ".git")
        return {
            **dict.fromkeys(("write", "truncate", "through a symbolic link", "through a hard link"), damaged),
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
        for listener in (self.tcp, self.udp, self.abstract, self.socket, self.datagram):
            listener.close()
        self.victim.kill()
        self.victim.wait()
        shutil.rmtree(self.root, ignore_errors=True)


def _is_setuid(path: str) -> bool:
    return os.path.exists(path) and bool(os.stat(path).st_mode & stat.S_ISUID)


def _was_reached(listener: socket.socket) -> bool:
    """Return whether a connection or a datagram arrived. The sender has already ended."""
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
    folders = (base, os.path.expanduser("~"), os.getcwd(), tempfile.gettempdir())
    usable = (folder for folder in folders if folder and len(folder) < _MAX_BASE_LENGTH and os.access(folder, os.W_OK))
    fixture = _SelfTestFixture(next(usable, tempfile.gettempdir()))
    try:
        yield fixture
    finally:
        fixture.close()
