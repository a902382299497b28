"""The session's workspace: redirections, credentials and readable outside folders."""

import json

import pytest

from ostler.app.project import Project
from ostler.app.workspace import make_workspace
from ostler.core.commands import CommandRequest
from ostler.core.errors import PathError
from ostler.settings.load import load
from ostler.settings.run_options import RunOptions
from ostler.workspace.session_workspace import SessionShell, redirects_to_file


@pytest.mark.req("PM-4")
@pytest.mark.parametrize(
    ("command", "writes"),
    [
        ("ls", False),
        ("ls 2>/dev/null", False),
        ("ls > /dev/null 2>&1", False),
        ("ls &>/dev/null | cat", False),
        ("cat a > b", True),
        ("cat a >> b", True),
        ("cat a >/dev/null >b", True),
        ("cat a >/dev/nullx", True),
        ("cat a >&b", True),
        ("cat a >& 12", True),
        ("cat a >|b", True),
        ("echo <>x", True),
    ],
)
def test_redirections_into_files_are_detected(command, writes):
    assert redirects_to_file(command) is writes


@pytest.mark.req("SH-8")
async def test_command_with_network_sees_user_keys_but_not_ostlers(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for folder in (".ssh", ".ostler", "workspace"):
        (tmp_path / folder).mkdir()
    shell = SessionShell(str(tmp_path / "workspace"), writable=True, sandbox="prefer")
    policy = await shell._policy_for(CommandRequest("git push", network=True))
    assert policy.network and policy.hidden == (str(tmp_path / ".ostler"),)
    assert str(tmp_path / ".ssh") in shell._sandbox_policy().hidden


@pytest.mark.req("PM-2", "SH-8")
async def test_command_checked_as_read_only_stays_read_only_if_the_agent_changes_before_it_runs(tmp_path):
    shell = SessionShell(str(tmp_path), writable=True, sandbox="prefer")
    shell.is_agent_read_only = lambda: True
    await shell.is_sandboxed()
    shell.is_agent_read_only = lambda: False
    await shell.can_write()  # asked again for the checkpoint
    assert shell.read_only
    await shell.aclose()


@pytest.mark.req("PM-11", "SH-8")
async def test_looking_command_cannot_write_even_if_it_was_misjudged(tmp_path, monkeypatch):
    shell = SessionShell(str(tmp_path), writable=True, sandbox="require")
    try:
        await shell.run(CommandRequest("touch ordinary"))
        monkeypatch.setattr("ostler.policy.shell.looking.only_looks", lambda command: True)
        result = await shell.run(CommandRequest("touch misjudged"))
    finally:
        await shell.aclose()
    assert (tmp_path / "ordinary").exists() and not (tmp_path / "misjudged").exists()
    assert "Read-only file system" in result.stderr or "ermission denied" in result.stderr


@pytest.mark.req("PM-11")
async def test_looking_command_with_network_access_is_not_read_only(tmp_path):
    shell = SessionShell(str(tmp_path), writable=True, sandbox="prefer")
    policy = await shell._policy_for(CommandRequest("git status", network=True))
    assert policy.network and policy.writable == (str(tmp_path),)


@pytest.mark.req("PM-1", "FS-3")
@pytest.mark.parametrize(
    ("pattern", "action", "readable"),
    [
        ("{}/lib/*", "allow", True),
        ("{}/lib/*", "ask", True),
        ("{}/lib/a.txt", "allow", True),
        ("~/lib/*.txt", "allow", True),
        ("*", "allow", True),
        ("*", "deny", False),
        ("{}/li/*", "allow", False),
        ("lib/*", "allow", False),
    ],
)
async def test_rule_makes_an_outside_folder_readable_only(tmp_path, monkeypatch, pattern, action, readable):
    monkeypatch.setenv("HOME", str(tmp_path))
    for folder in ("lib", "workspace", ".ostler"):
        (tmp_path / folder).mkdir()
    (tmp_path / "lib" / "a.txt").write_text("far")
    rules = {"external_directory": {pattern.format(tmp_path): action}}
    (tmp_path / ".ostler" / "config.json").write_text(json.dumps({"permission": rules}))
    workspace = tmp_path / "workspace"
    project = Project.with_settings(workspace, load(workspace, {"HOME": str(tmp_path)}))
    workspace = make_workspace(project, RunOptions(cwd=str(workspace)), interactive=True)
    outside = str(tmp_path / "lib" / "a.txt")
    if readable:
        assert (await workspace.read_text(outside)).text == "far"
    else:
        with pytest.raises(PathError):
            await workspace.read_text(outside)
    with pytest.raises(PathError):
        await workspace.write_text(outside, "mine")
    await workspace.aclose()
