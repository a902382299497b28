"""`ostler run --agent`: prompt, tools and rules of the agent."""

import json

import pytest

from ostler.testing.model_server import calls, text


def at(server):
    return ["--base-url", server.base_url, "--model", "scripted"]


@pytest.mark.req("EN-3")
def test_build_agent_can_write(ostler, models):
    with models.playing(calls([("write", {"path": "new.txt", "content": "x"})]), text("done")) as server:
        ostler("run", "--write", "--agent", "build", *at(server), "go")
    assert (ostler.workspace / "new.txt").read_text() == "x"


@pytest.mark.req("EN-3")
def test_agent_prompt_is_sent_once(ostler, models):
    folder = ostler.home / ".ostler" / "agents"
    folder.mkdir(parents=True)
    (folder / "poet.md").write_text("---\ndescription: rhymes\ntemperature: 0.3\ntools: read\n---\nAnswer in verse.\n")
    with models.playing(text("a"), text("b")) as server:
        ostler("run", "--agent", "poet", *at(server), "one")
        ostler("run", "--continue", *at(server), "two")
        first, second = (request.json for request in server.requests)
    assert first["messages"][-1]["role"] != "assistant" and "Answer in verse." in json.dumps(first["messages"][-1])
    assert "Answer in verse." not in json.dumps(first["messages"][0])
    assert json.dumps(second["messages"]).count("Answer in verse.") == 1
    assert second["messages"][: len(first["messages"])] == first["messages"]
    assert first["temperature"] == second["temperature"] == 0.3
    assert [tool["function"]["name"] for tool in first["tools"]] == ["read"]


@pytest.mark.req("EN-3")
def test_removed_tool_cannot_be_called_by_an_alias(ostler, models):
    folder = ostler.home / ".ostler" / "agents"
    folder.mkdir(parents=True)
    (folder / "quiet.md").write_text("---\ndescription: no shell\ntools:\n  bash: false\n---\nWork without a shell.\n")
    with models.playing(calls([("Bash", {"command": "ls"})]), text("ok")) as server:
        ostler("run", "--agent", "quiet", *at(server), "go")
        sent = json.dumps(server.requests[1].json["messages"])
    assert "does not have the tool bash" in sent


@pytest.mark.req("EN-3")
@pytest.mark.parametrize("name", ["nobody", "explore", "title"])
def test_unselectable_agent_is_an_error(ostler, models, name):
    with models.playing() as server:
        done = ostler("run", "--agent", name, *at(server), "go")
    assert done.code == 2
    assert f"unknown agent '{name}'" in done.stderr and "build, plan" in done.stderr


@pytest.mark.req("EN-3", "SE-1")
def test_missing_agent_of_a_session_must_be_replaced(ostler, models):
    file = ostler.home / ".ostler" / "agents" / "poet.md"
    file.parent.mkdir(parents=True)
    file.write_text("---\ndescription: rhymes\n---\nAnswer in verse.\n")
    with models.playing(text("a"), text("b")) as server:
        assert ostler("run", *at(server), "@agent:poet hello").code == 0
        file.unlink()
        refused = ostler("run", "--continue", *at(server), "and now?")
        done = ostler("run", "-o", "json", "--continue", "--agent", "build", *at(server), "and now?")
        assert ostler("run", "--agent", "poet", *at(server), "x").code == 2
    assert (refused.code, "select another one with --agent" in refused.stderr) == (2, True)
    assert (done.code, json.loads(done.stdout)["answer"]) == (0, "b")
