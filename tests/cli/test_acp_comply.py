"""`ostler acp comply`: Ostler's own agent conforms, and violations of others are found."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.cli.compliant_model import compliant_model

OWN_AGENT = (sys.executable, "-P", "-m", "ostler", "acp")


def comply(ostler, *arguments, timeout=90):
    done = ostler("acp", "comply", "-o", "json", *arguments, timeout=timeout)
    report = json.loads(done.stdout)
    return done.code, {finding["id"]: finding for finding in report["findings"]}


TIMED = {"END-1", "END-2"}  # two seconds may be too short on a busy machine


def check_own_agent(ostler, *flags):
    with compliant_model() as url:
        code, findings = comply(ostler, *flags, *OWN_AGENT, "--base-url", url, "--model", "compliant", timeout=240)
    skipped = {name for name, finding in findings.items() if finding["state"] == "skipped"}
    assert skipped == {"TURN-7", "FS-1", "FS-2"}  # only unsaved text is read and written through the editor
    return code, {name: finding["seen"] for name, finding in findings.items() if finding["state"] == "failed"}


@pytest.mark.req("AC-6")
@pytest.mark.timeout(300)
def test_own_agent_conforms(ostler):
    code, failed = check_own_agent(ostler)
    assert (code, {name: detail for name, detail in failed.items() if name not in TIMED}) == (0, {})


@pytest.mark.slow
@pytest.mark.req("AC-6")
@pytest.mark.timeout(300)
def test_own_agent_follows_all_recommendations(ostler):
    assert check_own_agent(ostler, "--strict") == (0, {})


BAD_AGENT = """
    import json, sys

    print("hello, I am an agent")
    for line in sys.stdin:
        request = json.loads(line)
        method, number = request.get("method"), request.get("id")
        if method == "initialize":
            answer = {"result": {"protocolVersion": 1, "agentCapabilities": {"loadSession": "yes"}}}
        elif method == "session/new":
            answer = {"result": {"sessionId": "one for all"}}
            print(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "fs/read_text_file", "params": {}}), flush=True)
        elif method == "session/prompt":
            answer = {"result": {"stopReason": "tired"}}
        else:
            answer = {"result": None}
        if number is not None:
            print(json.dumps({"jsonrpc": "2.0", "id": number, **answer}), flush=True)
"""


@pytest.mark.req("AC-5")
def test_violations_are_found(ostler, tmp_path):
    agent = tmp_path / "agent.py"
    agent.write_text(textwrap.dedent(BAD_AGENT))
    areas = [word for area in ("sessions", "turns", "errors", "framing") for word in ("--only", area)]
    code, findings = comply(ostler, "--timeout", "5", *areas, sys.executable, agent)
    assert code == 1
    failed = {name for name, finding in findings.items() if finding["state"] == "failed"}
    assert failed >= {"SESS-1", "TURN-1", "ERR-1", "ERR-3", "ERR-6", "FRAME-1", "FRAMES", "STDOUT", "INVITED"}
    assert "'tired'" in findings["TURN-1"]["seen"]
    assert "loadSession" in findings["FRAMES"]["seen"]


ECHO = (sys.executable, "-P", "-m", "ostler.testing.echo_agent")
NEEDS_A_MODEL = {"TOOL-1", "TOOL-2", "TOOL-3", "TOOL-4", "TOOL-5", "FS-1", "FS-2", "TERM-1"}
MAY_BE_OVER = {"CANC-1", "CANC-2", "CANC-3", "CANC-5", "CANC-6"}  # the echo may arrive before the cancellation


@pytest.mark.req("AC-5")
def test_example_agent_conforms(ostler):
    everything = ("--store", ostler.home / "store", "--resume", "--fork", "--steering", "--config")
    _, findings = comply(ostler, "--strict", "--", *ECHO, *everything)
    steady = {name: finding for name, finding in findings.items() if name not in TIMED | MAY_BE_OVER}
    assert {name: finding["seen"] for name, finding in steady.items() if finding["state"] == "failed"} == {}
    assert {name for name, finding in steady.items() if finding["state"] == "skipped"} == {"TURN-7"} | NEEDS_A_MODEL


def test_recommendations_count_only_with_strict(ostler):
    lax = (
        "import ostler.testing.echo_agent as e; e._open_params = lambda params: e.OpenSessionParams('/', ()); e.main()"
    )
    agent = (sys.executable, "-P", "-c", lax)
    code, findings = comply(ostler, "--only", "err-4", *agent)
    assert (code, findings["ERR-4"]["state"]) == (0, "failed")
    assert comply(ostler, "--only", "err-4", "--strict", *agent)[0] == 1


def test_closed_pipe_causes_no_traceback(ostler):
    command = [sys.executable, "-P", "-m", "ostler", "acp", "comply", "--only", "handshake", *ECHO]
    with subprocess.Popen(
        command, env=ostler.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ostler.workspace
    ) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""


def test_text_report(ostler):
    done = ostler("acp", "comply", "--only", "handshake", sys.executable, "-m", "ostler.testing.echo_agent")
    lines = done.stdout.splitlines()
    assert lines[:2] == ["handshake", "  ✓ INIT-1   initialize is answered with protocol version 1"]
    assert "6 passed, 0 failed, 0 skipped" in lines[-1]


def test_agent_that_does_not_start_ends_the_suite(ostler):
    done = ostler("acp", "comply", sys.executable, "-c", "import sys; sys.exit('no model')")
    assert done.code == 1
    assert "last stderr output: no model" in done.stdout
    assert "sessions" not in done.stdout


@pytest.mark.parametrize("arguments", [(), ("no-such-program-at-all",)])
def test_missing_agent_is_an_error(ostler, arguments):
    done = ostler("acp", "comply", *arguments)
    assert (done.code, "Traceback" in done.stderr) == (2, False)


def test_configured_agent(ostler):
    (ostler.home / ".ostler").mkdir()
    echo = {"command": sys.executable, "args": ["-P", "-m", "ostler.testing.echo_agent"]}
    (ostler.home / ".ostler" / "acp.json").write_text(json.dumps({"agent_servers": {"echo": echo}}))
    code, findings = comply(ostler, "--only", "init-1", "-a", "echo")
    assert (code, findings["INIT-1"]["state"]) == (0, "passed")


def test_relative_program_path(ostler):
    (ostler.workspace / "agent").symlink_to(Path(sys.executable))
    done = ostler("acp", "comply", "--only", "init-1", "./agent", "-c", "raise SystemExit('started')")
    assert "started" in done.stdout
