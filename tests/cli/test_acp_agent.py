"""`ostler acp` as an editor starts it: a real process on real pipes."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest
from tests.conftest import at

from ostler.testing.model_server import calls, text


class Agent:
    """The process, and a blocking way to talk with it."""

    def __init__(self, process):
        self.process = process
        self.heard = []
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
        self.heard.append(frame)
        if frame.get("method") == "session/request_permission":
            allowed = {"outcome": {"outcome": "selected", "optionId": "once"}}
            self.write(json.dumps({"jsonrpc": "2.0", "id": frame["id"], "result": allowed}) + "\n")
        return frame

    def request(self, method, params):
        """The answer; what is heard before it is kept."""
        self._last += 1
        self.send(method, params, id=self._last)
        while True:
            frame = self.read()
            if frame.get("id") == self._last and "method" not in frame:
                return frame

    def opened(self, folder):
        self.request("initialize", {"protocolVersion": 1})
        return self.request("session/new", {"cwd": str(folder), "mcpServers": []})["result"]["sessionId"]

    def prompt(self, session, words):
        return self.request("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": words}]})


@pytest.fixture
def agent(ostler):
    """`with agent(*flags) as it:` and the process has ended by itself when the block is left."""

    @contextmanager
    def started(*flags):
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

    return started


@pytest.mark.req("AC-6")
def test_a_prompt_from_start_to_end(agent, ostler, models):
    with models.playing(calls([("bash", {"command": "echo hi"})]), text("Done.")) as server, agent(*at(server)) as it:
        session = it.opened(ostler.workspace)
        assert it.prompt(session, "go")["result"]["stopReason"] == "end_turn"
        updates = [frame["params"]["update"] for frame in it.heard if frame.get("method") == "session/update"]
        shown = [update["content"] for update in updates if update.get("status") == "completed"]
        assert shown == [[{"type": "content", "content": {"type": "text", "text": "```\nhi\n```"}}]]
    assert it.process.returncode == 0


def test_nothing_but_frames_on_stdout_and_words_on_stderr(agent, ostler, models):
    with models.playing() as server, agent(*at(server)) as it:
        it.opened(ostler.workspace)
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
def test_junk_is_answered_and_survived(agent, line, code):
    with agent() as it:
        it.write(b"\n  \r\n" + line)
        assert it.read()["error"]["code"] == code
        assert it.request("initialize", {"protocolVersion": 1})["result"]["protocolVersion"] == 1


def test_it_ends_with_its_input_although_a_turn_runs(agent, ostler, models):
    stalled = text("I am thinking", chunks=4).stall_after(3)
    with models.playing(stalled) as server, agent(*at(server)) as it:
        session = it.opened(ostler.workspace)
        it.send("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "go"}]}, id="p")
        while it.read().get("params", {}).get("update", {}).get("sessionUpdate") != "agent_message_chunk":
            pass
        it.process.stdin.close()
        frames = [json.loads(line) for line in it.process.stdout.read().splitlines()]
        assert {"jsonrpc": "2.0", "id": "p", "result": {"stopReason": "cancelled"}} in frames
    assert it.process.returncode == 0


@pytest.mark.slow
def test_it_ends_within_two_seconds(agent, ostler, models):
    with models.playing(calls([("bash", {"command": "sleep 600"})])) as server, agent(*at(server)) as it:
        session = it.opened(ostler.workspace)
        it.send("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "go"}]}, id="p")
        while it.read().get("params", {}).get("update", {}).get("status") != "in_progress":
            pass
        began = time.monotonic()
        it.process.stdin.close()
        it.process.wait(60)
        assert time.monotonic() - began < 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_as_well(agent, ostler, models, number):
    with models.playing() as server, agent(*at(server)) as it:
        it.opened(ostler.workspace)
        it.process.send_signal(number)
        assert it.process.wait(60) == 0


def test_an_editor_that_hears_nothing_any_more_ends_it(agent):
    with agent() as it:
        it.request("initialize", {"protocolVersion": 1})
        it.process.stdout.close()
        it.send("initialize", {"protocolVersion": 1}, id=2)
        assert it.process.wait(60) == 0


def test_without_a_model_the_session_says_what_to_do(agent, ostler):
    with agent("--base-url", "http://127.0.0.1:9/v1") as it:
        it.request("initialize", {"protocolVersion": 1})
        error = it.request("session/new", {"cwd": str(ostler.workspace), "mcpServers": []})["error"]
        assert "127.0.0.1:9" in error["message"]


def test_without_streams_there_is_no_editor(ostler):
    command = f"{sys.executable} -P -m ostler acp <&-"
    done = subprocess.run(
        ["bash", "-c", command], env=ostler.environment(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (
        2,
        "ostler: standard input or output is closed; start this command from an editor\n",
    )


def test_help_tells_of_both_ways(ostler):
    done = ostler("acp", "--help")
    assert done.code == 0
    assert "be an agent for an editor" in done.stdout
    assert "an editor starts this" in ostler("acp", "agent", "--help").stdout


@pytest.fixture
def listed(ostler):
    """Settings that name agents, for our own client."""

    def write(**agents):
        file = ostler.home / "agents.json"
        servers = {name: {"command": command[0], "args": list(command[1:])} for name, command in agents.items()}
        file.write_text(json.dumps({"agent_servers": servers}))
        return file

    return write


def ours(*flags):
    return (sys.executable, "-P", "-m", "ostler", "acp", *flags)


@pytest.mark.req("AC-2", "AC-6")
def test_our_own_client_drives_our_agent(ostler, models, listed):
    script = calls([("write", {"path": "a.txt", "content": "hello\n"})], text="Writing."), text("Written.")
    with models.playing(*script) as server:
        settings = listed(ours=ours(*at(server)))
        done = ostler("acp", "run", "--settings", settings, "--check", "--write", "-o", "simple", "write it")
    assert (done.code, done.stdout) == (0, "Writing.Written.\n"), done.stderr
    assert (ostler.workspace / "a.txt").read_text() == "hello\n"


@pytest.mark.req("AC-6")
def test_another_agent_behind_ours_is_shown_to_the_editor(agent, ostler):
    (ostler.home / ".ostler").mkdir()
    echo = {"command": sys.executable, "args": ["-P", "-m", "ostler.testing.echo_agent", "--config"]}
    (ostler.home / ".ostler" / "acp.json").write_text(json.dumps({"agent_servers": {"echo": echo}}))
    with agent("--backend", "acp:echo") as it:
        it.request("initialize", {"protocolVersion": 1})
        opened = it.request("session/new", {"cwd": str(ostler.workspace), "mcpServers": []})["result"]
        assert {"model", "mode"} <= {option["id"] for option in opened["configOptions"]}
        assert [mode["id"] for mode in opened["modes"]["availableModes"]] == ["ask", "code"]
        assert it.prompt(opened["sessionId"], "echo this")["result"]["stopReason"] == "end_turn"
        words = [
            frame["params"]["update"]["content"]["text"]
            for frame in it.heard
            if frame.get("params", {}).get("update", {}).get("sessionUpdate") == "agent_message_chunk"
        ]
        assert "echo this" in "".join(words)
