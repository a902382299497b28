"""The HTTP routes: sessions of a user, what describes the server, and the deprecated chat."""

import json
import math
import socket

import pytest
from tests.frontends.server.server_client import Gate, text_of
from websockets.exceptions import InvalidStatus

from ostler.frontends.server.hubs import PROJECT
from ostler.storage.sqlite_database import SqliteDatabase
from ostler.storage.sqlite_store import SqliteSessions
from ostler.testing.model_server import calls, status, text

req = pytest.mark.req
SESSIONS = "/api/agent/sessions"


@req("SV-2")
def test_sessions_can_be_listed_renamed_forked_and_deleted(models, serve):
    with models.playing(text("one"), text("two"), text("three")) as model:
        server = serve(model)
        client, other = server.client, server.client_of("eve")
        with client.host(root="/home/ada") as host:
            host.run_turn("first")
            status_code, changed = client.request("PATCH", f"{SESSIONS}/{host.id}", {"title": "My session"})
            assert (status_code, changed["title"], changed["workspaceRoot"]) == (200, "My session", "/home/ada")
            listed = client.request("GET", SESSIONS)[1]["sessions"]
            assert [(item["sessionId"], item["title"], item["turns"]) for item in listed] == [
                (host.id, "My session", 1)
            ]
            assert other.request("GET", SESSIONS)[1] == {"sessions": []}
            for method, path in (("DELETE", host.id), ("PATCH", host.id), ("POST", f"{host.id}/fork")):
                assert other.request(method, f"{SESSIONS}/{path}", {})[0] == 404
            status_code, fork = client.request("POST", f"{SESSIONS}/{host.id}/fork", {})
            assert status_code == 201 and fork["epoch"] != host.created["epoch"]
            with client.host(fork["sessionId"]) as forked:
                forked.run_turn("in the fork")
            host.run_turn("in the original")
            assert "in the original" not in json.dumps(client.messages(fork["sessionId"]))
            assert "in the fork" not in json.dumps(client.messages(host.id))
            assert client.request("DELETE", f"{SESSIONS}/{host.id}") == (204, None)
            assert host.closed()[0] == 4404
        assert client.request("GET", f"{SESSIONS}/{host.id}")[0] == 404
        assert client.request("GET", f"{SESSIONS}/{fork['sessionId']}")[0] == 200


@req("SV-2")
@pytest.mark.parametrize(
    ("method", "path", "body", "expected"),
    [
        ("GET", "/nothing", None, 404),
        ("GET", f"{SESSIONS}/unknown", None, 404),
        ("GET", f"{SESSIONS}/..%2f..%2fetc", None, 404),
        ("PUT", SESSIONS, {}, 405),
        ("GET", f"{SESSIONS}?limit=0", None, 400),
        ("GET", f"{SESSIONS}?limit=x", None, 400),
        ("POST", SESSIONS, b"{", 400),
        ("POST", SESSIONS, b"[]", 400),
        ("POST", SESSIONS, {"title": 7}, 400),
        ("POST", SESSIONS, b'{"title": "' + b"x" * 70_000 + b'"}', 413),
        ("POST", "/api/chat/stream", {"message": " "}, 400),
    ],
)
def test_refused_requests_get_a_json_error(models, serve, method, path, body, expected):
    with models.playing() as model:
        code, answer = serve(model).client.request(method, path, body)
    assert code == expected and answer["error"] and answer["code"], answer


@req("SV-2")
def test_model_is_chosen_for_each_session(models, serve):
    with models.playing(text("one"), text("two")) as model:
        server = serve(model, models=("small", "large"))
        client = server.client
        assert client.request("GET", "/api/agent/capabilities")[1]["models"] == ["small", "large"]
        code, session = client.request("POST", SESSIONS, {"model": "large"})
        assert (code, session["model"]) == (201, "large") and session["createdAt"]
        with client.host(session["sessionId"]) as host:
            host.run_turn("go")
            assert client.request("PATCH", f"{SESSIONS}/{host.id}", {"model": "small"})[1]["model"] == "small"
            host.run_turn("go")
    assert [request.json["model"] for request in model.requests] == ["large", "small"]


