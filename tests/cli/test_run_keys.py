"""Keys and other secrets never appear in output, files or requests."""

import json

import pytest

from ostler.testing.model_server import calls, raw, sse_event, status, text

pytestmark = pytest.mark.req("MD-3")

KEY = "sk-planted-0123456789abcdef0123456789abcdef"
ERROR_REPLIES = {
    "a refusal that repeats it": status(401, {"error": {"message": f"Incorrect API key provided: {KEY}"}}),
    "a bad request": status(400, {"error": {"message": f"no such header: Bearer {KEY}"}}),
    "an error in the stream": raw(sse_event({"error": {"message": f"Authorization: Bearer {KEY}"}})),
    "a web page": raw(f"<html>{KEY}</html>".encode(), content_type="text/html"),
    "a redirect": status(302, "", headers={"location": f"http://elsewhere.example/?key={KEY}"}),
    "no JSON": raw(f"data: {{{KEY}\n\n".encode()),
}


def everything(ostler, done):
    """Return the output and the content of all files in the home and the workspace."""
    files = [path for folder in (ostler.home, ostler.workspace) for path in folder.rglob("*") if path.is_file()]
    return {"screen": done.stdout + done.stderr} | {str(path): path.read_bytes().decode("latin-1") for path in files}


def leaks(ostler, done):
    return [place for place, content in everything(ostler, done).items() if KEY in content]


@pytest.mark.parametrize("case", ERROR_REPLIES)
@pytest.mark.parametrize("output", ["text", "jsonl"])
def test_key_is_masked_in_errors(ostler, models, case, output):
    with models.playing(ERROR_REPLIES[case]) as server:
        flags = ["--base-url", server.base_url, "--model", "scripted"]
        done = ostler("run", "-o", output, *flags, "look", env={"OSTLER_API_KEY": KEY})
    assert done.code == 1
    assert any(KEY in value for value in server.requests[0].headers.values())
    assert leaks(ostler, done) == []


def test_key_is_masked_in_a_run(ostler, models):
    """Commands do not see the variable either."""
    config = {"models": {"profiles": [{"name": "p", "model": "scripted", "apiKey": "{env:MY_KEY}", "baseUrl": ""}]}}
    (ostler.home / ".ostler").mkdir()
    look = calls([("bash", {"command": "env; export -p"}), ("read", {"path": "a.txt"})])
    with models.playing(look, text("done")) as server:
        config["models"]["profiles"][0]["baseUrl"] = server.base_url
        (ostler.home / ".ostler" / "config.json").write_text(json.dumps(config))
        done = ostler("run", "-o", "jsonl", "--allow", "bash:*", "look", env={"MY_KEY": KEY, "OSTLER_API_KEY": KEY})
        sent = server.requests[1].body.decode()
    assert done.code == 0, done.stdout
    assert KEY not in sent
    assert leaks(ostler, done) == []


PLANTED = {
    name: f"planted-{name}-0123456789abcdef"
    for name in ("key", "header", "env-header", "file-header", "query", "file-query", "proxy")
}


def configure_secrets(ostler, port):
    """Configure a profile with a secret in every possible place, all sent to the server."""
    (ostler.home / "key.txt").write_text(PLANTED["key"])
    (ostler.home / "header.txt").write_text(PLANTED["file-header"] + "\n")
    (ostler.home / "query.txt").write_text(PLANTED["file-query"])
    profile = {
        "name": "p",
        "model": "scripted",
        "baseUrl": f"http://model.example/v1?zone={PLANTED['query']}&more={{file:~/query.txt}}",
        "apiKey": "{file:~/key.txt}",
        "headers": {
            "X-Zone": PLANTED["header"],
            "X-Team": "{env:TEAM}",
            "X-Place": "At {file:~/header.txt}",
        },
        "proxy": f"http://me:{PLANTED['proxy']}@127.0.0.1:{port}",
    }
    (ostler.home / ".ostler").mkdir()
    config = {"models": {"profiles": [profile]}, "logs": {"level": "debug"}, "session": {"titles": "never"}}
    (ostler.home / ".ostler" / "config.json").write_text(json.dumps(config))
    return {"TEAM": PLANTED["env-header"]}


