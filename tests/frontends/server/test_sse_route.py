"""The fallback without WebSocket: the same messages as server-sent events, with POST for the other direction."""

import io
import json
import socket
import time

import pytest
from tests.frontends.server.server_client import LS, ServerClient, text_of

from ostler.testing.model_server import calls, text

req = pytest.mark.req
HELLO = {"type": "hello", "clientVersion": "0", "workspaceRoot": "/w", "toolManifest": {"tools": [LS]}}


class EventStream:
    """Reads server-sent events of a session."""

    def __init__(self, client, session_id, **headers):
        self.client, self.session, self.path = client, session_id, f"/api/agent/sessions/{session_id}"
        self._answer = client.open("GET", f"{self.path}/stream", **headers)
        assert self._answer.status == 200, self._answer.read()
        self.last_id = ""

    def post(self, *frames):
        return self.client.request("POST", f"{self.path}/messages", list(frames))

    def receive(self):
        while True:
            lines = []
            while line := self._answer.readline().decode().rstrip("\n"):
                lines.append(line)
            fields = dict(line.split(": ", 1) for line in lines if not line.startswith(":"))
            self.last_id = fields.get("id", self.last_id)
            if "data" in fields:
                frame = json.loads(fields["data"])
                assert int(fields.get("id", 0)) == frame.get("seq", 0)
                return frame

    def until_done(self):
        frames = [self.receive()]
        while frames[-1]["type"] != "assistant.done":
            frames.append(self.receive())
        return frames

    def close(self):
        self._answer.close()


@req("SV-3")
def test_whole_turn_over_sse_and_post(models, serve):
    with models.playing(calls([("ls", {"path": "."})]), text("Hello", chunks=3)) as model:
        client = serve(model).client
        stream = EventStream(client, client.create())
        assert stream.post(HELLO)[0] == 202
        assert stream.receive()["type"] == "session.created"
        stream.post({"type": "user.message", "content": "go"})
        call = stream.receive()
        result = {"type": "tool.result", "toolCallId": call["toolCallId"], "output": "a.txt"}
        assert stream.post(result) == (202, {"accepted": 1, "replies": []})
        assert text_of(stream.until_done()) == "Hello"
        assert stream.post(result) == (202, {"accepted": 1, "replies": []})
        stream.close()
    assert "a.txt" in model.requests[1].body.decode()


@req("SV-3")
def test_hello_may_come_before_the_stream(models, serve):
    with models.playing(text("Hello")) as model:
        client = serve(model).client
        session_id = client.create()
        path = f"/api/agent/sessions/{session_id}/messages"
        assert client.request("POST", path, [HELLO, {"type": "user.message", "content": "go"}])[0] == 202
        stream = EventStream(client, session_id)
        assert stream.receive()["type"] == "session.created"
        assert text_of(stream.until_done()) == "Hello"
        stream.close()


@req("SV-3", "SV-7")
def test_stream_continues_after_the_last_event_id(models, serve):
    with models.playing(text("one"), text("two")) as model:
        client = serve(model).client
        session_id = client.create()
        stream = EventStream(client, session_id)
        stream.post(HELLO)
        stream.post({"type": "user.message", "content": "go"})
        assert text_of(stream.until_done()) == "one"
        stream.close()
        stream.post({"type": "user.message", "content": "more"})
        again = EventStream(client, session_id, Last_Event_ID=stream.last_id)
        assert again.receive()["resumed"]
        assert text_of(again.until_done()) == "two"
        ahead = EventStream(client, session_id, Last_Event_ID="99999")
        assert [ahead.receive()["type"], ahead.receive()["type"]] == ["session.created", "resync"]
        again.close()
        ahead.close()


@req("SV-3")
@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"[", 400),
        (b"7", 400),
        (b"[7]", 400),
        (b"", 400),
        (b'{"type": "user.message", "content": "before hello"}', 400),
        (b'[{"type": "later.type"}]', 202),
        (b'[{"type": "later.type", "text": "\\ud800"}]', 202),
        (b'{"type": "hello", "protocol": 99}', 400),
        (json.dumps({**HELLO, "toolManifest": {"tools": [LS, LS]}}).encode(), 400),
        (b"x" * 5_000_000, 413),
    ],
)
def test_bad_messages_by_post_are_refused(models, serve, body, status):
    with models.playing() as model:
        client = serve(model).client
        path = f"/api/agent/sessions/{client.create()}/messages"
        code, answer = client.request("POST", path, body)
        assert code == status, answer


