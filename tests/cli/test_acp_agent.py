"""`ostler acp` as an editor starts it: a real process with pipes."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest
from tests.conftest import at

from ostler.testing.model_server import calls, text


class Agent:
    """The process, with a blocking client."""

    def __init__(self, process):
        self.process = process
        self.frames = []
        self._last = 0

    def write(self, line):
        self.process.stdin.write(line if isinstance(line, bytes) else line.encode())
        self.process.stdin.flush()

    def send(self, method, params, **more):
        self.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more}) + "\n")

    def read(self):
        line = self.process.stdout.readline()
        assert line, "the agent is gone"
        frame = json.loads(line)
        assert frame["jsonrpc"] == "2.0"
        self.frames.append(frame)
        if frame.get("method") == "session/request_permission":
            allowed = {"outcome": {"outcome": "selected", "optionId": "once"}}
            self.write(json.dumps({"jsonrpc": "2.0", "id": frame["id"], "result": allowed}) + "\n")
        return frame

    def request(self, method, params):
        """Return the answer; earlier frames are recorded."""
        self._last += 1
        self.send(method, params, id=self._last)
        while True:
            frame = self.read()
            if frame.get("id") == self._last and "method" not in frame:
                return frame

    def open_session(self, folder):
        self.request("initialize", {"protocolVersion": 1})
        return self.request("session/new", {"cwd": str(folder), "mcpServers": []})["result"]["sessionId"]

    def prompt(self, session, text):
        return self.request("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": text}]})


@pytest.fixture
def agent(ostler):
    """Start the agent with `with agent(*flags) as it:`; the process exits at the end of the block."""

    @contextmanager
    def start(*flags):
        command = [sys.executable, "-P", "-m", "ostler", "acp", *flags]
        pipe = subprocess.PIPE
        with subprocess.Popen(
            command,
            cwd=ostler.workspace,
            env=ostler.environment(),
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            start_new_session=True,
        ) as process:
            try:
                yield Agent(process)
                process.stdin.close()
                process.wait(60)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)

    return start


@pytest.mark.req("AC-6")
def test_prompt(agent, ostler, models):
    with models.playing(calls([("bash", {"command": "echo hi"})]), text("Done.")) as server, agent(*at(server)) as it:
        session = it.open_session(ostler.workspace)
        assert it.prompt(session, "go")["result"]["stopReason"] == "end_turn"
        updates = [frame["params"]["update"] for frame in it.frames if frame.get("method") == "session/update"]
        contents = [update["content"] for update in updates if update.get("status") == "completed"]
        assert contents == [[{"type": "content", "content": {"type": "text", "text": "```\nhi\n```"}}]]
    assert it.process.returncode == 0


def test_stdout_has_only_frames_and_stderr_the_messages(agent, ostler, models):
    with models.playing() as server, agent(*at(server)) as it:
        it.open_session(ostler.workspace)
        it.process.stdin.close()
        rest = it.process.stdout.read()
        assert all(json.loads(line)["jsonrpc"] == "2.0" for line in rest.splitlines())
        assert b"model: scripted" in it.process.stderr.read()


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"not json at all\n", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"initialize"\n', -32700),
        (b"[1, 2]\n", -32600),
        (b"42\n", -32600),
        (b"null\n", -32600),
        (b"{}\n", -32600),
        (b'{"jsonrpc":"2.0","id":{},"method":"initialize"}\n', -32600),
        (b"\xff\xfe\n", -32700),
    ],
)
@pytest.mark.sampled(every=2)
def test_invalid_lines_are_answered_with_errors(agent, line, code):
    with agent() as it:
        it.write(b"\n  \r\n" + line)
        assert it.read()["error"]["code"] == code
        assert it.request("initialize", {"protocolVersion": 1})["result"]["protocolVersion"] == 1


def test_end_of_input_cancels_a_running_turn(agent, ostler, models):
    stalled = text("I am thinking", chunks=4).stall_after(3)
    with models.playing(stalled) as server, agent(*at(server)) as it:
        session = it.open_session(ostler.workspace)
        it.send("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "go"}]}, id="p")
        while it.read().get("params", {}).get("update", {}).get("sessionUpdate") != "agent_message_chunk":
            pass
        it.process.stdin.close()
        frames = [json.loads(line) for line in it.process.stdout.read().splitlines()]
        assert {"jsonrpc": "2.0", "id": "p", "result": {"stopReason": "cancelled"}} in frames
    assert it.process.returncode == 0


@pytest.mark.slow
def test_exit_within_two_seconds(agent, ostler, models):
    with models.playing(calls([("bash", {"command": "sleep 600"})])) as server, agent(*at(server)) as it:
        session = it.open_session(ostler.workspace)
        it.send("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "go"}]}, id="p")
        while it.read().get("params", {}).get("update", {}).get("status") != "in_progress":
            pass
        start = time.monotonic()
        it.process.stdin.close()
        it.process.wait(60)
        assert time.monotonic() - start < 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_the_agent(agent, ostler, models, number):
    with models.playing() as server, agent(*at(server)) as it:
        it.open_session(ostler.workspace)
        it.process.send_signal(number)
        assert it.process.wait(60) == 0


def test_closed_output_ends_the_agent(agent):
    with agent() as it:
        it.request("initialize", {"protocolVersion": 1})
        it.process.stdout.close()
        it.send("initialize", {"protocolVersion": 1}, id=2)
        assert it.process.wait(60) == 0


def test_missing_model_is_reported_by_session_new(agent, ostler):
    with agent("--base-url", "http://127.0.0.1:9/v1") as it:
        it.request("initialize", {"protocolVersion": 1})
        error = it.request("session/new", {"cwd": str(ostler.workspace), "mcpServers": []})["error"]
        assert "127.0.0.1:9" in error["message"]


def test_closed_streams_are_an_error(ostler):
    command = f"{shlex.quote(sys.executable)} -P -m ostler acp <&-"
    done = subprocess.run(
        ["bash", "-c", command], env=ostler.environment(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (
        2,
        "ostler: standard input or output is closed; start this command from an editor\n",
    )


def test_help(ostler):
    done = ostler("acp", "--help")
    assert done.code == 0
    assert "serve Ostler as an agent for an editor" in done.stdout
    assert "ACP agent on stdin and stdout" in ostler("acp", "agent", "--help").stdout


@pytest.fixture
def agent_settings(ostler):
    """Return a function that writes agent settings for Ostler's own client."""

    def write(**agents):
        file = ostler.home / "agents.json"
        servers = {name: {"command": command[0], "args": list(command[1:])} for name, command in agents.items()}
        file.write_text(json.dumps({"agent_servers": servers}))
        return file

    return write


