"""`ostler acp run`: services for the agent, policy files, closed pipes, trust, `acpcli`."""

import json
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytestmark = [pytest.mark.req("AC-1"), pytest.mark.timeout(180)]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def acp(ostler):
    """Return a function that runs the echo agent: `acp("--write", "!say hi")`."""
    settings = ostler.home / "settings.json"
    entry = {"command": sys.executable, "args": ["-m", "ostler.testing.echo_agent"]}
    settings.write_text(json.dumps({"agent_servers": {"echo": entry}}))
    return lambda *args, **more: ostler("acp", "run", "--settings", settings, *args, timeout=90, **more)


def test_services_for_the_agent(ostler, acp):
    more = ostler.home / "more"
    more.mkdir()
    (more / "far.txt").write_text("far away")
    (ostler.home / "mcp.json").write_text('{"mcpServers": {"files": {"command": "/bin/files"}}}')
    flags = ("--add-dir", more, "--mcp", ostler.home / "mcp.json", "--answer", "name=Ada", "--no-terminal")
    done = acp(*flags, "-o", "simple", f"!state\n!say |\n!read {more}/far.txt\n!say |\n!elicit name\n!say |\n!run ls")
    state, read, elicited, ran = done.stdout.split("|")
    parsed = json.loads(state)
    assert (parsed["directories"], parsed["mcp"][0]["name"]) == ([str(more)], "files")
    assert "terminal" not in parsed["client"]
    assert read == "far away"
    assert json.loads(elicited) == {"action": "accept", "content": {"name": "Ada"}}
    assert "terminal/create refused: -32601" in ran
    invalid = acp("--add-dir", "/nowhere", "hi")
    assert (invalid.code, invalid.stderr) == (2, "ostler: --add-dir /nowhere: no such folder\n")


@pytest.mark.req("PM-4")
def test_policy_file_overrides_the_defaults(ostler, acp):
    (ostler.workspace / "policy.json").write_text(
        '{"bash": {"*": "deny", "echo *": "allow"}, "read": {"*.env": "deny"}}'
    )
    (ostler.workspace / "x.env").write_text("secret")
    done = acp("--policy", "policy.json", "--write", "!run echo yes\n!run ls\n!read x.env\n!write new/dir/f.txt made")
    assert "yes (exit 0, cut False)" in done.stdout
    assert "[permission] auto-deny terminal/create ls" in done.stdout
    assert "[permission] auto-deny fs/read_text_file x.env" in done.stdout
    assert (ostler.workspace / "new" / "dir" / "f.txt").read_text() == "made"
    (ostler.workspace / "policy.json").write_text('{"bash": "perhaps"}')
    assert acp("--policy", "policy.json", "hi").code == 2


@pytest.mark.req("CL-9")
def test_closed_pipe_ends_the_run(ostler):
    settings = ostler.home / "settings.json"
    entry = {"command": sys.executable, "args": ["-m", "ostler.testing.echo_agent"]}
    settings.write_text(json.dumps({"agent_servers": {"echo": entry}}))
    flags = ["--settings", str(settings), "-o", "jsonl", "!updates 50000"]
    command = f"{shlex.join([sys.executable, '-P', '-m', 'ostler', 'acp', 'run', *flags])} | head -n 1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=ostler.workspace,
        env=ostler.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stdout.count("\n"), done.stderr) == (0, 1, "")


def test_project_file_needs_trust(ostler):
    (ostler.workspace / ".ostler").mkdir()
    entry = {"command": sys.executable, "args": ["-m", "ostler.testing.echo_agent"]}
    file = ostler.workspace / ".ostler" / "acp.json"
    file.write_text(json.dumps({"agent_servers": {"echo": entry}}))
    untrusted = ostler("acp", "run", "hi")
    assert (untrusted.code, "acp.json is ignored until you trust it" in untrusted.stderr) == (2, True)
    assert "no ACP agent is configured" in untrusted.stderr
    assert ostler("acp", "run", "--trust-project", "hi").stdout == "Echo: hi\n"
    assert "agent_servers.echo = " in ostler("trust", "--yes").stdout
    assert ostler("acp", "run", "hi") == ("Echo: hi\n", "", 0)
    file.write_text(json.dumps({"agent_servers": {"echo": {**entry, "env": {"A": "b"}}}}))
    assert ostler("acp", "run", "hi").code == 2


def test_acpcli_runs_the_same_command():
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, function = scripts["acpcli"].partition(":")
    code = f"import sys; sys.argv = ['acpcli', '--help']; from {module} import {function} as main; main()"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False, timeout=50)
    assert (done.returncode, "--list-caps" in done.stdout) == (0, True)
