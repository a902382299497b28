"""`ostler mcp serve`: Ostler's tools for clients of both protocol eras, with the same permissions as elsewhere."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager

import pytest
from tests.conftest import at

from ostler.testing.model_server import calls, text

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
        self.questions = []
        self.answer = None  # returns the result or error for a request of the server

    def send(self, method, params=None, **more):
        self._write({"jsonrpc": "2.0", "method": method, "params": params or {}, **more})

    def _write(self, frame):
        self._process.stdin.write(json.dumps(frame) + "\n")
        self._process.stdin.flush()

    def shake_hands(self, capabilities):
        params = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": {"name": "claude-code"}}
        self.ask("initialize", params)
        self.send("notifications/initialized")

    def start(self, method, params=None, *, modern=False, token=None, capabilities=None):
        self._id += 1
        meta = {**(MODERN if modern else {}), **({"progressToken": token} if token else {})}
        if capabilities is not None:
            meta["io.modelcontextprotocol/clientCapabilities"] = capabilities
        self.send(method, {**(params or {}), **({"_meta": meta} if meta else {})}, id=self._id)
        return self._id

    def read(self):
        frame = json.loads(self._process.stdout.readline())
        if "method" in frame and "id" in frame:
            self.questions.append(frame)
            answer = self.answer(frame) if self.answer else None
            if answer is not None:
                self._write({"jsonrpc": "2.0", "id": frame["id"], **answer})
        elif "method" in frame:
            self.notifications.append(frame)
        return frame

    def wait(self, request_id):
        while (frame := self.read()).get("id") != request_id or "method" in frame:
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


def test_batch_of_requests_is_answered(ostler):
    """Version 2025-03-26 requires this."""
    with serving(ostler) as client:
        client.ask("initialize", {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "old"}})
        pings = [{"jsonrpc": "2.0", "id": f"ping-{number}", "method": "ping"} for number in range(3)]
        client._write([*pings, {"jsonrpc": "2.0", "method": "notifications/initialized"}, 7])
        answers = [client.read() for _ in range(4)]
        assert {answer["id"] for answer in answers} == {"ping-0", "ping-1", "ping-2", None}
        client._write([])
        assert client.read()["error"]["code"] == -32600


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


@pytest.mark.req("PM-10")
@pytest.mark.parametrize(
    ("flags", "changed"),
    [
        (("--mode", "accept-edits"), ["a.txt", "b.txt"]),
        (("--mode", "plan", "--write"), []),
        (("--mode", "ask"), []),
    ],
    ids=["accept-edits", "plan", "ask"],
)
def test_mode_applies_to_calls(ostler, flags, changed):
    with serving(ostler, *flags) as client:
        client.call("write", {"path": "a.txt", "content": "x"}, modern=True)
        client.call("bash", {"command": "echo x > b.txt"}, modern=True)
    assert [name for name in ("a.txt", "b.txt") if (ostler.workspace / name).exists()] == changed


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


WRITE = {"name": "write", "arguments": {"path": "b.txt", "content": "x"}}
FORMS = {"elicitation": {}}


def accept(answer):
    return {"action": "accept", "content": {"answer": answer}}


class TestLegacyClientThatCanAsk:
    """A client with a handshake and the elicitation capability gets approval requests."""

    @pytest.mark.req("PM-4")
    def test_approved_call_runs(self, ostler):
        with serving(ostler) as client:
            client.shake_hands(FORMS)
            client.answer = lambda frame: {"result": accept("once")}
            assert not client.call(**WRITE)["isError"]
            assert client.questions[0]["method"] == "elicitation/create"
            assert "b.txt" in client.questions[0]["params"]["message"]
            assert "+x" in client.questions[0]["params"]["message"]
        assert (ostler.workspace / "b.txt").read_text() == "x"

    def test_answers_for_the_project_are_not_offered(self, ostler):
        with serving(ostler) as client:
            client.shake_hands({"elicitation": {"form": {}}})
            client.answer = lambda frame: {"result": accept("always")}
            assert client.call(**WRITE)["isError"]
            schema = client.questions[0]["params"]["requestedSchema"]["properties"]["answer"]
            assert "always" not in schema["enum"]
            assert {"once", "session", "deny"} <= set(schema["enum"])
        assert not (ostler.workspace / "b.txt").exists()

    def test_answer_for_the_session_covers_the_next_call(self, ostler):
        with serving(ostler) as client:
            client.shake_hands(FORMS)
            client.answer = lambda frame: {"result": accept("edits")}
            client.call(**WRITE)
            client.call("edit", {"path": "b.txt", "old": "x", "new": "y"})
        assert len(client.questions) == 1
        assert (ostler.workspace / "b.txt").read_text() == "y"

    @pytest.mark.parametrize(
        ("answer", "reason"),
        [
            ({"result": {"action": "decline"}}, "denied"),
            ({"result": {"action": "cancel"}}, "denied"),
            ({"result": accept("nonsense")}, "none of the offered ones"),
            ({"result": {"action": "accept"}}, "not valid"),
            ({"result": [1]}, "not valid"),
            ({"error": {"code": -32601, "message": "no dialogs here"}}, "no dialogs here"),
        ],
    )
    def test_any_other_answer_denies_the_call(self, ostler, answer, reason):
        with serving(ostler) as client:
            client.shake_hands(FORMS)
            client.answer = lambda frame: answer
            result = client.call(**WRITE)
            assert result["isError"]
            assert reason in content(result)
        assert not (ostler.workspace / "b.txt").exists()

    def test_cancelled_call_withdraws_the_question(self, ostler):
        with serving(ostler) as client:
            client.shake_hands(FORMS)
            running = client.start("tools/call", WRITE)
            while not client.questions:
                client.read()
            client.send("notifications/cancelled", {"requestId": running})
            while {"requestId": client.questions[0]["id"]} not in [frame["params"] for frame in client.notifications]:
                client.read()
        assert not (ostler.workspace / "b.txt").exists()

    def test_server_ends_although_a_question_is_open(self, ostler):
        with serving(ostler) as client:
            client.shake_hands(FORMS)
            client.start("tools/call", WRITE)
            while not client.questions:
                client.read()


class TestModernClientThatCanAsk:
    """A client without a handshake gets the question as a result, and sends the same call again with the reply."""

    def first_round(self, client, **changes):
        result = client.ask("tools/call", {**WRITE, **changes}, modern=True, capabilities=FORMS)["result"]
        assert result["resultType"] == "input_required"
        ((key, request),) = result["inputRequests"].items()
        assert request["method"] == "elicitation/create"
        return key, result["requestState"]

    def next_round(self, client, state, responses, **changes):
        params = {**WRITE, "requestState": state, "inputResponses": responses, **changes}
        return client.ask("tools/call", params, modern=True, capabilities=FORMS)

    @pytest.mark.req("PM-4")
    def test_approved_call_runs(self, ostler):
        with serving(ostler) as client:
            key, state = self.first_round(client)
            assert not (ostler.workspace / "b.txt").exists()
            result = self.next_round(client, state, {key: accept("once"), "other": {}})["result"]
            assert (result["resultType"], result["isError"]) == ("complete", False)
        assert (ostler.workspace / "b.txt").read_text() == "x"

    def test_denied_call_does_not_run(self, ostler):
        with serving(ostler) as client:
            key, state = self.first_round(client)
            assert self.next_round(client, state, {key: {"action": "decline"}})["result"]["isError"]
        assert not (ostler.workspace / "b.txt").exists()

    def test_missing_reply_is_asked_for_again(self, ostler):
        with serving(ostler) as client:
            key, state = self.first_round(client)
            again = self.next_round(client, state, {"wrong": accept("once"), key: 5})["result"]
            assert again["requestState"] != state
            assert list(again["inputRequests"]) == [key]
            assert not self.next_round(client, again["requestState"], {key: accept("once")})["result"]["isError"]

    @pytest.mark.parametrize(
        "changes",
        [
            {"requestState": "forged"},
            {"requestState": 7},
            {"arguments": {"path": "b.txt", "content": "something else"}},
            {"name": "read"},
            {"inputResponses": 3},
        ],
    )
    def test_reply_is_valid_only_for_the_call_that_was_shown(self, ostler, changes):
        with serving(ostler) as client:
            key, state = self.first_round(client)
            refused = self.next_round(client, state, {key: accept("once")}, **changes)
            assert refused["error"]["code"] == -32602
        assert not (ostler.workspace / "b.txt").exists()

    def test_state_is_used_once(self, ostler):
        with serving(ostler) as client:
            key, state = self.first_round(client)
            self.next_round(client, state, {key: accept("once")})
            (ostler.workspace / "b.txt").unlink()
            assert "error" in self.next_round(client, state, {key: accept("once")})
        assert not (ostler.workspace / "b.txt").exists()

    def test_reply_to_a_question_that_was_not_asked_is_not_used(self, ostler):
        with serving(ostler) as client:
            self.first_round(client, inputResponses={"question-1": accept("once")})
        assert not (ostler.workspace / "b.txt").exists()

    def test_client_without_the_capability_is_refused_at_once(self, ostler):
        with serving(ostler) as client:
            result = client.call(**WRITE, modern=True)
            assert "needs approval" in content(result)
            url_only = client.call(**WRITE, modern=True, capabilities={"elicitation": {"url": {}}})
            assert "needs approval" in content(url_only)


@pytest.mark.parametrize("modern", [False, True])
def test_run_asks_and_reports_its_calls(ostler, models, modern):
    script = [calls([("write", {"path": "b.txt", "content": "x"})]), text("written")]
    with models.playing(*script) as server, serving(ostler, *at(server)) as client:
        if not modern:
            client.shake_hands(FORMS)
            client.answer = lambda frame: {"result": accept("once")}
        params = {"name": "run", "arguments": {"prompt": "go"}}
        capabilities = FORMS if modern else None
        result = client.ask("tools/call", params, token="t", modern=modern, capabilities=capabilities)["result"]
        if modern:
            ((key, _),) = result["inputRequests"].items()
            params |= {"requestState": result["requestState"], "inputResponses": {key: accept("once")}}
            result = client.ask("tools/call", params, token="u", modern=True, capabilities=FORMS)["result"]
        assert result["structuredContent"]["answer"] == "written"
        assert any("write b.txt" in frame["params"].get("message", "") for frame in client.notifications)
    assert (ostler.workspace / "b.txt").read_text() == "x"


def test_run_that_fails_says_why(ostler, models):
    script = [calls([("list", {"path": "."})])]
    with models.playing(*script) as server, serving(ostler, *at(server), "--max-steps", "1") as client:
        result = client.call("run", {"prompt": "go"})
    assert result["isError"]
    assert "not finished" in content(result)


def test_other_calls_are_served_while_one_waits_for_a_reply(ostler):
    (ostler.workspace / "a.txt").write_text("hello\n")
    with serving(ostler) as client:
        rounds = TestModernClientThatCanAsk()
        key, state = rounds.first_round(client)
        other = {"path": "c.txt", "content": "y"}
        other_key, other_state = rounds.first_round(client, arguments=other)
        read = client.call("read", {"path": "a.txt"}, modern=True, capabilities=FORMS)
        assert "hello" in content(read)
        result = rounds.next_round(client, other_state, {other_key: accept("once")}, arguments=other)
        assert not result["result"]["isError"]
        assert not rounds.next_round(client, state, {key: accept("once")})["result"]["isError"]
