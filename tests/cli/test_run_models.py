"""Agents that use the endpoint and key of another profile."""

import json

import pytest

from ostler.testing.model_server import calls, text


def configure(ostler, first, second):
    folder = ostler.home / ".ostler"
    (folder / "agents").mkdir(parents=True)
    profiles = [
        {"name": "one", "model": "m1", "baseUrl": first.base_url, "apiKey": "key-one"},
        {"name": "two", "model": "m2", "baseUrl": second.base_url, "apiKey": "key-two"},
    ]
    (folder / "config.json").write_text(json.dumps({"models": {"profiles": profiles, "active": "one"}}))
    (folder / "agents" / "poet.md").write_text("---\ndescription: rhymes\nmodel: two\n---\nAnswer in verse.\n")


@pytest.mark.req("EN-3", "MD-2")
def test_agent_with_another_profile(ostler, models):
    with models.playing() as first, models.playing(text("verse")) as second:
        configure(ostler, first, second)
        assert ostler("run", "--agent", "poet", "-o", "simple", "go").stdout == "verse\n"
        request = second.requests[0]
    assert (request.json["model"], request.headers["authorization"]) == ("m2", "Bearer key-two")


@pytest.mark.req("EN-4", "MD-2")
def test_subagent_with_another_profile(ostler, models):
    task = calls([("task", {"prompt": "rhyme", "agent": "poet"})])
    with models.playing(task, text("prose")) as first, models.playing(text("verse")) as second:
        configure(ostler, first, second)
        assert ostler("run", "-o", "simple", "go").stdout == "prose\n"
        assert "verse" in json.dumps(first.requests[1].json)
        assert second.requests[0].headers["authorization"] == "Bearer key-two"
