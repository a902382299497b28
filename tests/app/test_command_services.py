"""The services behind slash commands and completion."""

import subprocess
import threading

import pytest

from ostler.app.command_services import LocalCommandServices
from ostler.core.errors import UsageError
from ostler.settings.run_options import RunOptions


class SlowIndex:
    """Finds its names only in the second search."""

    def __init__(self):
        self.complete = threading.Event()
        self.searches = 0

    def refresh(self):
        pass

    def find(self, query):
        self.searches += 1
        if self.searches > 1:
            self.complete.set()
        return ["main.py"] if self.complete.is_set() else []


@pytest.mark.req("CL-4")
async def test_completion_waits_for_the_first_scan(tmp_path):
    services = LocalCommandServices(tmp_path, RunOptions(str(tmp_path)), None)
    services._index = SlowIndex()
    assert await services.files("main") == ["main.py"]


@pytest.mark.req("CL-4")
async def test_outside_path_does_not_wait(tmp_path):
    services = LocalCommandServices(tmp_path, RunOptions(str(tmp_path)), None)
    assert await services.files("/nothing/like/this") == []


@pytest.mark.req("CL-7")
async def test_diff_without_commits_names_no_tool(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    with pytest.raises(UsageError, match="the repository has no commits yet") as caught:
        await LocalCommandServices(tmp_path, RunOptions(str(tmp_path)), None).diff("")
    assert "git_status" not in str(caught.value)
