"""`ostler acp comply`: Ostler's own agent conforms, and violations of others are found."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.cli.compliant_model import compliant_model
from tests.scripted_acp_agent import scripted_agent
from tests.tiers import slow

OWN_AGENT = (sys.executable, "-P", "-m", "ostler", "acp")


def comply(ostler, *arguments, timeout=90):
    done = ostler("acp", "comply", "-o", "json", *arguments, timeout=timeout)
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    return done.code, {finding["id"]: finding for finding in report["findings"]}


TIMED = {"END-1", "END-2"}  # two seconds may be too short on a busy machine


SKIPPED = {"TURN-7", "FS-1", "FS-2"}  # only unsaved text is read and written through the editor


def check_own_agent(ostler, *flags):
    """Return the exit status, what failed and the names of what was skipped."""
    with compliant_model() as url:
        code, findings = comply(ostler, *flags, *OWN_AGENT, "--base-url", url, "--model", "compliant", timeout=240)
    failed = {name: finding["seen"] for name, finding in findings.items() if finding["state"] == "failed"}
    return code, failed, {name for name, finding in findings.items() if finding["state"] == "skipped"}


@pytest.mark.req("AC-6")
def test_unknown_area_is_an_error(ostler):
    done = ostler("acp", "comply", "--only", "turns", "--only", "nothing", *ECHO)
    assert (done.code, done.stdout) == (2, "")
    assert "no area and no check is named 'nothing'; areas: handshake, " in done.stderr


@pytest.mark.req("AC-6")
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("areas", "skipped"), [(("handshake", "turns"), {"TURN-7"}), slow((), SKIPPED)], ids=["two areas", "all areas"]
)
def test_own_agent_conforms(ostler, areas, skipped):
    code, failed, not_run = check_own_agent(ostler, *(word for area in areas for word in ("--only", area)))
    assert (code, {name: detail for name, detail in failed.items() if name not in TIMED}) == (0, {})
    assert not_run == skipped


@pytest.mark.slow
@pytest.mark.req("AC-6")
@pytest.mark.timeout(300)
def test_own_agent_follows_all_recommendations(ostler):
    assert check_own_agent(ostler, "--strict") == (0, {}, SKIPPED)


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
    checks = ("sessions", "turns", "errors", "frame-1")  # the other frames wait for an answer until the timeout
    only = [word for check in checks for word in ("--only", check)]
    code, findings = comply(ostler, "--timeout", "30", *only, sys.executable, agent)
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


COUNTING = """
    import json, select, sys, time

    STREAMS, REASON, DELAY = {streams}, {reason!r}, {delay}
    count, running = 0, {{}}

    def send(frame):
        print(json.dumps({{"jsonrpc": "2.0", **frame}}), flush=True)

    def say(session, text):
        update = {{"sessionUpdate": "agent_message_chunk", "content": {{"type": "text", "text": text}}}}
        send({{"method": "session/update", "params": {{"sessionId": session, "update": update}}}})

    def end(session, reason):
        send({{"id": running.pop(session)[0], "result": {{"stopReason": reason}}}})

    while True:
        if select.select([sys.stdin.buffer.raw], [], [], DELAY if running else None)[0]:
            line = sys.stdin.buffer.raw.readline()
            if not line:
                break
            request = json.loads(line)
            method, params, number = request.get("method"), request.get("params"), request.get("id")
            if method == "initialize":
                send({{"id": number, "result": {{"protocolVersion": 1, "agentCapabilities": {{}}}}}})
            elif method == "session/new":
                count += 1
                send({{"id": number, "result": {{"sessionId": f"s{{count}}"}}}})
            elif method == "session/prompt":
                long = "Count" in params["prompt"][0]["text"]
                running[params["sessionId"]] = [number, 0, 200 if long else 1]
            elif method == "session/cancel" and params["sessionId"] in running and REASON != "ignored":
                end(params["sessionId"], REASON)
            elif number is not None:
                send({{"id": number, "result": {{}}}})
            continue
        for session, turn in list(running.items()):
            turn[1] += 1
            if STREAMS:
                say(session, f"{{turn[1]}}\\n")
            if turn[1] >= turn[2]:
                if not STREAMS:
                    say(session, "".join(f"{{number}}\\n" for number in range(turn[2])))
                end(session, "end_turn")
