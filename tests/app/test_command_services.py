"""The services behind slash commands and completion."""

import subprocess

import pytest

from ostler.app.command_services import LocalCommandServices
from ostler.core.errors import UsageError
from ostler.settings.run_options import RunOptions


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
