"""Hooks through `ostler run`: told of every call, able to refuse, and a broken one refuses."""

import json

import pytest

from ostler.testing.model_server import calls, text

WRITE = ("write", {"path": "x.txt", "content": "x"})


def at(server):
    return ["--base-url", server.base_url, "--model", "scripted"]


def configure(folder, **hooks):
    folder.mkdir(exist_ok=True)
    told = {moment: [{"command": ["sh", "-c", script], "timeout_ms": 2000}] for moment, script in hooks.items()}
    (folder / "config.json").write_text(json.dumps({"hooks": told}))


def play(ostler, models, *flags):
    with models.playing(calls([WRITE]), text("ok")) as server:
        done = ostler("run", "-o", "json", "--write", *flags, *at(server), "go")
        return json.loads(done.stdout), json.dumps(server.requests[1].json["messages"][-1])


@pytest.mark.req("EN-15")
@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo not on Fridays >&2; exit 2", "not on Fridays"),
        ('echo \'{"decision": "deny", "reason": "not here"}\'', "not here"),
        ("exit 1", "failed"),
        ("sleep 60", "took too long"),
        ("yes", "took too long"),
        ("""echo '{"decision": "refuse"}'""", "is none of allow, deny"),
        ("""echo '{"decision": ["deny"]}'""", "is none of allow, deny"),
        ("""echo '{"decision": "deny"'""", "no JSON object"),
    ],
)
def test_a_hook_refuses_and_a_broken_one_does_too(ostler, models, script, said):
    configure(ostler.home / ".ostler", before_tool=script)
    summary, told = play(ostler, models)
    assert not (ostler.workspace / "x.txt").exists()
    assert said in told and any(said in notice for notice in summary["notices"])
    (refusal,) = summary["refusals"]
    assert (refusal.startswith("write ("), said in refusal, summary["exit"]) == (True, True, 4)


@pytest.mark.req("EN-15")
def test_hooks_hear_what_happens_around_tools_and_at_the_end(ostler, models):
    log = ostler.home / "heard"
    hear = f"cat >> {log}; echo >> {log}"
    configure(ostler.home / ".ostler", before_tool=hear, after_tool=hear, turn_end=hear)
    play(ostler, models)
    before, after, end = map(json.loads, log.read_text().splitlines())
    assert (before["moment"], before["tool"], before["arguments"]["path"]) == ("before_tool", "write", "x.txt")
    assert (after["moment"], after["result"]["status"]) == ("after_tool", "ok")
    assert (end["moment"], end["reason"]) == ("turn_end", "done")
    assert (ostler.workspace / "x.txt").exists()


@pytest.mark.req("EN-15", "PM-8")
def test_a_projects_hook_runs_only_with_trust(ostler, models):
    configure(ostler.workspace / ".ostler", turn_end=f"touch {ostler.home}/ran")
    play(ostler, models)
    assert not (ostler.home / "ran").exists()
    play(ostler, models, "--trust-project")
    assert (ostler.home / "ran").exists()


def claude(ostler, **hooks):
    folder = ostler.workspace / ".claude"
    folder.mkdir(exist_ok=True)
    told = {event: [{"matcher": "Write", "hooks": [{"type": "command", "command": c}]}] for event, c in hooks.items()}
    (folder / "settings.json").write_text(json.dumps({"hooks": told}))


@pytest.mark.req("EN-15", "PM-8")
def test_hooks_of_claude_code_count_in_a_trusted_project(ostler, models):
    log = ostler.home / "heard"
    claude(ostler, PreToolUse=f"cat >> {log}; echo $CLAUDE_PROJECT_DIR >> {log}; echo no such file >&2; exit 2")
    play(ostler, models)
    assert not log.exists() and (ostler.workspace / "x.txt").exists()
    (ostler.workspace / "x.txt").unlink()
    _, told = play(ostler, models, "--trust-project")
    heard, _, folder = log.read_text().partition("}}")
    heard = json.loads(heard + "}}")
    assert "no such file" in told and not (ostler.workspace / "x.txt").exists()
    assert (heard["hook_event_name"], heard["tool_name"], heard["tool_input"]["file_path"]) == (
        "PreToolUse",
        "Write",
        "x.txt",
    )
    assert folder.strip() == str(ostler.workspace)