"""


def counting_agent(tmp_path, *, streams, reason, delay=0.05):
    """Return an agent that counts to 200; it ends a cancelled turn with `reason`, or counts on if that is `ignored`."""
    agent = tmp_path / "counting.py"
    agent.write_text(textwrap.dedent(COUNTING).format(streams=streams, reason=reason, delay=delay))
    return sys.executable, agent


CANCELLING = ("--only", "canc-1", "--only", "canc-2", "--only", "canc-3", "--only", "canc-5")


@pytest.mark.req("AC-5")
@pytest.mark.parametrize("streams", [True, False])
def test_cancelling_is_judged_also_for_agents_that_do_not_stream(ostler, tmp_path, streams):
    agent = counting_agent(tmp_path, streams=streams, reason="cancelled")
    code, findings = comply(ostler, "--timeout", "8", *CANCELLING, *agent)
    checked = {name: (finding["state"], finding["seen"]) for name, finding in findings.items() if "CANC" in name}
    assert (code, checked) == (0, dict.fromkeys(("CANC-1", "CANC-2", "CANC-3", "CANC-5"), ("passed", "")))


@pytest.mark.req("AC-5")
@pytest.mark.parametrize("delay", [slow(0.02), 0.002])
@pytest.mark.parametrize("streams", [True, False])
def test_end_turn_after_a_cancellation_is_a_violation(ostler, tmp_path, streams, delay):
    agent = counting_agent(tmp_path, streams=streams, reason="end_turn", delay=delay)
    code, findings = comply(ostler, "--timeout", "8", *CANCELLING, *agent)
    assert (code, findings["CANC-2"]["state"]) == (1, "failed")
    if streams or delay > 0.01:  # otherwise the turn is over before there is a sign of work
        assert (findings["CANC-1"]["state"], findings["CANC-1"]["seen"]) == ("failed", "the stop reason was 'end_turn'")
        assert (findings["CANC-3"]["state"], findings["CANC-5"]["state"]) == ("passed", "passed")


@pytest.mark.req("AC-5")
def test_turn_too_short_to_be_cancelled_is_skipped(ostler):
    _, findings = comply(ostler, "--only", "canc-1", "--only", "canc-2", *ECHO)
    assert {findings[name]["state"] for name in ("CANC-1", "CANC-2")} <= {"skipped", "passed"}


TALKATIVE = """
    import json, sys

    for line in sys.stdin:
        try:
            request = json.loads(line)
        except ValueError:
            continue
        method, number = request.get("method"), request.get("id")
        answers = {{"initialize": {{"protocolVersion": 1}}, "session/new": {{"sessionId": str(number)}}}}
        answers["session/prompt"] = {{"stopReason": "end_turn"}}
        if number is not None and (method in answers or {answers_unknown}):
            print(json.dumps({{"jsonrpc": "2.0", "id": number, "result": answers.get(method, {{}})}}), flush=True)
"""


@pytest.mark.req("AC-5")
@pytest.mark.parametrize("answers_unknown", [True, False])
def test_wrong_answer_to_unknown_methods_causes_no_other_failure(ostler, tmp_path, answers_unknown):
    agent = tmp_path / "agent.py"
    agent.write_text(textwrap.dedent(TALKATIVE).format(answers_unknown=answers_unknown))
    flags = ("--timeout", "2", "--only", "err-1", "--only", "framing", "--only", "fs-2")
    code, findings = comply(ostler, *flags, sys.executable, agent)
    states = {name: finding["state"] for name, finding in findings.items()}
    assert (code, states.pop("ERR-1")) == (1, "failed")
    assert states.pop("FRAME-2") == "failed"  # the agent ends
    assert findings["FRAME-2"]["level"] == "should"
    assert states.pop("FRAME-3") == "failed"
    assert states.pop("FS-2") == "skipped"
    assert set(states.values()) == {"passed"}


@pytest.mark.req("AC-5")
def test_additional_directory_is_an_empty_folder_of_its_own(ostler, tmp_path):
    agent = scripted_agent(
        on_open="open(os.environ['HOME'] + '/more', 'a').write(json.dumps(params))",
        capabilities={"sessionCapabilities": {"additionalDirectories": {}}},
    )
    _, findings = comply(ostler, "--only", "sess-2", *agent)
    assert findings["SESS-2"]["state"] == "passed"
    params = json.loads((ostler.home / "more").read_text())
    (folder,) = params["additionalDirectories"]
    assert folder.startswith("/")
    assert not params["cwd"].startswith(folder)
    assert not Path(folder).exists()


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
