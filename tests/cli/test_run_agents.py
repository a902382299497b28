"""`ostler run --agent`: whose words, tools and rules count, against a model that does not care."""

import json

import pytest

from ostler.testing.model_server import calls, text


def at(server):
    return ["--base-url", server.base_url, "--model", "scripted"]


@pytest.mark.req("EN-3")
def test_build_changes_what_plan_would_not(ostler, models):
    with models.playing(calls([("write", {"path": "new.txt", "content": "x"})]), text("done")) as server:
        ostler("run", "--write", "--agent", "build", *at(server), "go")
    assert (ostler.workspace / "new.txt").read_text() == "x"


@pytest.mark.req("EN-3")
def test_an_agents_words_follow_the_prompt_and_stay_once_in_later_turns(ostler, models):
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
def test_a_tool_that_an_agent_does_not_have_does_not_run_by_another_name_either(ostler, models):
    folder = ostler.home / ".ostler" / "agents"
    folder.mkdir(parents=True)
    (folder / "quiet.md").write_text("---\ndescription: no shell\ntools:\n  bash: false\n---\nWork without a shell.\n")
    with models.playing(calls([("Bash", {"command": "ls"})]), text("ok")) as server:
        ostler("run", "--agent", "quiet", *at(server), "go")
        told = json.dumps(server.requests[1].json["messages"])
    assert "does not have the tool bash" in told


@pytest.mark.req("EN-3")
@pytest.mark.parametrize("name", ["nobody", "explore", "title"])
def test_an_agent_nobody_can_talk_to_is_a_clear_error(ostler, models, name):
    with models.playing() as server:
        done = ostler("run", "--agent", name, *at(server), "go")
    assert done.code == 2
    assert f"there is no agent '{name}'" in done.stderr and "build, plan" in done.stderr


@pytest.mark.req("EN-3", "SE-1")
def test_a_session_whose_agent_is_gone_goes_on_with_the_usual_one(ostler, models):
    file = ostler.home / ".ostler" / "agents" / "poet.md"
    file.parent.mkdir(parents=True)
    file.write_text("---\ndescription: rhymes\n---\nAnswer in verse.\n")
    with models.playing(text("a"), text("b")) as server:
        assert ostler("run", *at(server), "@agent:poet hello").code == 0
        file.unlink()
        done = ostler("run", "-o", "json", "--continue", *at(server), "and now?")
        assert ostler("run", "--agent", "poet", *at(server), "x").code == 2
    summary = json.loads(done.stdout)
    assert (done.code, summary["answer"]) == (0, "b")
    assert "there is no agent 'poet'" in summary["notices"][0]
