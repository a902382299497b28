"""`ostler mcp serve`: Ostler's tools for clients of both protocol eras, with the same permissions as elsewhere."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager

import pytest
from tests.conftest import at

from ostler.testing.model_server import text

pytestmark = pytest.mark.req("MC-5", "MC-6")
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Client:
    """A client that writes and reads JSON lines."""

    def __init__(self, process):
        self._process = process
        self._id = 0
        self.notifications = []

    def send(self, method, params=None, **more):
        frame = {"jsonrpc": "2.0", "method": method, "params": params or {}, **more}
        self._process.stdin.write(json.dumps(frame) + "\n")
        self._process.stdin.flush()

    def start(self, method, params=None, *, modern=False, token=None):
        self._id += 1
        meta = {**(MODERN if modern else {}), **({"progressToken": token} if token else {})}
        self.send(method, {**(params or {}), **({"_meta": meta} if meta else {})}, id=self._id)
        return self._id

    def read(self):
        frame = json.loads(self._process.stdout.readline())
        if "method" in frame:
            self.notifications.append(frame)
        return frame

    def wait(self, request_id):
        while (frame := self.read()).get("id") != request_id:
            pass
        return frame

    def ask(self, method, params=None, **options):
        return self.wait(self.start(method, params, **options))

    def call(self, name, arguments, **options):
        return self.ask("tools/call", {"name": name, "arguments": arguments}, **options)["result"]


@contextmanager
def serving(ostler, *flags):
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "ostler", "mcp", "serve", *map(str, flags)],
        cwd=ostler.workspace,
        env=ostler.environment({"PATH": os.environ["PATH"]}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Client(process)
            process.stdin.close()
            assert process.wait(30) == 0
        finally:
            process.kill()


def content(result):
    return result["content"][0]["text"]


def test_client_with_a_handshake_is_served(ostler):
    (ostler.workspace / "a.txt").write_text("hello\n")
    with serving(ostler) as client:
        params = {"protocolVersion": "2025-06-18", "capabilities": {"roots": {}}, "clientInfo": {"name": "claude-code"}}
        opened = client.ask("initialize", params)["result"]
        assert opened["protocolVersion"] == "2025-06-18"
        assert opened["serverInfo"]["name"] == "ostler"
        client.send("notifications/initialized")
        names = [tool["name"] for tool in client.ask("tools/list")["result"]["tools"]]
        assert {"read", "bash", "run"} <= set(names)
        assert "hello" in content(client.call("read", {"path": "a.txt"}))
        assert client.ask("ping")["result"] == {}
        assert client.ask("resources/list")["error"]["code"] == -32601


def test_client_without_a_handshake_is_served(ostler):
    (ostler.workspace / "a.txt").write_text("hello\n")
    with serving(ostler) as client:
        found = client.ask("server/discover", modern=True)["result"]
        assert (found["resultType"], found["supportedVersions"][0]) == ("complete", "2026-07-28")
        assert client.ask("tools/list", modern=True)["result"]["cacheScope"] == "private"
        result = client.call("read", {"path": "a.txt"}, modern=True)
        assert "hello" in content(result)
        assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "ostler"


def test_unknown_version_is_refused_with_the_supported_ones(ostler):
    with serving(ostler) as client:
        meta = {"io.modelcontextprotocol/protocolVersion": "1900-01-01"}
        error = client.ask("tools/list", {"_meta": meta})["error"]
        assert error["code"] == -32022
        assert "2026-07-28" in error["data"]["supported"]


@pytest.mark.req("PM-4")
def test_call_that_needs_approval_is_denied_with_the_reason(ostler):
    with serving(ostler) as client:
        result = client.call("write", {"path": "b.txt", "content": "x"})
        assert result["isError"]
        assert "needs approval" in content(result)
        assert "external_directory" in content(client.call("read", {"path": "../secret"}))
    assert not (ostler.workspace / "b.txt").exists()


def test_flags_allow_and_select_tools(ostler):
    with serving(ostler, "--write", "--tools", "write,git_*") as client:
        assert [tool["name"] for tool in client.ask("tools/list")["result"]["tools"]] == ["write"]
        assert not client.call("write", {"path": "b.txt", "content": "x"})["isError"]
        unknown = client.ask("tools/call", {"name": "read", "arguments": {"path": "b.txt"}})
        assert unknown["error"]["code"] == -32602
    assert (ostler.workspace / "b.txt").read_text() == "x"


@pytest.mark.parametrize(
    "params", [{}, {"name": 3}, {"name": "read", "arguments": []}, {"name": "run", "arguments": {}}]
)
def test_invalid_call_is_an_error(ostler, params):
    with serving(ostler) as client:
        assert client.ask("tools/call", params)["error"]["code"] == -32602


def test_cancelled_call_ends_and_the_server_continues(ostler):
    with serving(ostler, "--allow", "bash") as client:
        running = client.start("tools/call", {"name": "bash", "arguments": {"command": "sleep 100"}}, token="t")
        client.send("notifications/cancelled", {"requestId": running})
        assert "error" in client.wait(running)
        assert client.ask("ping")["result"] == {}


def test_long_call_reports_progress(ostler):
    with serving(ostler, "--allow", "bash") as client:
        arguments = {"command": "for n in 1 2 3; do echo line $n; sleep 0.3; done"}
        result = client.call("bash", arguments, token="mine")
        assert "line 3" in content(result)
    assert client.notifications
    assert all(frame["params"]["progressToken"] == "mine" for frame in client.notifications)
    steps = [frame["params"]["progress"] for frame in client.notifications]
    assert steps == sorted(set(steps))


def test_run_answers_and_continues_a_session(ostler, models):
    with models.playing(text("first answer"), text("second answer")) as server, serving(ostler, *at(server)) as client:
        first = client.call("run", {"prompt": "hello"})
        session = first["structuredContent"]["session"]
        assert "first answer" in content(first)
        second = client.call("run", {"prompt": "more", "session": session})
        assert second["structuredContent"] == {"answer": "second answer", "session": session}
    assert "first answer" in json.dumps(server.requests[1].json["messages"])


def test_run_without_such_a_session_is_an_error(ostler, models):
    with models.playing() as server, serving(ostler, *at(server)) as client:
        assert client.call("run", {"prompt": "hello", "session": "nosuch"})["isError"]


def test_ostler_is_a_server_for_ostler(ostler):
    (ostler.workspace / "a.txt").write_text("hello\n")
    command = [sys.executable, "-P", "-m", "ostler", "mcp", "serve", "--cwd", str(ostler.workspace)]
    assert ostler("mcp", "add", "me", "--", *command).code == 0
    done = ostler("tool", "call", "--allow", "me_*", "me_read", '{"path": "a.txt"}')
    assert "hello" in json.loads(done.stdout)["for_model"]
