"""What the prompt uses of a machine, by itself."""

import subprocess
import threading

import pytest

from ostler.app.command_services import LocalCommandServices
from ostler.app.run_options import RunOptions
from ostler.core.errors import UsageError


class SlowIndex:
    """Knows its names at the second look."""

    def __init__(self):
        self.complete = threading.Event()
        self.looks = 0

    def refresh(self):
        pass

    def find(self, wanted):
        self.looks += 1
        if self.looks > 1:
            self.complete.set()
        return ["main.py"] if self.complete.is_set() else []


@pytest.mark.req("CL-4")
async def test_candidates_come_when_the_first_look_around_took_longer_than_the_key(tmp_path):
    services = LocalCommandServices(tmp_path, RunOptions(str(tmp_path)), None)
    services._index = SlowIndex()
    assert await services.files("main") == ["main.py"]


@pytest.mark.req("CL-4")
async def test_a_path_outside_is_not_waited_for(tmp_path):
    services = LocalCommandServices(tmp_path, RunOptions(str(tmp_path)), None)
    assert await services.files("/nothing/like/this") == []


@pytest.mark.req("CL-7")
async def test_a_repository_without_a_commit_has_no_diff_and_no_tool_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    with pytest.raises(UsageError, match="the repository has no commits yet") as told:
        await LocalCommandServices(tmp_path, RunOptions(str(tmp_path)), None).diff("")
    assert "git_status" not in str(told.value)
