"""Recovery of git files after Ostler was killed while commands ran."""

import os

import pytest

from ostler.processes.git_exec_files import QUARANTINE_SUFFIX
from ostler.processes.git_guard import GitGuard
from ostler.processes.git_guard_marker import GuardMarker, recover_stale_markers

pytestmark = pytest.mark.req("SH-2", "SH-8")
EVIL = "[core]\n\tfsmonitor = evil\n"


@pytest.fixture
def marker_dir(tmp_path):
    return str(tmp_path / "markers")


@pytest.fixture
def work(tmp_path):
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


async def _started_guard(work, marker_dir):
    guard = GitGuard((str(work),))
    guard.marker = GuardMarker(marker_dir)
    await guard.command_started()
    return guard


def _kill(guard):
    """Simulate `kill -9`: locks are released and nothing else happens."""
    guard._watch_task.cancel()
    os.close(guard.marker._fd)
    guard.marker._fd = -1


def _write_config(path, text=EVIL):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


async def test_files_of_killed_session_are_quarantined(work, marker_dir):
    user_config = _write_config(work / "old" / ".git" / "config", "[core]\n\teditor = mine\n")
    guard = await _started_guard(work, marker_dir)
    config = _write_config(work / "caf\udce9" / ".git" / "config")
    _kill(guard)
    (note,) = await recover_stale_markers(marker_dir)
    assert "core.fsmonitor" in note
    assert "evil" not in config.read_text() and config.with_name("config" + QUARANTINE_SUFFIX).exists()
    assert user_config.read_text() == "[core]\n\teditor = mine\n"
    assert os.listdir(marker_dir) == []


async def test_marker_of_running_session_is_ignored(work, marker_dir):
    guard = await _started_guard(work, marker_dir)
    config = _write_config(work / "new" / ".git" / "config")
    assert await recover_stale_markers(marker_dir) == []
    assert config.read_text() == EVIL
    await guard.command_ended()
    assert "evil" not in config.read_text() and os.listdir(marker_dir) == []


async def test_no_marker_without_running_commands(work, marker_dir):
    guard = await _started_guard(work, marker_dir)
    await guard.command_ended()
    config = _write_config(work / "created-by-user" / ".git" / "config")
    assert await recover_stale_markers(marker_dir) == []
    assert config.read_text() == EVIL


@pytest.mark.parametrize("data", [b"", b"\x92", b"{}"])
async def test_incomplete_marker_is_ignored(work, marker_dir, data):
    os.mkdir(marker_dir)
    with open(os.path.join(marker_dir, "1-x"), "wb") as file:
        file.write(data)
    config = _write_config(work / "mine" / ".git" / "config")
    assert await recover_stale_markers(marker_dir) == []
    assert config.read_text() == EVIL and os.listdir(marker_dir) == []


async def test_missing_workspace_is_ignored(work, marker_dir):
    guard = await _started_guard(work, marker_dir)
    _kill(guard)
    work.rmdir()
    assert await recover_stale_markers(marker_dir) == []
