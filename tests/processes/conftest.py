"""Fixtures for process tests: the processes of a session, and what is really running."""

import os
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from ostler.processes.sandbox_policy import SandboxPolicy
from ostler.processes.session_processes import SessionProcesses

NO_SANDBOX = SandboxPolicy(mode="off")


def eventually(condition: Callable[[], bool], limit: float = 60.0) -> bool:
    """Wait for a condition. Return False if it is not true before the deadline."""
    deadline = time.monotonic() + limit
    while not condition():
        if time.monotonic() > deadline:
            return False
        os.sched_yield()
    return True


class MarkedProcesses:
    """All processes with a unique mark in their environment."""

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
def marked() -> Iterator[MarkedProcesses]:
    marked_processes = MarkedProcesses()
    yield marked_processes
    for pid in marked_processes.pids():
        with suppress(ProcessLookupError):  # it ended in the meantime
            os.kill(pid, 9)


@pytest.fixture
async def processes(tmp_path: Path) -> AsyncIterator[SessionProcesses]:
    """Session processes without a sandbox and with short grace periods."""
    session_processes = SessionProcesses(str(tmp_path), policy=NO_SANDBOX, grace=0.3)
    yield session_processes
    await session_processes.aclose()


@pytest.fixture(name="eventually")
def _eventually() -> Callable[..., bool]:
    return eventually


@pytest.fixture(name="is_running")
def _is_running() -> Callable[[int], bool]:
    return is_running
