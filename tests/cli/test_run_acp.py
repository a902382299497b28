"""`--backend acp:NAME`: an ACP agent in a headless run, with Ostler's policy, journal and exit codes."""

import json
import sys

import pytest

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
