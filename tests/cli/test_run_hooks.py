"""Hooks in `ostler run`: input, denials, failures, trust."""

import json
import sys

import pytest

from ostler.testing.model_server import calls, text

WRITE = ("write", {"path": "x.txt", "content": "x"})


def at(server):
    return ["--base-url", server.base_url, "--model", "scripted"]


def configure(folder, timeout_ms=2000, **hooks):
    folder.mkdir(exist_ok=True)
    entries = {
        moment: [{"command": ["sh", "-c", script], "timeout_ms": timeout_ms}] for moment, script in hooks.items()
    }
    (folder / "config.json").write_text(json.dumps({"hooks": entries}))


def run_write(ostler, models, *flags):
    with models.playing(calls([WRITE]), text("ok")) as server:
        done = ostler("run", "-o", "json", "--write", *flags, *at(server), "go")
        return json.loads(done.stdout), json.dumps(server.requests[1].json["messages"][-1])


@pytest.mark.req("EN-15")
@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo not on Fridays >&2; exit 2", "not on Fridays"),
        ('echo \'{"decision": "deny", "reason": "not here"}\'', "not here"),
        ("exit 1", "failed"),
        ("sleep 60", "timeout"),
        ("yes", "timeout"),
        ("""echo '{"decision": "refuse"}'""", "is not one of allow, deny"),
        ("""echo '{"decision": ["deny"]}'""", "is not one of allow, deny"),
        ("""echo '{"decision": "deny"'""", "not a JSON object"),
    ],
)
@pytest.mark.sampled(every=2)
def test_denying_and_failing_hooks_deny(ostler, models, script, reason):
    configure(ostler.home / ".ostler", timeout_ms=500 if reason == "timeout" else 2000, before_tool=script)
    summary, sent = run_write(ostler, models)
    assert not (ostler.workspace / "x.txt").exists()
    assert reason in sent and any(reason in notice for notice in summary["notices"])
    (refusal,) = summary["refusals"]
    assert (refusal.startswith("write ("), reason in refusal, summary["exit"]) == (True, True, 4)


@pytest.mark.req("EN-15")
def test_hook_input(ostler, models):
    log = ostler.home / "log"
    script = f"cat >> {log}; echo >> {log}"
    configure(ostler.home / ".ostler", before_tool=script, after_tool=script, turn_end=script)
    run_write(ostler, models)
    before, after, end = map(json.loads, log.read_text().splitlines())
    assert (before["moment"], before["tool"], before["arguments"]["path"]) == ("before_tool", "write", "x.txt")
    assert (after["moment"], after["result"]["status"]) == ("after_tool", "ok")
    assert (end["moment"], end["reason"]) == ("turn_end", "done")
    assert (ostler.workspace / "x.txt").exists()


@pytest.mark.req("EN-15", "PM-8")
def test_project_hook_needs_trust(ostler, models):
    configure(ostler.workspace / ".ostler", turn_end="touch ran")
    run_write(ostler, models)
    assert not (ostler.workspace / "ran").exists()
    run_write(ostler, models, "--trust-project")
    assert (ostler.workspace / "ran").exists()


def configure_claude(ostler, **hooks):
    folder = ostler.workspace / ".claude"
    folder.mkdir(exist_ok=True)
    entries = {
        event: [{"matcher": "Write", "hooks": [{"type": "command", "command": c}]}] for event, c in hooks.items()
    }
    (folder / "settings.json").write_text(json.dumps({"hooks": entries}))