ECHO = " and ".join(PLANTED.values())
ECHOING_REPLIES = {
    "a refusal": status(400, {"error": {"message": ECHO, "code": PLANTED["query"]}}),
    "a refused key": status(403, {"error": {"message": ECHO}}),
    "a failure": status(500, ECHO, headers={"retry-after": "9999"}),
    "an error in the stream": raw(sse_event({"error": {"message": ECHO}})),
    "a redirect": status(302, "", headers={"location": f"http://elsewhere.example/?zone={PLANTED['query']}&{ECHO}"}),
}


@pytest.mark.parametrize("case", ECHOING_REPLIES)
def test_secrets_of_a_profile_are_masked(ostler, models, case):
    with models.playing(ECHOING_REPLIES[case]) as server:
        env = configure_secrets(ostler, server.port)
        done = ostler("run", "-o", "jsonl", "look", env=env)
        sent = server.requests[0].path + str(server.requests[0].headers)
    assert done.code == 1
    assert all(PLANTED[name] in sent for name in PLANTED if name != "proxy")
    own = {str(ostler.home / name) for name in ("key.txt", "header.txt", "query.txt", ".ostler/config.json")}
    contents = {place: content for place, content in everything(ostler, done).items() if place not in own}
    assert [(place, name) for place, text in contents.items() for name in PLANTED if PLANTED[name] in text] == []
    assert any(place.endswith(".log") or place.endswith("/log") for place in contents)


@pytest.mark.req("SE-4", "MD-9")
def test_key_is_masked_in_a_resumed_conversation(ostler, models):
    """The key is in a file, a rule, the prompt and a command; neither Ostler's files nor the model get it."""
    planted = {"notes.txt": f"the key is {KEY}\n", "AGENTS.md": f"Use {KEY} with care.\n"}
    for name, content in planted.items():
        (ostler.workspace / name).write_text(content)
    look = calls([("read", {"path": "notes.txt"}), ("bash", {"command": "cat notes.txt; env"})])
    flags, env = ["run", "-o", "jsonl", "--model", "scripted", "--allow", "bash:*"], {"OSTLER_API_KEY": KEY}
    with models.playing(look, text("seen"), text("again")) as server:
        flags += ["--base-url", server.base_url]
        first = ostler(*flags, f"is {KEY} the key?", env=env)
        second = ostler(*flags, "-c", "and now?", env=env)
        bodies = [request.json["messages"] for request in server.requests if request.body]
    assert (first.code, second.code) == (0, 0), first.stdout + second.stdout
    assert "WITHHELD" in json.dumps(bodies[0])
    assert KEY not in json.dumps(bodies)
    assert bodies[1][: len(bodies[0])] == bodies[0]
    assert bodies[2][: len(bodies[1])] == bodies[1]
    for name in planted:
        (ostler.workspace / name).unlink()
    assert leaks(ostler, first) == leaks(ostler, second) == []


@pytest.mark.parametrize(
    "variable", ["SILICONFLOW_API_KEY", "SILICONFLOW_TOKEN", "DASHSCOPE_API_KEY", "OPENAI_API_KEY"]
)
def test_vendor_variable_is_not_sent_to_another_endpoint(ostler, models, variable):
    with models.playing(text("hi")) as server:
        done = ostler("run", "--base-url", server.base_url, "--model", "scripted", "go", env={variable: KEY})
        assert "authorization" not in server.requests[0].headers
    assert "key from" not in done.stderr


def test_profile_key_wins_and_its_source_is_named(ostler, models):
    """A vendor's variable does not replace the profile's key; the messages name the source, never the key."""
    (ostler.home / ".ostler").mkdir()
    cases = [({}, "the profile", KEY), ({"OSTLER_API_KEY": "own-0123456789"}, "OSTLER_API_KEY", "own-0123456789")]
    for extra, source, key in cases:
        with models.playing(status(401, {"error": {"message": "wrong"}})) as server:
            profile = {"name": "keyed", "model": "m", "baseUrl": server.base_url, "apiKey": "{env:MY_KEY}"}
            config = {"models": {"profiles": [profile]}}
            (ostler.home / ".ostler" / "config.json").write_text(json.dumps(config))
            done = ostler("run", "go", env={"MY_KEY": KEY, "SILICONFLOW_API_KEY": "sk-other", **extra})
            assert server.requests[0].headers["authorization"] == f"Bearer {key}"
        assert f", key from {source}" in done.stderr
        assert f"rejected the API key from {source}" in done.stdout
        assert key not in done.stdout + done.stderr
