"""What commands left when Ostler was killed in the middle of them."""

import os

import pytest

from ostler.processes.git_exec_files import QUARANTINE_SUFFIX
from ostler.processes.git_guard import GitGuard
from ostler.processes.git_guard_marker import GuardMarker, recover_stale_markers

pytestmark = pytest.mark.req("SH-2", "SH-8")
EVIL = "[core]\n\tfsmonitor = evil\n"


@pytest.fixture
def marks(tmp_path):
    return str(tmp_path / "marks")


@pytest.fixture
def work(tmp_path):
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


async def _begun(work, marks):
    guard = GitGuard((str(work),))
    guard.marker = GuardMarker(marks)
    await guard.command_started()
    return guard


def _kill(guard):
    """As `kill -9` does: what is held is let go, and nothing else happens."""
    guard._watch_task.cancel()
    os.close(guard.marker._fd)
    guard.marker._fd = -1


def _make(path, text=EVIL):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


async def test_what_a_killed_session_left_is_set_aside_by_the_next(work, marks):
    mine = _make(work / "old" / ".git" / "config", "[core]\n\teditor = mine\n")
    guard = await _begun(work, marks)
    config = _make(work / "caf\udce9" / ".git" / "config")
    _kill(guard)
    (told,) = await recover_stale_markers(marks)
    assert "core.fsmonitor" in told
    assert "evil" not in config.read_text() and config.with_name("config" + QUARANTINE_SUFFIX).exists()
    assert mine.read_text() == "[core]\n\teditor = mine\n"
    assert os.listdir(marks) == []


async def test_what_runs_elsewhere_is_left_to_who_runs_it(work, marks):
    guard = await _begun(work, marks)
    config = _make(work / "new" / ".git" / "config")
    assert await recover_stale_markers(marks) == []
    assert config.read_text() == EVIL
    await guard.command_ended()
    assert "evil" not in config.read_text() and os.listdir(marks) == []


async def test_when_nothing_runs_there_is_no_mark(work, marks):
    guard = await _begun(work, marks)
    await guard.command_ended()
    config = _make(work / "a-person-s" / ".git" / "config")
    assert await recover_stale_markers(marks) == []
    assert config.read_text() == EVIL


@pytest.mark.parametrize("data", [b"", b"\x92", b"{}"])
async def test_a_mark_that_was_not_finished_says_nothing(work, marks, data):
    os.mkdir(marks)
    with open(os.path.join(marks, "1-x"), "wb") as file:
        file.write(data)
    config = _make(work / "mine" / ".git" / "config")
    assert await recover_stale_markers(marks) == []
    assert config.read_text() == EVIL and os.listdir(marks) == []


async def test_a_workspace_that_is_gone_is_no_error(work, marks):
    guard = await _begun(work, marks)
    _kill(guard)
    work.rmdir()
    assert await recover_stale_markers(marks) == []
