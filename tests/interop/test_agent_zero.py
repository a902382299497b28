"""Agent Zero's own client against our double of its connector, and Ostler against a real server.

`OSTLER_A0_CONNECTOR` is the path of a checkout of agent0ai/a0-connector, whose dependencies pip installs into
`OSTLER_INTEROP`. `OSTLER_A0_SERVER` is the URL of a running Agent Zero server, whose key is in `AGENTZERO_API_KEY`.
`OSTLER_A0_SOURCE` is a checkout of agent0ai/agent-zero, which is run by `OSTLER_A0_PYTHON`, a Python 3.12 with what
the server's requirements.txt names, except for what `zero_server_process.py` replaces.
"""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from installer import installed_python_packages
from real_zero_server import KEY, RealZeroServer
from tests.backends.agent_zero.connector_double import ConnectorDouble
from tests.backends.agent_zero.test_connector import open_session, run_turn

SOURCE, SERVER = os.environ.get("OSTLER_A0_CONNECTOR", ""), os.environ.get("OSTLER_A0_SERVER", "")
PACKAGES = ("python-socketio[asyncio_client]>=5.16", "httpx>=0.27", "aiohttp>=3.11", "textual>=0.50")
CLIENT = Path(__file__).with_name("official_zero_client.py")
EDITS = [{"from": 2, "to": 2, "content": "TWO\n"}]
PATCH = "*** Begin Patch\n*** Update File: a.txt\n@@ one\n-TWO\n+2\n*** End Patch"
OPERATIONS = (
    ("connector_file_op", {"op": "read", "path": "a.txt"}),
    ("connector_file_op", {"op": "read", "path": "a.txt", "line_from": 2, "line_to": 3}),
    ("connector_file_op", {"op": "stat", "path": "a.txt"}),
    ("connector_file_op", {"op": "patch", "path": "a.txt", "edits": EDITS}),
    ("connector_file_op", {"op": "patch", "path": "a.txt", "patch_text": PATCH}),
    ("connector_file_op", {"op": "write", "path": "new/b.txt", "content": "x\ny\n"}),
    ("connector_file_op", {"op": "read", "path": "missing.txt"}),
    ("connector_file_op", {"op": "erase", "path": "a.txt"}),
    ("connector_exec_op", {"runtime": "terminal", "session": 0, "code": "cd new; X=5; echo hi"}),
    ("connector_exec_op", {"runtime": "terminal", "session": 0, "code": "cat b.txt; echo $X"}),
    ("connector_exec_op", {"runtime": "python", "session": 0, "code": "print(6 * 7)"}),
    ("connector_exec_op", {"runtime": "output", "session": 0}),
    ("connector_exec_op", {"runtime": "reset", "session": 0}),
    ("connector_exec_op", {"runtime": "terminal", "session": 0, "code": "echo [$X]"}),
    ("connector_exec_op", {"runtime": "input", "session": 3, "keyboard": "x"}),
    ("connector_exec_op", {"runtime": "perl", "session": 0, "code": "1"}),
)
OWN_NAMES = {"exit_code"}  # what Ostler adds to a result


def make_server(results):
    async def turn(server):
        for number, (name, members) in enumerate(OPERATIONS):
            results.append(await server.operation(name, f"op-{number}", **members))
        await server.event("assistant_message", "Hello from the double.")

    return ConnectorDouble(turn, poll=0.05)


def make_folder(folder):
    folder.mkdir()
    (folder / "a.txt").write_text("one\ntwo\nthree\n")
    return folder


def comparable(result):
    """Return what both clients must agree on: whether it worked, the content, and the description of the file."""
    shown = result.get("result", {})
    file = shown.get("file", {})
    return {
        "ok": result["ok"],
        "op_id": result["op_id"],
        "names": sorted(set(shown) - OWN_NAMES),
        "path": shown.get("path"),
        "content": shown.get("content"),
        "output": shown.get("output", ""),
        "running": shown.get("running", False),
        "lines": (shown.get("line_from"), shown.get("line_to"), shown.get("total_lines"), file.get("total_lines")),
        "file": (os.path.basename(file.get("realpath", "")), type(file.get("mtime")).__name__),
    }


