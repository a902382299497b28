"""Sessions are composed in one place: for folders of this machine, and for clients whose files are elsewhere."""

import ast
import json
import os
import sys
from pathlib import Path

import pytest

import ostler
from ostler.app.headless_run import HeadlessRun
from ostler.app.project import Project
from ostler.app.session_manager import LocalSessionManager
from ostler.core.errors import UsageError
from ostler.core.events import PrefixBuilt
from ostler.core.sessions import OpenSessionRequest
from ostler.core.tools import ToolCall, ToolResult, ToolSpec
from ostler.models.model_choice import ModelChoice
from ostler.settings.run_options import RunOptions
from ostler.storage.session_stores import EphemeralStore
from ostler.testing.scripted_model import ScriptedCall, ScriptedLine, ScriptedModel
from ostler.testing.session_fixture import run_turn

SECRET = "sk-this-is-the-key-of-the-server"


class RemoteTools:
    """The tools of a client on another machine."""

    def __init__(self):
        self.calls = []

    async def open(self, context):
        pass

    def specs(self):
        return [ToolSpec("write_file", "edit", "write a file there", {"type": "object"})]

    async def run(self, call, context):
        self.calls.append(call)
        return ToolResult(call.id, "ok", "written there")

    async def aclose(self):
        pass


def folder_with_everything(path):
    """Write settings, rules, agents, hooks and checks that a session must not find."""
    files = {
        "AGENTS.md": "SECRET RULES OF THIS MACHINE",
        ".ostler/config.json": json.dumps({"limits": {"steps": 1}, "agent": {"spy": {"prompt": "SECRET AGENT"}}}),
        ".ostler/agents/local.md": "SECRET AGENT",
        ".claude/skills/brew/SKILL.md": "---\nname: brew\ndescription: SECRET SKILL\n---\nBoil.",
        "test_it.py": "import unittest",
    }
    for name, text in files.items():
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


@pytest.mark.req("SV-1", "SV-4")
@pytest.mark.invariant("P3", "S5")
async def test_two_clients_get_nothing_of_this_machine(tmp_path, monkeypatch):
    home, same_path = tmp_path / "home", tmp_path / "same-path-as-on-the-client"
    folder_with_everything(same_path)
    folder_with_everything(home)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(same_path)
    lines = [ScriptedLine("Writing.", (ScriptedCall("write_file", {"path": "a"}, "c"),)), ScriptedLine("Done.")]
    models = [ScriptedModel(lines), ScriptedModel(lines)]
    remaining = list(models)
    choice = ModelChoice("scripted", lambda name: remaining.pop(0))
    manager = LocalSessionManager(RunOptions("/nowhere"), print, choice, store=EphemeralStore())
    opened, is_recording = [], True

    def audit(event, args):
        if is_recording and event in ("open", "os.listdir", "os.scandir") and isinstance(args[0], str | bytes):
            opened.append(os.path.abspath(os.fsdecode(args[0])))

    sys.addaudithook(audit)  # it cannot be removed
    for client_path, tools in ((str(same_path), RemoteTools()), ("/only/on/the/client", RemoteTools())):
        request = OpenSessionRequest(client_path, interactive=False, options={"agent": "plan"})
        session = await manager.open(request, tools=tools)
        _, ended = await run_turn(session, "write it")
        assert (ended.reason, [call.tool for call in tools.calls]) == ("done", ["write_file"])
        assert tools.calls[0].rules  # the agent's rules restrict the call where it runs
        (prefix,) = [event for event in session.events() if isinstance(event, PrefixBuilt)]
        assert [tool["name"] for tool in prefix.tools] == ["write_file"]
        await session.aclose()
    for model in models:
        model.finish()
        assert "SECRET" not in str(model.requests)
    folders = (str(same_path), str(home))
    assert [path for path in opened if path.startswith(folders)] == []
    local = await manager.open(OpenSessionRequest(str(same_path), "none", interactive=False))
    await local.aclose()
    is_recording = False
    assert [path for path in opened if path.startswith(folders)] != []


@pytest.mark.req("DX-4")
async def test_one_manager_serves_folders_with_different_settings(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    notices = []
    for name in ("first", "second"):
        profile = {"name": name, "model": f"model-{name}", "baseUrl": "http://127.0.0.1:9/v1"}
        config = {"models": {"profiles": [profile], "active": name}}
        folder = tmp_path / name / ".ostler"
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps(config))
    manager = LocalSessionManager(RunOptions(str(tmp_path), trust=True, ephemeral=True), notices.append)
    for name in ("first", "second", "first"):
        session = await manager.open(OpenSessionRequest(str(tmp_path / name), interactive=False))
        assert (session.info.option("model"), session.cwd) == (f"model-{name}", str(tmp_path / name))
        await session.aclose()


async def test_session_without_a_model_runs_tools_but_no_prompts(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "a.txt").write_text("alpha\n")
    manager = LocalSessionManager(RunOptions(str(tmp_path), ephemeral=True), print)
    session = await manager.open(OpenSessionRequest(str(tmp_path), "none", interactive=False))
    result = await session.call(ToolCall("c", "read", {"path": "a.txt"}))
    assert (result.status, "alpha" in result.for_model) == ("ok", True)
    _, ended = await run_turn(session, "hello")
    assert (ended.reason, "has no model" in str(ended.fault)) == ("failed", True)
    await session.aclose()
    with pytest.raises(UsageError, match="unknown backend 'other'"):
        await manager.open(OpenSessionRequest(str(tmp_path), "other", interactive=False))


@pytest.mark.invariant("S4")
def test_sessions_are_constructed_in_one_place():
    source = Path(ostler.__file__).parent
    constructors = {"LocalSession", "ChildSession"}
    texts = {path: path.read_text("utf-8") for path in source.rglob("*.py")}
    found = {
        str(path.relative_to(source))
        for path, text in texts.items()
        if any(name in text for name in constructors)  # parsing is slow
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in constructors
    }
    assert found == set()
    assert "make_session: Callable[..., LocalSession] = LocalSession" in (source / "app/composition.py").read_text()


def test_headless_run_loads_the_folder_once(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    load, loaded = Project.load, []
    monkeypatch.setattr(Project, "load", lambda *args, **flags: loaded.append(args) or load(*args, **flags))
    (tmp_path / "work").mkdir()
    options = RunOptions(cwd=str(tmp_path / "work"), backend="none", ephemeral=True)
    assert HeadlessRun("hello", "", options).run() == 1  # this backend answers no prompts
    assert len(loaded) == 1
