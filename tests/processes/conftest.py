"""What the tests of processes share: a session's processes, and a look at what is really running."""

import os
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from ostler.processes.sandbox_policy import SandboxPolicy
from ostler.processes.session_processes import SessionProcesses

OFF = SandboxPolicy(mode="off")


def eventually(holds: Callable[[], bool], limit: float = 60.0) -> bool:
    """Whether it comes true before the deadline."""
    deadline = time.monotonic() + limit
    while not holds():
        if time.monotonic() > deadline:
            return False
        os.sched_yield()
    return True


class Marked:
    """Every process that has our mark in its environment, wherever it hides."""

    def __init__(self) -> None:
        self.value = uuid.uuid4().hex
        self.env = {"OSTLER_TEST_MARK": self.value}

    def pids(self) -> set[int]:
        needle = f"OSTLER_TEST_MARK={self.value}".encode()
        found = set()
        for name in os.listdir("/proc"):
            if name.isdigit():
                try:
                    if needle in Path(f"/proc/{name}/environ").read_bytes():
                        found.add(int(name))
                except OSError:
                    continue
        return found

    def all_gone(self, limit: float = 60.0) -> bool:
        return eventually(lambda: not self.pids(), limit)


def is_running(pid: int) -> bool:
    try:
        return b") Z" not in Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False


@pytest.fixture
def marked() -> Iterator[Marked]:
    mark = Marked()
    yield mark
    for pid in mark.pids():
        os.kill(pid, 9)


@pytest.fixture
async def processes(tmp_path: Path) -> AsyncIterator[SessionProcesses]:
    """Unconfined, with grace periods too short to wait for."""
    made = SessionProcesses(str(tmp_path), policy=OFF, grace=0.3)
    yield made
    await made.aclose()


@pytest.fixture(name="eventually")
def _eventually() -> Callable[..., bool]:
    return eventually


@pytest.fixture(name="is_running")
def _is_running() -> Callable[[int], bool]:
    return is_running