@pytest.mark.req("EN-15")
@pytest.mark.parametrize(
    "answer",
    [
        {"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "not today"}},
        {"decision": "block", "reason": "not today"},
        {"continue": False, "stopReason": "not today"},
    ],
)
def test_every_way_to_say_no_in_json_is_a_no(ostler, models, answer):
    configure(ostler.home / ".ostler", before_tool=f"echo '{json.dumps(answer)}'")
    _, told = play(ostler, models)
    assert "not today" in told and not (ostler.workspace / "x.txt").exists()


@pytest.mark.req("EN-15")
def test_a_yes_in_json_widens_nothing(ostler, models):
    configure(ostler.home / ".ostler", before_tool="""echo '{"decision": "approve"}'""")
    with models.playing(calls([WRITE]), text("ok")) as server:
        assert ostler("run", *at(server), "go").code == 4
    assert not (ostler.workspace / "x.txt").exists()


@pytest.mark.req("EN-15")
def test_a_hook_after_a_tool_tells_the_model_and_a_broken_one_only_the_person(ostler, models):
    configure(ostler.home / ".ostler", after_tool="echo lint: line too long >&2; exit 2")
    with models.playing(calls([WRITE]), text("ok")) as server:
        ostler("run", "--write", *at(server), "go")
        assert "lint: line too long" in json.dumps(server.requests[1].json["messages"])
    configure(ostler.home / ".ostler", after_tool="echo oops >&2; exit 1")
    summary, told = play(ostler, models)
    assert "oops" not in told and any("oops" in notice for notice in summary["notices"])
    assert summary["exit"] == 0


@pytest.mark.req("EN-15")
def test_a_turn_goes_on_while_a_hook_objects_and_not_for_ever(ostler, models):
    count = ostler.home / "count"
    configure(ostler.home / ".ostler", turn_end=f"echo x >> {count}; test $(wc -l < {count}) -ge 3 || exit 2")
    with models.playing(text("one"), text("two"), text("three")) as server:
        done = ostler("run", "-o", "json", *at(server), "go")
        assert "does not let this turn end" in json.dumps(server.requests[1].json["messages"])
    assert json.loads(done.stdout)["answer"] == "three" and done.code == 0
    configure(ostler.home / ".ostler", turn_end="exit 2")
    with models.playing(*[text(str(n)) for n in range(4)]) as server:
        done = ostler("run", "-o", "json", *at(server), "go")
    assert "still objects" in json.loads(done.stdout)["notices"][-1]


@pytest.mark.req("EN-15")
def test_a_turn_that_fails_is_told_too(ostler, models):
    log = ostler.home / "heard"
    configure(ostler.home / ".ostler", turn_end=f"cat >> {log}")
    from ostler.testing.model_server import status

    with models.playing(status(400, {"error": {"message": "no"}})) as server:
        assert ostler("run", *at(server), "go").code == 1
    assert json.loads(log.read_text())["reason"] == "failed"


@pytest.mark.req("EN-15")
@pytest.mark.parametrize(("script", "why"), [("echo not this >&2; exit 2", "not this"), ("exit 1", "failed")])
def test_a_refused_prompt_is_never_sent(ostler, models, script, why):
    configure(ostler.home / ".ostler", prompt_submitted=f"grep -q secret || exit 0; {script}")
    with models.playing(text("ok")) as server:
        done = ostler("run", "-o", "json", *at(server), "the secret word")
        assert done.code == 1 and why in json.loads(done.stdout)["error"]["message"]
        assert ostler("run", "--continue", *at(server), "another").code == 0
        assert "secret" not in json.dumps(server.requests[0].json["messages"])


@pytest.mark.req("EN-15")
def test_a_hook_adds_to_a_prompt(ostler, models):
    configure(ostler.home / ".ostler", prompt_submitted="""echo '{"context": "It is Friday."}'""")
    with models.playing(text("ok")) as server:
        ostler("run", *at(server), "go")
        assert "It is Friday." in json.dumps(server.requests[0].json["messages"])


@pytest.mark.req("EN-15", "PM-8")
def test_a_model_cannot_have_run_what_it_wrote_into_a_hooks_program(ostler, models):
    (ostler.workspace / "guard.sh").write_text("exit 0\n")
    configure(ostler.home / ".ostler", before_tool="sh ./guard.sh", turn_end="sh ./guard.sh")
    evil = ("write", {"path": "guard.sh", "content": f"touch {ostler.home}/pwned\n"})
    with models.playing(calls([("read", {"path": "guard.sh"})]), calls([evil]), calls([WRITE]), text("ok")) as server:
        done = ostler("run", "-o", "json", "--write", *at(server), "go")
        told = json.dumps(server.requests[3].json["messages"][-1])
    assert not (ostler.home / "pwned").exists() and not (ostler.workspace / "x.txt").exists()
    assert "changed while this session runs" in told
    assert sum("changed while this session runs" in notice for notice in json.loads(done.stdout)["notices"]) == 2
