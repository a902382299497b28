"""The HTTP routes: sessions of a user, what describes the server, and the deprecated chat."""

import json

import pytest
from tests.frontends.server.server_client import text_of

from ostler.testing.model_server import status, text

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
def test_failed_chat_ends_with_an_error(models, serve):
    with models.playing(status(400, {"error": {"message": "bad"}})) as model:
        answer = serve(model).client.open("POST", "/api/chat/stream", {"messages": [{"role": "user", "content": "x"}]})
        lines = answer.read().decode().splitlines()
    assert lines[-2] == "data: [ERROR]" and json.loads(lines[0][6:])["type"] == "error"


@req("SV-2")
def test_sessions_that_were_not_used_are_deleted(models, serve, monkeypatch):
    monkeypatch.setattr("ostler.frontends.server.hubs.SWEEP_SECONDS", 0.05)
    monkeypatch.setattr("ostler.frontends.server.hubs.EXPIRE_SECONDS", 0.0)
    with models.playing(text("one")) as model:
        server = serve(model, expire_days=1e-7, idle_close=0.0)
        with server.client.host() as host:
            host.run_turn("go")
        for _ in range(400):
            if server.client.request("GET", f"{SESSIONS}/{host.id}")[0] == 404:
                break
        assert server.client.request("GET", SESSIONS)[1] == {"sessions": []}