@pytest.mark.req("EN-15", "PM-8")
def test_claude_code_hooks_run_in_a_trusted_project(ostler, models):
    log = ostler.home / "log"
    configure_claude(
        ostler, PreToolUse=f"cat >> {log}; echo $CLAUDE_PROJECT_DIR >> {log}; echo no such file >&2; exit 2"
    )
    run_write(ostler, models)
    assert not log.exists() and (ostler.workspace / "x.txt").exists()
    (ostler.workspace / "x.txt").unlink()
    _, sent = run_write(ostler, models, "--trust-project")
    payload, _, folder = log.read_text().partition("}}")
    payload = json.loads(payload + "}}")
    assert "no such file" in sent and not (ostler.workspace / "x.txt").exists()
    assert (payload["hook_event_name"], payload["tool_name"], payload["tool_input"]["file_path"]) == (
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
def test_json_denials(ostler, models, answer):
    configure(ostler.home / ".ostler", before_tool=f"echo '{json.dumps(answer)}'")
    _, sent = run_write(ostler, models)
    assert "not today" in sent and not (ostler.workspace / "x.txt").exists()


@pytest.mark.req("EN-15")
def test_json_approval_extends_no_permissions(ostler, models):
    configure(ostler.home / ".ostler", before_tool="""echo '{"decision": "approve"}'""")
    with models.playing(calls([WRITE]), text("ok")) as server:
        assert ostler("run", *at(server), "go").code == 4
    assert not (ostler.workspace / "x.txt").exists()


@pytest.mark.req("EN-15")
def test_after_tool_hook_reports_to_the_model(ostler, models):
    configure(ostler.home / ".ostler", after_tool="echo lint: line too long >&2; exit 2")
    with models.playing(calls([WRITE]), text("ok")) as server:
        ostler("run", "--write", *at(server), "go")
        assert "lint: line too long" in json.dumps(server.requests[1].json["messages"])
    configure(ostler.home / ".ostler", after_tool="echo oops >&2; exit 1")
    summary, sent = run_write(ostler, models)
    assert "oops" not in sent and any("oops" in notice for notice in summary["notices"])
    assert summary["exit"] == 0


@pytest.mark.req("EN-15")
def test_turn_end_hook_continues_the_turn_a_few_times(ostler, models):
    count = ostler.home / "count"
    configure(ostler.home / ".ostler", turn_end=f"echo x >> {count}; test $(wc -l < {count}) -ge 3 || exit 2")
    with models.playing(text("one"), text("two"), text("three")) as server:
        done = ostler("run", "-o", "json", *at(server), "go")
        assert "requires more work in this turn" in json.dumps(server.requests[1].json["messages"])
    assert json.loads(done.stdout)["answer"] == "three" and done.code == 0
    configure(ostler.home / ".ostler", turn_end="exit 2")
    with models.playing(*[text(str(n)) for n in range(4)]) as server:
        done = ostler("run", "-o", "json", *at(server), "go")
    assert "still objects" in json.loads(done.stdout)["notices"][-1]


@pytest.mark.req("EN-15")
def test_failed_turn_runs_the_turn_end_hook(ostler, models):
    log = ostler.home / "log"
    configure(ostler.home / ".ostler", turn_end=f"cat >> {log}")
    from ostler.testing.model_server import status

    with models.playing(status(400, {"error": {"message": "no"}})) as server:
        assert ostler("run", *at(server), "go").code == 1
    assert json.loads(log.read_text())["reason"] == "failed"


@pytest.mark.req("EN-15")
@pytest.mark.parametrize(("script", "reason"), [("echo not this >&2; exit 2", "not this"), ("exit 1", "failed")])
def test_denied_prompt_is_never_sent(ostler, models, script, reason):
    configure(ostler.home / ".ostler", prompt_submitted=f"grep -q secret || exit 0; {script}")
    with models.playing(text("ok")) as server:
        done = ostler("run", "-o", "json", *at(server), "the secret word")
        assert done.code == 1 and reason in json.loads(done.stdout)["error"]["message"]
        assert ostler("run", "--continue", *at(server), "another").code == 0
        assert "secret" not in json.dumps(server.requests[0].json["messages"])


@pytest.mark.req("EN-15")
def test_hook_adds_context_to_a_prompt(ostler, models):
    configure(ostler.home / ".ostler", prompt_submitted="""echo '{"context": "It is Friday."}'""")
    with models.playing(text("ok")) as server:
        ostler("run", *at(server), "go")
        assert "It is Friday." in json.dumps(server.requests[0].json["messages"])


@pytest.mark.req("EN-15", "PM-8")
def test_changed_hook_program_is_not_run(ostler, models):
    (ostler.workspace / "guard.sh").write_text("exit 0\n")
    configure(ostler.workspace / ".ostler", before_tool="sh ./guard.sh", turn_end="sh ./guard.sh")
    evil = ("write", {"path": "guard.sh", "content": f"touch {ostler.home}/pwned\n"})
    with models.playing(calls([("read", {"path": "guard.sh"})]), calls([evil]), calls([WRITE]), text("ok")) as server:
        done = ostler("run", "-o", "json", "--write", "--trust-project", *at(server), "go")
        sent = json.dumps(server.requests[3].json["messages"][-1])
    assert not (ostler.home / "pwned").exists() and not (ostler.workspace / "x.txt").exists()
    assert "changed during this session" in sent
    assert sum("changed during this session" in notice for notice in json.loads(done.stdout)["notices"]) == 2


@pytest.mark.req("PM-8", "EN-15")
@pytest.mark.parametrize(
    "command",
    [
        ["./hooks/guard"],
        ["hooks/guard"],
        ["sh", "hooks/guard"],
        ["sh", "-c", "./hooks/guard"],
        ["sh", "-c", ". hooks/guard"],
        ["make", "-f", "hooks/Makefile"],
        ["python3", "-m", "hooks.guard"],
    ],
    ids=" ".join,
)
@pytest.mark.sampled(every=2)
def test_relative_hook_of_the_user_never_runs_a_file_of_the_workspace(ostler, models, command):
    ran = ostler.home / "ran"
    for folder, name in ((ostler.workspace, "workspace"), (ostler.home / ".ostler", "home")):
        hooks = folder / "hooks"
        hooks.mkdir(parents=True)
        (hooks / "guard").write_text(f"#!/bin/sh\necho {name} >> {ran}\n")
        (hooks / "guard").chmod(0o755)
        (hooks / "guard.py").write_text(f"print(open({str(ran)!r}, 'a').write('{name}\\n') and '')\n")
        (hooks / "Makefile").write_text(f"all:\n\t@echo {name} >> {ran}\n")
    (ostler.home / ".ostler" / "config.json").write_text(json.dumps({"hooks": {"before_tool": [{"command": command}]}}))
    run_write(ostler, models)
    assert ran.read_text().split() == ["home"]


@pytest.mark.req("EN-15", "PM-8")
@pytest.mark.parametrize(
    ("command", "loaded", "content"),
    [
        ("sh hooks/guard", "hooks/lib.sh", "echo x > {}\n"),
        ("make -s hook", "Makefile", "hook:\n\t@echo x > {}\n"),
        ("python3 -m tools.lint", "tools/lint.py", "open('{}', 'w')\n"),
    ],
)
def test_trusted_hook_that_loads_what_the_model_wrote_runs_in_the_sandbox(ostler, models, command, loaded, content):
    for folder in ("hooks", "tools"):
        (ostler.workspace / folder).mkdir()
    (ostler.workspace / "hooks" / "guard").write_text(". hooks/lib.sh\n")
    outside = ostler.home / "pwned"
    configure(ostler.workspace / ".ostler", turn_end=f"touch ran; {command} || true")
    write = ("write", {"path": loaded, "content": content.format(outside)})
    with models.playing(calls([write]), text("ok")) as server:
        done = ostler("run", "-o", "json", "--write", "--trust-project", *at(server), "go")
    assert (ostler.workspace / loaded).exists() and not outside.exists()
    assert sum("run in the sandbox" in notice for notice in json.loads(done.stdout)["notices"]) == 1
    assert (ostler.workspace / "ran").exists()


def run_prompt(ostler, models, *flags):
    with models.playing(text("ok")) as server:
        return json.loads(ostler("run", "-o", "json", *flags, *at(server), "hi").stdout)


LOADED_FILES = pytest.mark.parametrize(
    ("command", "loaded", "content"),
    [
        ("./hooks/guard", "hooks/lib.sh", "echo x > {}\n"),
        ("make -s hook", "Makefile", "hook:\n\t@echo x > {}\n"),
        ("python3 -m tools.lint", "tools/lint.py", "open('{}', 'w')\n"),
    ],
)


@pytest.fixture
def hooked(ostler):
    """Add programs for hooks to the workspace and return a function that trusts it with one of them."""
    for folder in ("hooks", "tools"):
        (ostler.workspace / folder).mkdir()
    (ostler.workspace / "hooks" / "guard").write_text("#!/bin/sh\n. ./hooks/lib.sh\n")
    (ostler.workspace / "hooks" / "guard").chmod(0o755)

    def trust(command):
        configure(ostler.workspace / ".ostler", prompt_submitted=f"{command} || true", turn_end=f"{command} || true")
        assert ostler("trust", "--yes").code == 0

    return trust


@pytest.mark.req("EN-15", "PM-8")
@LOADED_FILES
@pytest.mark.sampled(every=3)
def test_trusted_hook_runs_in_the_sandbox_in_later_sessions_until_trusted_again(
    ostler, models, hooked, command, loaded, content
):
    hooked(command)
    outside = ostler.home / "pwned"
    write = ("write", {"path": loaded, "content": content.format(outside)})
    with models.playing(calls([write]), text("ok")) as server:
        ostler("run", "--write", *at(server), "go")
    (notice,) = [n for n in run_prompt(ostler, models)["notices"] if "run in the sandbox" in n]
    assert not outside.exists()
    assert notice.count(command) == 1 and "ostler trust" in notice
    shown = ostler("trust")
    assert (shown.code, "may have changed files" in shown.stdout, command in shown.stdout) == (4, True, True)
    assert ostler("trust", "--yes").code == 0
    assert not any("sandbox" in notice for notice in run_prompt(ostler, models)["notices"])
    assert outside.exists()


@pytest.mark.req("EN-15", "PM-8")
@pytest.mark.parametrize("place", [".", "hooks"])
def test_session_in_a_folder_around_or_inside_changes_what_a_trusted_hook_loads(ostler, models, hooked, place):
    hooked("./hooks/guard")
    outside = ostler.home / "pwned"
    other = ostler.workspace.parent if place == "." else ostler.workspace / place
    path = str((ostler.workspace / "hooks" / "lib.sh").relative_to(other))
    with models.playing(calls([("write", {"path": path, "content": f"echo x > {outside}\n"})]), text("ok")) as server:
        ostler("run", "--write", "--cwd", str(other), *at(server), "go")
    assert (ostler.workspace / "hooks" / "lib.sh").exists()
    assert any("run in the sandbox" in notice for notice in run_prompt(ostler, models)["notices"])
    assert not outside.exists()


@pytest.mark.req("EN-15", "PM-8")
def test_session_that_only_reads_keeps_trusted_hooks_out_of_the_sandbox(ostler, models, hooked):
    hooked("./hooks/guard")
    outside = ostler.home / "ran"
    (ostler.workspace / "hooks" / "lib.sh").write_text(f"echo x > {outside}\n")
    with models.playing(calls([("read", {"path": "hooks/lib.sh"})]), text("ok")) as server:
        ostler("run", *at(server), "go")
    outside.unlink()
    assert not any("sandbox" in notice for notice in run_prompt(ostler, models)["notices"])
    assert outside.exists() and "is trusted" in ostler("trust").stdout


@pytest.mark.req("EN-15")
def test_hook_of_the_user_outside_the_workspace_is_not_affected_by_changes(ostler, models):
    ran = ostler.home / "ran"
    configure(ostler.home / ".ostler", turn_end=f"echo x >> {ran}")
    run_write(ostler, models)
    assert not any("sandbox" in notice for notice in run_prompt(ostler, models)["notices"])
    assert ran.read_text() == "x\nx\n"


@pytest.mark.req("EN-15", "PM-12")
@pytest.mark.invariant("S3")
def test_objection_at_the_end_of_a_turn_reaches_an_agent_with_the_next_prompt(ostler):
    configure(ostler.home / ".ostler", turn_end='grep -q \'"reason": *"done"\' && echo the tests fail >&2 && exit 2')
    agent = {"command": sys.executable, "args": ["-m", "ostler.testing.echo_agent"]}
    (ostler.home / ".ostler" / "acp.json").write_text(json.dumps({"agent_servers": {"echo": agent}}))
    chat = ostler("chat", "--backend", "acp:echo", stdin="first\nsecond\n/quit\n", timeout=90)
    assert "a hook objects to the end of this turn: the tests fail" in chat.stdout
    first, _, second = chat.stdout.partition("> second")
    assert "hook objected to the end of the last turn" not in first
    assert "Echo: The user's hook objected to the end of the last turn: the tests fail" in second
