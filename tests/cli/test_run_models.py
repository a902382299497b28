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


def answered(server):
    """Return the models of the chat requests that a server received."""
    return [request.json["model"] for request in server.requests if request.method == "POST"]


def announced(done):
    """Return the announced models with their addresses, from the standard error and the chat's output."""
    lines = (done.stderr + done.stdout).splitlines()
    found = (line.partition("model: ")[2] for line in lines if "model: " in line)
    return [line.partition(" (")[0].partition(",")[0] for line in found]


@pytest.fixture
def servers(ostler, models):
    """Two servers with a profile each, and a session that switched from the first to the second."""
    with models.playing(*[text("from one")] * 9) as first, models.playing(*[text("from two")] * 9) as second:
        configure(ostler, first, second)
        done = ostler("chat", stdin="hi\n/models two\ngo\n")
        assert (answered(first), answered(second)) == (["m1"], ["m2"])
        assert announced(done) == [f"m1 at {first.base_url}", f"m2 at {second.base_url}"]
        del first.requests[:], second.requests[:]
        yield first, second
        for server in (first, second):
            server._script.clear()


@pytest.mark.req("MD-2", "MD-7")
@pytest.mark.parametrize("command", ["run --continue", "run --resume last", "run --continue --fork", "chat --continue"])
def test_model_flag_overrides_the_model_of_a_resumed_session(ostler, servers, command):
    first, second = servers
    program, *flags = command.split()
    words = ["more"] if program == "run" else []
    done = ostler(program, *flags, "--model", "one", *words, stdin="" if words else "more\n/status\n")
    assert done.code == 0, done.stderr
    assert (answered(first), answered(second)) == (["m1"], [])
    assert announced(done) == [f"m1 at {first.base_url}"]
    assert words or "model    m1" in done.stdout


@pytest.mark.req("MD-2", "MD-7")
def test_base_url_flag_overrides_the_model_of_a_resumed_session(ostler, servers, models):
    first, second = servers
    with models.playing(text("third")) as third:
        done = ostler("run", "--continue", "--base-url", third.base_url, "more")
        assert (len(answered(third)), answered(first), answered(second)) == (1, [], [])
    assert announced(done)[0].endswith(third.base_url)


@pytest.mark.req("MD-7")
def test_resumed_session_announces_its_own_model(ostler, servers):
    first, second = servers
    done = ostler("run", "--continue", "more")
    assert (answered(first), answered(second)) == ([], ["m2"])
    assert announced(done) == [f"m2 at {second.base_url}"]
    done = ostler("chat", "--continue", stdin="/status\nmore\n")
    assert announced(done) == [f"m2 at {second.base_url}"]
    assert "model    m2" in done.stdout


@pytest.mark.req("EN-3", "MD-2")
@pytest.mark.parametrize("own_model", ["two", "revmodel"])
def test_own_model_of_an_agent_is_announced(ostler, servers, own_model):
    first, second = servers
    agent = f"---\ndescription: reviews\nmodel: {own_model}\n---\nReview.\n"
    (ostler.home / ".ostler" / "agents" / "rev.md").write_text(agent)
    server, model = (second, "m2") if own_model == "two" else (first, "revmodel")
    for arguments in (["--agent", "rev", "go"], ["@agent:rev go"]):
        done = ostler("run", *arguments)
        assert answered(server).pop() == model
        assert announced(done)[-1 if arguments[0] == "--agent" else 1] == f"{model} at {server.base_url}"
    done = ostler("chat", stdin="@agent:rev go\n/status\n")
    assert f"model    {model}" in done.stdout
    assert f"{model} at {server.base_url}" in announced(done)


@pytest.mark.req("MD-2")
def test_base_url_flag_overrides_the_profile_of_an_agent(ostler, servers):
    first, second = servers
    done = ostler("run", "--agent", "poet", "--base-url", first.base_url, "go")
    assert (len(answered(first)), answered(second)) == (1, [])
    assert announced(done) == [f"m1 at {first.base_url}"]


@pytest.mark.req("EN-4", "MD-7")
def test_subagent_uses_the_selected_model(ostler, models):
    task = calls([("task", {"prompt": "look", "agent": "general"})])
    with models.playing() as first, models.playing(task, text("child"), text("parent")) as second:
        configure(ostler, first, second)
        ostler("chat", stdin="/models two\n")
        done = ostler("run", "--continue", "go")
        assert (answered(first), answered(second)) == ([], ["m2"] * 3)
    assert "model of subagent" not in done.stderr


@pytest.mark.req("EN-4", "MD-2")
def test_own_model_of_a_subagent_is_announced(ostler, models):
    task = calls([("task", {"prompt": "rhyme", "agent": "poet"})])
    with models.playing(task, text("prose")) as first, models.playing(text("verse")) as second:
        configure(ostler, first, second)
        done = ostler("run", "go")
        assert f"model of subagent poet: m2 at {second.base_url}" in done.stderr


@pytest.mark.req("MD-7")
def test_titles_are_made_by_the_selected_model(ostler, models):
    with models.playing() as first, models.playing(text("answer"), text("title")) as second:
        configure(ostler, first, second)
        config = json.loads((ostler.home / ".ostler" / "config.json").read_text())
        config["session"] = {"titles": "always"}
        config["models"]["profiles"][0]["small"] = "m-small"
        (ostler.home / ".ostler" / "config.json").write_text(json.dumps(config))
        ostler("chat", stdin="/models two\ngo\n/status\n")
        assert answered(first) == []
        assert set(answered(second)) == {"m2"}
        second._script.clear()


@pytest.mark.req("MD-2", "MD-7")
def test_mistyped_profile_is_an_error(ostler, models):
    with models.playing(text("hi"), text("dated"), models=["m1", "m3-20260101"]) as first, models.playing() as second:
        configure(ostler, first, second)
        done = ostler("run", "-m", "tow", "go")
        assert (done.code, answered(first)) == (2, [])
        assert "did you mean two?" in done.stderr
        done = ostler("chat", stdin="/models nosuch\n/models 1\ngo\n")
        assert "unknown model 'nosuch'" in done.stdout + done.stderr
        assert ostler("run", "-m", "m3", "go").code == 0
        assert answered(first) == ["m1", "m3"]