@req("SV-2")
def test_model_that_is_not_offered_is_refused_and_leaves_the_session_usable(models, serve):
    with models.playing(text("one")) as model:
        client = serve(model, models=("small",)).client
        code, answer = client.request("POST", SESSIONS, {"model": "huge"})
        assert (code, answer["code"]) == (422, "bad_change") and "available: small" in answer["error"]
        assert client.request("GET", SESSIONS)[1] == {"sessions": []}
        session = client.create()
        assert client.request("PATCH", f"{SESSIONS}/{session}", {"model": "huge"})[0] == 422
        for options in ({"model": "huge"}, {"agent": "none"}, {"strange": "x"}):
            with client.host(session, options=options) as refused:
                assert refused.created["code"] == "bad_change"
                assert refused.closed()[0] == 4400
        with client.host(session, options={"model": "small"}) as host:
            assert text_of(host.run_turn("go")) == "one"
            with client.viewer(session, options={"thinking": "enormous"}) as refused:
                assert refused.created["code"] == "bad_change"
    assert model.requests[0].json["model"] == "small"


@req("SV-2")
def test_capabilities_openapi_and_schema_describe_the_server(models, serve):
    with models.playing() as model:
        server = serve(model)
        capabilities = server.client.request("GET", "/api/agent/capabilities")[1]
        assert capabilities["protocol"] == [1] and "events" in capabilities["features"]
        document = server.client.request("GET", "/api/openapi.json")[1]
        for path, operations in document["paths"].items():
            for method in set(operations) & {"get", "post", "patch", "delete"}:
                with server.client.open(method.upper(), path.replace("{id}", "unknown")) as answer:
                    code = answer.status
                assert code not in (401, 405, 500), (method, path, code)
        assert "hello" in json.dumps(server.client.request("GET", "/api/schema.json")[1])


@req("SV-10")
def test_deprecated_chat_streams_beside_a_session(models, serve):
    with models.playing(text("Hello there", chunks=3), text("ok")) as model:
        client = serve(model).client
        answer = client.open("POST", "/api/chat/stream", {"message": "hi"})
        lines = [line[6:] for line in answer.read().decode().splitlines() if line]
        assert answer.headers["Deprecation"] == "true" and lines[-1] == "[DONE]"
        events = [json.loads(line) for line in lines[:-1]]
        assert "".join(event["content"] for event in events[:-1]) == "Hello there"
        assert events[-1] == {"type": "message_complete", "message": {"role": "assistant", "content": "Hello there"}}
        assert [event["seq"] for event in events[:-1]] == list(range(len(events) - 1))
        with client.host() as host:
            assert text_of(host.run_turn("go")) == "ok"
        assert len(client.request("GET", SESSIONS)[1]["sessions"]) == 1
    assert "tools" not in model.requests[0].json


@req("SV-10")
def test_running_chats_count_as_sessions_in_use(models, serve):
    gate = Gate()
    with models.playing(text("one two", chunks=2).hold_after(2, gate.wait), text("two"), text("three")) as model:
        client = serve(model, open_sessions_per_user=1).client
        first = client.open("POST", "/api/chat/stream", {"message": "hi"})
        first.readline()
        code, answer = client.request("POST", "/api/chat/stream", {"message": "hi"})
        assert (code, answer["code"]) == (429, "rate_limited")
        with pytest.raises(InvalidStatus):
            client.host()
        gate.open()
        assert first.read().endswith(b"[DONE]\n\n")
        assert client.open("POST", "/api/chat/stream", {"message": "hi"}).read().endswith(b"[DONE]\n\n")
        with client.host() as host:
            assert text_of(host.run_turn("go")) == "three"


@req("SV-10")
def test_failed_chat_ends_with_an_error(models, serve):
    with models.playing(status(400, {"error": {"message": "bad"}})) as model:
        answer = serve(model).client.open("POST", "/api/chat/stream", {"messages": [{"role": "user", "content": "x"}]})
        lines = answer.read().decode().splitlines()
    assert lines[-2] == "data: [ERROR]" and json.loads(lines[0][6:])["type"] == "error"


@req("SV-10")
def test_chat_tells_the_model_that_there_are_no_tools(models, serve):
    with models.playing(calls([("ls", {})]), text("Hello")) as model:
        answer = serve(model).client.open("POST", "/api/chat/stream", {"message": "hi"})
        lines = answer.read().decode().splitlines()
    assert lines[-2] == "data: [DONE]"
    assert "there is no tool 'ls'" in model.requests[1].json["messages"][-1]["content"]


