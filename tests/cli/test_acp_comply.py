"""`ostler acp comply` puts agents to the test: ours keeps to the protocol, and what does not is found out."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.cli.obliging_model import obliging_model

OURS = (sys.executable, "-P", "-m", "ostler", "acp")


def comply(ostler, *arguments, timeout=90):
    done = ostler("acp", "comply", "-o", "json", *arguments, timeout=timeout)
    told = json.loads(done.stdout)
    return done.code, {one["id"]: one for one in told["findings"]}


TIMED = {"END-1", "END-2"}  # two seconds may be too short where the machine is busy


def ours_complies(ostler, *flags):
    with obliging_model() as url:
        code, found = comply(ostler, *flags, *OURS, "--base-url", url, "--model", "obliging", timeout=240)
    assert {name for name, one in found.items() if one["state"] == "skipped"} == {"TURN-7"}
    return code, {name: one["seen"] for name, one in found.items() if one["state"] == "failed"}


@pytest.mark.req("AC-6")
@pytest.mark.timeout(300)
def test_our_agent_keeps_to_the_protocol(ostler):
    code, failed = ours_complies(ostler)
    assert (code, {name: seen for name, seen in failed.items() if name not in TIMED}) == (0, {})


@pytest.mark.slow
@pytest.mark.req("AC-6")
@pytest.mark.timeout(300)
def test_our_agent_keeps_to_all_of_it(ostler):
    assert ours_complies(ostler, "--strict") == (0, {})


BAD = """
    import json, sys

    print("hello, I am an agent")
    for line in sys.stdin:
        asked = json.loads(line)
        method, number = asked.get("method"), asked.get("id")
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
def test_an_agent_that_does_not_is_found_out(ostler, tmp_path):
    agent = tmp_path / "agent.py"
    agent.write_text(textwrap.dedent(BAD))
    areas = [word for area in ("sessions", "turns", "errors", "framing") for word in ("--only", area)]
    code, found = comply(ostler, "--timeout", "5", *areas, sys.executable, agent)
    assert code == 1
    failed = {name for name, one in found.items() if one["state"] == "failed"}
    assert failed >= {"SESS-1", "TURN-1", "ERR-1", "ERR-3", "ERR-6", "FRAME-1", "FRAMES", "STDOUT", "INVITED"}
    assert "'tired'" in found["TURN-1"]["seen"]
    assert "loadSession" in found["FRAMES"]["seen"]


ECHO = (sys.executable, "-P", "-m", "ostler.testing.echo_agent")
NEEDS_A_MODEL = {"TOOL-1", "TOOL-2", "TOOL-3", "TOOL-4", "TOOL-5", "FS-1", "TERM-1"}
OVER_AT_ONCE = {"CANC-1", "CANC-2", "CANC-3", "CANC-5", "CANC-6"}  # an echo may come before it can be cancelled


@pytest.mark.req("AC-5")
def test_the_agent_that_ships_as_an_example_keeps_to_all_of_it(ostler):
    everything = ("--store", ostler.home / "store", "--resume", "--fork", "--steering", "--config")
    _, found = comply(ostler, "--strict", "--", *ECHO, *everything)
    steady = {name: one for name, one in found.items() if name not in TIMED | OVER_AT_ONCE}
    assert {name: one["seen"] for name, one in steady.items() if one["state"] == "failed"} == {}
    assert {name for name, one in steady.items() if one["state"] == "skipped"} == {"TURN-7"} | NEEDS_A_MODEL


def test_what_is_only_advised_does_not_count_unless_it_shall(ostler):
    lax = (
        "import ostler.testing.echo_agent as e; e._open_params = lambda params: e.OpenSessionParams('/', ()); e.main()"
    )
    agent = (sys.executable, "-P", "-c", lax)
    code, found = comply(ostler, "--only", "err-4", *agent)
    assert (code, found["ERR-4"]["state"]) == (0, "failed")
    assert comply(ostler, "--only", "err-4", "--strict", *agent)[0] == 1


def test_whoever_stops_reading_the_report_gets_no_traceback(ostler):
    command = [sys.executable, "-P", "-m", "ostler", "acp", "comply", "--only", "handshake", *ECHO]
    with subprocess.Popen(
        command, env=ostler.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ostler.workspace
    ) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""


def test_the_report_is_for_reading(ostler):
    done = ostler("acp", "comply", "--only", "handshake", sys.executable, "-m", "ostler.testing.echo_agent")
    lines = done.stdout.splitlines()
    assert lines[:2] == ["handshake", "  ✓ INIT-1   initialize is answered with protocol version 1"]
    assert "6 passed, 0 failed, 0 not offered" in lines[-1]


def test_an_agent_that_does_not_begin_ends_it(ostler):
    done = ostler("acp", "comply", sys.executable, "-c", "import sys; sys.exit('no model')")
    assert done.code == 1
    assert "its last words: no model" in done.stdout
    assert "sessions" not in done.stdout


@pytest.mark.parametrize("arguments", [(), ("no-such-program-at-all",)])
def test_without_an_agent_there_is_nothing_to_test(ostler, arguments):
    done = ostler("acp", "comply", *arguments)
    assert (done.code, "Traceback" in done.stderr) == (2, False)


def test_an_agent_of_the_settings_is_named(ostler):
    (ostler.home / ".ostler").mkdir()
    echo = {"command": sys.executable, "args": ["-P", "-m", "ostler.testing.echo_agent"]}
    (ostler.home / ".ostler" / "acp.json").write_text(json.dumps({"agent_servers": {"echo": echo}}))
    code, found = comply(ostler, "--only", "init-1", "-a", "echo")
    assert (code, found["INIT-1"]["state"]) == (0, "passed")


def test_a_program_is_found_from_here(ostler):
    (ostler.workspace / "agent").symlink_to(Path(sys.executable))
    done = ostler("acp", "comply", "--only", "init-1", "./agent", "-c", "raise SystemExit('begun')")
    assert "begun" in done.stdout