@req("SV-3")
def test_heartbeats_keep_the_stream(models, serve):
    with models.playing() as model:
        client = serve(model, heartbeat=0.05).client
        stream = EventStream(client, client.create())
        stream.post(HELLO)
        assert [stream.receive()["type"] for _ in range(3)] == ["session.created", "heartbeat", "heartbeat"]
        stream.close()


@req("SV-3")
def test_clients_that_send_no_hello_are_forgotten(models, serve):
    with models.playing() as model:
        server = serve(model, heartbeat=0.05, stream_gap=0.1, connections_per_user=2)
        client, session = server.client, server.client.create()
        path = f"/api/agent/sessions/{session}"
        for number in range(5):
            answer = client.open("GET", f"{path}/stream?connection=c{number}")
            assert b"waiting for hello" in answer.read()  # the stream ends by itself
            code, reply = client.request("POST", f"{path}/messages?connection=p{number}", {"type": "cancel"})
            assert (code, reply["replies"][0]["code"]) == (400, "hello_expected")


@req("SV-3")
def test_refused_host_is_told(models, serve):
    with models.playing() as model:
        client = serve(model).client
        with client.host(host={"id": "a", "name": "laptop"}) as host:
            path = f"/api/agent/sessions/{host.id}/messages?connection=y"
            status, answer = client.request("POST", path, {**HELLO, "host": {"id": "b"}})
            assert status == 400 and answer["accepted"] == 0
            assert [reply["code"] for reply in answer["replies"]] == ["host_taken"]
            assert client.request("POST", path, {**HELLO, "host": {"id": "b"}, "takeHost": True})[0] == 202
            assert host.closed()[0] == 4409


@req("SV-3")
def test_call_with_an_invalid_result_ends(models, serve):
    with models.playing(calls([("ls", {"path": "."})]), text("ok")) as model:
        client = serve(model).client
        stream = EventStream(client, client.create())
        stream.post(HELLO, {"type": "user.message", "content": "go"})
        while (call := stream.receive())["type"] != "tool.call":
            pass
        status, answer = stream.post({"type": "tool.result", "toolCallId": call["toolCallId"], "status": "weird"})
        assert status == 400 and answer["replies"][0]["toolCallId"] == call["toolCallId"]
        assert text_of(stream.until_done()) == "ok"
        stream.close()


@req("SV-3", "SV-12")
def test_stream_without_hello_ends_when_the_server_stops_and_nothing_is_printed(models, serve_process):
    with models.playing() as model:
        server = serve_process(model)
        path = f"/api/agent/sessions/{server.client.create()}"
        waiting = server.client.open("GET", f"{path}/stream")
        assert waiting.readline().startswith(b": waiting")
        slow = socket.create_connection(("127.0.0.1", server.port))
        head = f"POST {path}/messages HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Length: 9\r\n"
        slow.sendall(f"{head}Authorization: Bearer {server.client.token}\r\n\r\n".encode())
        assert server.client.request("GET", "/healthz")[0] == 200
        stderr = server.process.stderr
        began, server.process.stderr = time.monotonic(), io.StringIO()
        assert server.stop() == 0
        assert time.monotonic() - began < 4.5
        assert waiting.read().replace(b": waiting for hello", b"").strip() == b""
        assert stderr.read() == ""
        stderr.close()
        slow.close()


@req("SV-3", "SV-5")
def test_token_that_can_only_read_does_not_take_over_the_stream_of_a_client(models, serve):
    with models.playing(text("Hello")) as model:
        server = serve(model)
        reader = ServerClient(server.port, server.accounts.issue("ada", {"read"}).text)
        stream = EventStream(server.client, server.client.create())
        stream.post(HELLO)
        assert stream.receive()["role"] == "host"
        watching = EventStream(reader, stream.session)  # with the same connection id
        assert watching.receive()["role"] == "viewer"
        stream.post({"type": "user.message", "content": "go"})
        assert text_of(stream.until_done()) == text_of(watching.until_done()) == "Hello"
        stream.close()
        watching.close()


@req("SV-3")
def test_token_that_can_only_read_watches(models, serve):
    with models.playing(text("Hello"), text("again")) as model:
        server = serve(model)
        reader = ServerClient(server.port, server.accounts.issue("ada", {"read"}).text)
        with server.client.host() as host:
            stream = EventStream(reader, host.id)
            created = stream.receive()
            assert (created["type"], created["role"]) == ("session.created", "viewer")
            host.run_turn("go")
            assert text_of(stream.until_done()) == "Hello"
            assert stream.post({"type": "cancel"})[0] == 403
            stream.close()
            host.run_turn("more")
            again = EventStream(reader, host.id, Last_Event_ID=stream.last_id)
            assert again.receive()["resumed"]
            assert text_of(again.until_done()) == "again"
            again.close()
