"""`--backend acp:NAME`: an ACP agent in a headless run, with Ostler's policy, journal and exit codes."""

import json
import sys

import pytest
from tests.scripted_acp_agent import scripted_agent

pytestmark = [pytest.mark.req("AC-2", "PM-4"), pytest.mark.timeout(180)]


@pytest.fixture
def echo(ostler):
    """Return a function that runs the echo agent, which saves its sessions: `echo("!say hi", "--write")`."""
    entry = {
        "command": sys.executable,
        "args": ["-m", "ostler.testing.echo_agent", "--store", str(ostler.home / "store")],
    }
    (ostler.home / ".ostler").mkdir()
    (ostler.home / ".ostler" / "acp.json").write_text(json.dumps({"agent_servers": {"echo": entry}}))
    return lambda *args, **more: ostler("run", "--backend", "acp:echo", *args, timeout=90, **more)


def test_turn_of_an_acp_agent(ostler, echo):
    (ostler.workspace / "a.txt").write_text("inside")
    done = echo("-o", "json", "--write", "!plan\n!tool read Look\n!read a.txt\n!edit b.txt new\n!usage\n!say .")
    summary = json.loads(done.stdout)
    assert (done.code, summary["answer"], summary["usage"]["tokens_in"]) == (0, "wrote b.txt.", 10)
    assert [tool["status"] for tool in summary["tools"]] == ["ok"] * 4
    assert (ostler.workspace / "b.txt").read_text() == "new"


def test_exit_codes(ostler, echo):
    refused = echo("!write b.txt new\n!ask execute sudo ls")
    assert refused.code == 4
    assert "write b.txt needs approval" in refused.stdout
    crashed = echo("!say half\n!crash 3")
    assert (crashed.code, "echo ended with exit code 3" in crashed.stdout + crashed.stderr) == (1, True)
    modelless = echo("--model", "large", "hi")
    assert (modelless.code, "echo has no option 'model'" in modelless.stderr) == (2, True)
    unknown = ostler("run", "--backend", "acp:nobody", "hi")
    assert (unknown.code, "unknown ACP agent 'nobody'" in unknown.stderr) == (2, True)
    assert ostler("run", "--backend", "oracle", "hi").code == 2


def test_resume_uses_the_agents_session(ostler, echo):
    first = json.loads(echo("-o", "json", "first words").stdout)
    again = echo("-o", "jsonl", "--resume", first["session"], "!say second")
    assert again.code == 0
    marks = [line for line in again.stdout.splitlines() if "far_mark" in line]
    assert len(list((ostler.home / "store").glob("*.jsonl"))) == 1
    assert len(marks) == 1


@pytest.mark.parametrize("which", [["--continue"], ["--resume", "{}"]])
def test_resume_starts_the_sessions_agent(ostler, echo, which):
    first = json.loads(echo("-o", "json", "first words").stdout)
    again = ostler("run", "-o", "simple", *(word.format(first["session"]) for word in which), "!say second", timeout=90)
    assert (again.code, again.stdout) == (0, "second\n")
    assert "backend: acp:echo (this session was started with it)" in again.stderr
    assert len(list((ostler.home / "store").glob("*.jsonl"))) == 1


def test_missing_agent_of_a_session_is_named(ostler, echo):
    echo("first words")
    (ostler.home / ".ostler" / "acp.json").unlink()
    gone = ostler("run", "--continue", "second")
    assert (gone.code, "unknown ACP agent 'echo'" in gone.stderr) == (2, True)


ACTS_BY_ITSELF = "echo acts by itself: Ostler cannot restrict its own tools."


@pytest.fixture
def own_tools(ostler):
    """Return a function that runs an agent that writes files without asking: `own_tools("path")`."""
    lines = "[open(path, 'w').write('by the agent') for path in prompts[-1].split()]; say('done')"
    command = scripted_agent(lines)
    (ostler.home / ".ostler").mkdir(exist_ok=True)
    servers = {"agent_servers": {"own": {"command": command[0], "args": command[1:]}}}
    (ostler.home / ".ostler" / "acp.json").write_text(json.dumps(servers))
    return lambda *args: ostler("run", "--backend", "acp:own", *args, timeout=90)


@pytest.mark.req("EN-13")
@pytest.mark.parametrize("flags", [(), ("--write",)])
def test_agent_that_acts_by_itself_is_announced_and_its_changes_can_be_undone(ostler, own_tools, flags):
    (ostler.workspace / "old.txt").write_text("before")
    done = own_tools(*flags, "old.txt new.txt")
    assert done.code == 0
    assert "own acts by itself: Ostler cannot restrict its own tools." in done.stderr
    assert "can be undone with `ostler undo`" in done.stderr
    assert "allowed if own asks: " in done.stderr
    assert "ostler: allowed: " not in done.stderr
    assert (ostler.workspace / "old.txt").read_text() == "by the agent"
    assert "new.txt, old.txt" in ostler("undo", "--list").stdout
    assert ostler("undo").code == 0
    assert [path.name for path in ostler.workspace.iterdir()] == ["old.txt"]
    assert (ostler.workspace / "old.txt").read_text() == "before"


@pytest.mark.req("EN-13")
def test_undo_after_an_agent_that_changed_nothing_offers_no_other_session(ostler, own_tools):
    own_tools("first.txt")
    own_tools("/dev/null")
    done = ostler("undo")
    assert (done.code, done.stdout) == (2, "")
    assert (ostler.workspace / "first.txt").exists()


def test_ephemeral_run_says_that_changes_cannot_be_undone(own_tools):
    assert "cannot be undone (--ephemeral)" in own_tools("--ephemeral", "a.txt").stderr


def test_chat_announces_an_agent_that_acts_by_itself(ostler, echo):
    done = ostler("chat", "--backend", "acp:echo", stdin="hello\n")
    assert ACTS_BY_ITSELF in done.stdout + done.stderr


TEXT_AND_CALL = """
    say("let me look")
    update("tool_call", toolCallId="c1", title="Look", kind="read", status="pending")
    update("tool_call_update", toolCallId="c1", status="completed")
"""


@pytest.mark.req("CL-6")
def test_text_before_a_call_is_not_the_answer(ostler):
    command = scripted_agent(f"{TEXT_AND_CALL}    say('all done')")
    (ostler.home / ".ostler").mkdir()
    servers = {"agent_servers": {"own": {"command": command[0], "args": command[1:]}}}
    (ostler.home / ".ostler" / "acp.json").write_text(json.dumps(servers))
    shown = ostler("run", "--backend", "acp:own", "go").stdout
    assert [line for line in shown.splitlines() if "ANSWER" in line or "PLAN" in line] == ["  ↑ PLAN", "  ↑ ANSWER"]
    assert shown.index("let me look") < shown.index("PLAN") < shown.index("all done") < shown.index("ANSWER")
    assert ostler("run", "--backend", "acp:own", "-o", "simple", "go").stdout == "let me look\nall done\n"


@pytest.mark.req("CL-6")
def test_text_before_the_last_call_is_the_answer_if_there_is_no_other(ostler):
    command = scripted_agent(TEXT_AND_CALL)
    (ostler.home / ".ostler").mkdir()
    servers = {"agent_servers": {"own": {"command": command[0], "args": command[1:]}}}
    (ostler.home / ".ostler" / "acp.json").write_text(json.dumps(servers))
    assert ostler("run", "--backend", "acp:own", "-o", "simple", "go").stdout == "let me look\n"
    assert json.loads(ostler("run", "--backend", "acp:own", "-o", "json", "go").stdout)["answer"] == "let me look"
