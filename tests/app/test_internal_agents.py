"""Which models generate session titles, and the prompts of internal agents."""

import json

import pytest

from ostler.access.active_agent import ActiveAgent
from ostler.app.engine import make_internal_agents
from ostler.backends.engine.internal_agents import built_in_role
from ostler.knowledge.project_knowledge import ProjectKnowledge
from ostler.policy.verdict import Policy
from ostler.settings.load import load
from ostler.settings.run_options import RunOptions


@pytest.mark.req("SE-2")
@pytest.mark.parametrize(
    ("url", "titles", "names"),
    [
        ("https://api.example.com/v1", "auto", True),
        ("https://api.example.com/v1", "never", False),
        ("http://127.0.0.1:9/v1", "auto", False),
        ("http://localhost:9/v1", "auto", False),
        ("http://[::1]:9/v1", "auto", False),
        ("http://localhost:9/v1", "always", True),
        ("", "auto", False),
    ],
)
def test_local_models_make_no_titles(tmp_path, monkeypatch, url, titles, names):
    (tmp_path / ".ostler").mkdir()
    config = {"session": {"titles": titles}}
    if url:
        config["models"] = {"profiles": [{"name": "p", "model": "m", "baseUrl": url, "apiKey": "k", "small": "s"}]}
    (tmp_path / ".ostler" / "config.json").write_text(json.dumps(config))
    monkeypatch.setenv("HOME", str(tmp_path))
    settings = load(tmp_path / "work", {"HOME": str(tmp_path)})
    agents = make_internal_agents(settings, RunOptions("."), built_in_role)
    assert (agents.makes_titles, agents.model) == (names, "s" if url and titles != "never" else "")
    assert not make_internal_agents(settings, RunOptions(".", ephemeral=True), built_in_role).makes_titles


@pytest.mark.req("EN-3", "EN-9")
def test_internal_agent_uses_the_users_prompt_not_the_projects(tmp_path, monkeypatch):
    home, work = tmp_path / "home", tmp_path / "work"
    for folder, prompt in ((home / ".ostler" / "agents", "Mine."), (work / ".ostler" / "agents", "Theirs.")):
        folder.mkdir(parents=True)
        (folder / "compaction.md").write_text(f"---\ndescription: x\n---\n{prompt}\n")
    monkeypatch.setenv("HOME", str(home))
    settings = load(work, {"HOME": str(home)})
    agents = ProjectKnowledge(str(work), settings.with_trust(), {"HOME": str(home)}).agents
    active_agent = ActiveAgent(agents, Policy(), RunOptions("."))
    assert active_agent.internal_role("compaction").prompt == "Mine."
    assert active_agent.internal_role("title").prompt == built_in_role("title").prompt