@pytest.mark.slow
@pytest.mark.req("AZ-7")
@pytest.mark.skipif(not SOURCE, reason="OSTLER_A0_CONNECTOR is not set")
async def test_official_client_and_ostler_give_a_server_the_same_results(tmp_path):
    packages = await asyncio.to_thread(installed_python_packages, "a0-connector", *PACKAGES)
    theirs, ours = [], []
    folder = make_folder(tmp_path / "theirs")
    async with make_server(theirs) as server:
        program = await asyncio.create_subprocess_exec(
            *(sys.executable, str(CLIENT), SOURCE, server.url, str(folder)),
            env={**os.environ, "PYTHONPATH": str(packages)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        output, errors = await asyncio.wait_for(program.communicate(), 120)
    assert program.returncode == 0, errors.decode()
    report = json.loads(output.splitlines()[-1])
    assert report["texts"][-1] == "Hello from the double." and report["chats"] == 1
    assert report["tokens"]["token_count"] == 1234 and report["paused"]["ok"] and report["presets"]
    assert server.trees and server.hellos[0]["client"] == "a0"

    folder = make_folder(tmp_path / "ours")
    async with make_server(ours) as server:
        session = await open_session(server, folder, allow_shell=True)
        _, ended = await run_turn(session, "hello")
        await session.aclose()
    assert ended.reason == "done"
    assert [comparable(result) for result in ours] == [comparable(result) for result in theirs]
    assert (tmp_path / "ours/a.txt").read_text() == (tmp_path / "theirs/a.txt").read_text() == "one\n2\nthree\n"


@pytest.mark.slow
@pytest.mark.req("AZ-1", "AZ-7")
@pytest.mark.skipif(not SERVER, reason="OSTLER_A0_SERVER is not set")
def test_real_server_answers(tmp_path):
    command = [sys.executable, "-m", "ostler", "zero", "run", "Answer with the single word: pong"]
    env = {**os.environ, "AGENTZERO_API_URL": SERVER, "OSTLER_HOME": str(tmp_path / "home")}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "pong" in done.stdout.lower()


def zero_run(server, folder, *arguments, shell=False):
    """Run one prompt with a real server and return the process."""
    home = folder.parent / "home"
    home.mkdir(exist_ok=True)
    (home / "config.json").write_text(json.dumps({"security": {"allow_shell": shell}}))
    env = {**os.environ, "AGENTZERO_API_URL": server.url, "AGENTZERO_API_KEY": KEY, "OSTLER_HOME": str(home)}
    command = [sys.executable, "-m", "ostler", "zero", "run", *arguments]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture(scope="module")
def real_server(tmp_path_factory):
    source, python = os.environ.get("OSTLER_A0_SOURCE", ""), os.environ.get("OSTLER_A0_PYTHON", "python3.12")
    if not source:
        pytest.skip("OSTLER_A0_SOURCE is not set")
    with RealZeroServer(source, python, tmp_path_factory.mktemp("zero")) as server:
        yield server


@pytest.mark.slow
@pytest.mark.req("AZ-1", "AZ-2")
def test_real_server_keeps_a_conversation_and_its_errors_are_shown(real_server, tmp_path):
    folder = make_folder(tmp_path / "workspace")
    real_server.model.steps = [("response", {"text": "pong"}), ("response", {"text": "again"})]
    assert "pong" in zero_run(real_server, folder, "ping").stdout
    assert "again" in zero_run(real_server, folder, "--continue", "and now?").stdout
    assert "ping" in str(real_server.model.seen) and "[AZ_CONTEXT v1]" in str(real_server.model.seen)


@pytest.mark.slow
@pytest.mark.req("AZ-3")
def test_real_server_requests_a_tool_in_its_answer(real_server, tmp_path):
    if real_server.has_connector:
        pytest.skip("the server has the connector")
    folder = make_folder(tmp_path / "workspace")
    request = {"type": "tool_request", "tool_name": "read_file", "command": "c", "reason": "r"}
    real_server.model.steps = [
        ("response", {"text": f"I need it.\n```json\n{json.dumps({**request, 'payload': {'path': 'a.txt'}})}\n```"}),
        ("response", {"text": "thanks"}),
    ]
    done = zero_run(real_server, folder, "read a.txt")
    assert done.returncode == 0 and "thanks" in done.stdout, done.stderr
    assert "three" in real_server.model.seen[-1]


@pytest.mark.slow
@pytest.mark.req("AZ-7")
def test_real_server_runs_its_remote_tools_here(real_server, tmp_path):
    if not real_server.has_connector:
        pytest.skip("the server has no connector")
    folder = make_folder(tmp_path / "workspace")
    files, commands = "text_editor_remote", "code_execution_remote"
    real_server.model.steps = [
        (files, {"action": "read", "path": "a.txt"}),
        (files, {"action": "patch", "path": "a.txt", "edits": [{"from": 1, "to": 1, "content": "ONE\n"}]}),
        (files, {"action": "patch", "path": "a.txt", "old_text": "two", "new_text": "TWO"}),
        (files, {"action": "write", "path": "new/b.txt", "content": "x\n"}),
        (files, {"action": "read", "path": "/etc/passwd"}),
        (commands, {"runtime": "terminal", "session": 0, "code": "X=5; cat a.txt"}),
        (commands, {"runtime": "python", "session": 1, "code": "print(6 * 7)"}),
        (commands, {"runtime": "terminal", "session": 0, "code": "echo [$X]"}),
        ("response", {"text": "all done"}),
    ]
    first = len(real_server.model.seen)
    done = zero_run(real_server, folder, "--write", "work", shell=True)
    assert done.returncode == 4 and "all done" in done.stdout, done.stdout + done.stderr  # one was denied
    assert (folder / "a.txt").read_text() == "ONE\nTWO\nthree\n" and (folder / "new/b.txt").read_text() == "x\n"
    results = real_server.model.seen[first + 1 :]
    parts = ("2 | two", "updated", "updated", "created", "Denied", "TWO", "42", "[5]")
    assert [part in text for part, text in zip(parts, results, strict=True)] == [True] * len(parts)
    assert "on the server" not in done.stdout