def unfinished_request(client):
    """Return a socket on which a request was sent without its whole body."""
    names = {
        "Host": f"127.0.0.1:{client.port}",
        "Content-Type": "application/json",
        "Content-Length": "9",
        **client.headers,
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in (names | client.headers).items())
    peer = socket.create_connection(("127.0.0.1", client.port), timeout=20)
    peer.sendall(f"POST {SESSIONS} HTTP/1.1\r\n{head}\r\n{{".encode())
    return peer


@req("SV-2")
def test_body_that_does_not_arrive_ends_the_request(models, serve, monkeypatch):
    monkeypatch.setattr("ostler.frontends.server.http_errors.BODY_SECONDS", 0.05)
    with models.playing() as model, unfinished_request(serve(model).client) as peer:
        assert peer.recv(1000).startswith(b"HTTP/1.1 408")


@req("SV-9")
def test_client_that_leaves_during_its_body_is_not_an_error_of_the_server(models, serve, caplog):
    with models.playing() as model:
        client = serve(model).client
        unfinished_request(client).close()
        for _ in range(3):
            assert client.request("GET", SESSIONS)[0] == 200
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


@req("SV-2")
def test_sessions_that_were_not_used_are_deleted(models, serve, monkeypatch):
    monkeypatch.setattr("ostler.frontends.server.hubs.SWEEP_SECONDS", 0.05)
    monkeypatch.setattr("ostler.frontends.server.hubs.EXPIRE_SECONDS", math.inf)
    with models.playing(text("one")) as model:
        server = serve(model, expire_days=1e-7, idle_close=0.0)
        with server.client.host() as host:
            host.run_turn("go")
        monkeypatch.setattr("ostler.frontends.server.hubs.EXPIRE_SECONDS", 0.0)
        for _ in range(400):
            if server.client.request("GET", f"{SESSIONS}/{host.id}")[0] == 404:
                break
        assert server.client.request("GET", SESSIONS)[1] == {"sessions": []}


@req("SV-3", "SV-11")
def test_session_that_could_not_be_deleted_can_be_used_again(models, serve, tmp_path):
    with models.playing(text("Hello")) as model:
        client = serve(model).client
        session_id = client.create()
        other = SqliteDatabase(tmp_path / "server-0" / "server.db")  # as another process opens it
        journal = SqliteSessions(other).of("ada").open(PROJECT, session_id)
        status, answer = client.request("DELETE", f"/api/agent/sessions/{session_id}")
        assert (status, answer["code"]) == (409, "busy") and "ostler sessions" not in answer["error"]
        journal.close()
        other.close()
        assert client.request("PATCH", f"/api/agent/sessions/{session_id}", {"title": "kept"})[0] == 200
        with client.host(session_id) as host:
            assert text_of(host.run_turn("hi")) == "Hello"
            assert client.request("DELETE", f"/api/agent/sessions/{session_id}")[0] == 204
            assert host.closed()[0] == 4404


@req("SV-3")
def test_list_has_nothing_that_may_be_wrong(models, serve):
    with models.playing() as model:
        client = serve(model).client
        with client.host():
            (listed,) = client.request("GET", "/api/agent/sessions")[1]["sessions"]
    assert set(listed) == {"sessionId", "title", "workspaceRoot", "createdAt", "updatedAt", "turns", "activity"}


@req("SV-3", "TU-9")
def test_list_says_what_an_open_session_does(models, serve):
    def activity():
        return client.request("GET", "/api/agent/sessions")[1]["sessions"][0]["activity"]

    with models.playing(calls([("ls", {"path": "."})]), text("ok")) as model:
        client = serve(model).client
        with client.host() as host, client.viewer(host.id, features=["approvals"]) as viewer:
            assert activity() == "idle"
            host.say("go")
            call = host.wait("tool.call")
            assert activity() == "working"
            host.send("approval.request", askId="q1", permission={"title": "list"}, onlyAtHost=True)
            assert viewer.wait("approval.request")["onlyAtHost"]
            assert activity() == "waiting"
            viewer.send("approval.answer", askId="q1", decision={"answer": "allow"})
            assert viewer.wait("error")["code"] == "forbidden"
            host.answer(call, "x")
            host.until_done()