def own_agent(*flags):
    return (sys.executable, "-P", "-m", "ostler", "acp", *flags)


@pytest.mark.req("AC-2", "AC-6")
def test_own_client_runs_own_agent(ostler, models, agent_settings):
    script = calls([("write", {"path": "a.txt", "content": "hello\n"})], text="Writing."), text("Written.")
    with models.playing(*script) as server:
        settings = agent_settings(own=own_agent(*at(server)))
        done = ostler("acp", "run", "--settings", settings, "--check", "--write", "-o", "simple", "write it")
    assert (done.code, done.stdout) == (0, "Writing.Written.\n"), done.stderr
    assert (ostler.workspace / "a.txt").read_text() == "hello\n"


@pytest.mark.req("AC-6")
def test_acp_backend_is_exposed_to_the_editor(agent, ostler):
    (ostler.home / ".ostler").mkdir()
    echo = {"command": sys.executable, "args": ["-P", "-m", "ostler.testing.echo_agent", "--config"]}
    (ostler.home / ".ostler" / "acp.json").write_text(json.dumps({"agent_servers": {"echo": echo}}))
    with agent("--backend", "acp:echo") as it:
        it.request("initialize", {"protocolVersion": 1})
        opened = it.request("session/new", {"cwd": str(ostler.workspace), "mcpServers": []})["result"]
        assert {"model", "mode", "echo.mode"} <= {option["id"] for option in opened["configOptions"]}
        assert [mode["id"] for mode in opened["modes"]["availableModes"]] == [
            "ask",
            "accept-edits",
            "plan",
            "echo:ask",
            "echo:code",
        ]
        it.request("session/set_mode", {"sessionId": opened["sessionId"], "modeId": "echo:code"})
        assert it.prompt(opened["sessionId"], "echo this")["result"]["stopReason"] == "end_turn"
        texts = [
            frame["params"]["update"]["content"]["text"]
            for frame in it.frames
            if frame.get("params", {}).get("update", {}).get("sessionUpdate") == "agent_message_chunk"
        ]
        assert "echo this" in "".join(texts)
