"""The description of a workspace for Agent Zero: what git does to its text."""

import os
import subprocess
from pathlib import Path

import pytest

from ostler.access.session_policy import make_policy
from ostler.app.project import Project
from ostler.app.workspace import make_workspace
from ostler.app.zero_context import ZeroContextSource
from ostler.settings.run_options import RunOptions

pytestmark = pytest.mark.req("AZ-4")


async def describe(folder, monkeypatch, seconds):
    home = folder.parent / "home"
    home.mkdir(exist_ok=True)
    (home / "config.json").write_text(f'{{"context": {{"git_timeout_seconds": {seconds}}}}}')
    monkeypatch.setenv("OSTLER_HOME", str(home))
    options = RunOptions(cwd=Path(folder))
    project = Project.load(options.cwd, trust=None).for_agent_zero()
    policy = make_policy(project.settings, options, interactive=True)
    workspace = make_workspace(project, options, interactive=True)
    try:
        return await ZeroContextSource(project, workspace, lambda: policy, "host").build()
    finally:
        await workspace.aclose()


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "workspace"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", "-b", "trunk", str(folder)], check=True)
    return folder


async def test_changed_files_up_to_a_limit(folder, monkeypatch):
    for number in range(51):
        (folder / f"f{number:02}").touch()
    lines = (await describe(folder, monkeypatch, 0)).text.partition("git_status:\n")[2].splitlines()
    assert (lines[0], lines[1], lines[50], lines[51]) == ("branch: trunk", "?? f00", "?? f49", "[more changes]")
    (folder / "f50").unlink()
    assert "[more changes]" not in (await describe(folder, monkeypatch, 0)).text


async def test_git_that_takes_too_long_is_named(folder, tmp_path, monkeypatch):
    """Its status is omitted as a whole, so that the text does not depend on how far git got."""
    (folder / "a.txt").touch()
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "git").write_text("#!/bin/sh\nexec sleep 600\n")
    (programs / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    first, second = [await describe(folder, monkeypatch, 0.05) for _ in range(2)]
    assert "git_status: unknown, because git took longer than 0.05 s\n" in first.text
    assert "a.txt (0B)" in first.text
    assert first == second


async def test_git_that_fails_once_is_no_change_of_the_workspace(folder, monkeypatch):
    (folder / "a.txt").touch()
    shown = await describe(folder, monkeypatch, 0)
    broken = await describe(folder, monkeypatch, 1e-9)
    subprocess.run(["git", "-C", str(folder), "add", "a.txt"], check=True)
    staged = await describe(folder, monkeypatch, 0)
    (folder / "a.txt").write_text("changed")
    changed = await describe(folder, monkeypatch, 1e-9)
    assert "git_status: unknown" in broken.text and "git_status: unknown" in changed.text
    assert broken.is_known(shown.signature) and not shown.is_known(broken.signature)
    assert not staged.is_known(shown.signature)
    assert not changed.is_known(shown.signature) and not shown.is_known("")
