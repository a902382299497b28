"""`ostler serve` as a process: pairing, the guard on every route, owners of sessions, TLS, the Unix socket."""

import http.client
import json
import re
import socket
import ssl
import time

import pytest
from tests.conftest import at
from tests.serving import hello, serving
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import unix_connect

pytestmark = pytest.mark.req("SV-5")
ROUTES = [
    ("POST", "/api/agent/sessions"),
    ("GET", "/api/agent/sessions"),
    ("GET", "/api/agent/sessions/{id}"),
    ("PATCH", "/api/agent/sessions/{id}"),
    ("DELETE", "/api/agent/sessions/{id}"),
    ("POST", "/api/agent/sessions/{id}/fork"),
    ("GET", "/api/agent/sessions/{id}/messages"),
    ("POST", "/api/agent/sessions/{id}/messages"),
    ("GET", "/api/agent/sessions/{id}/stream"),
    ("GET", "/api/agent/capabilities"),
    ("POST", "/api/chat/stream"),
    ("DELETE", "/api/agent/token"),
    ("GET", "/api/openapi.json"),
    ("GET", "/api/docs"),
    ("GET", "/api/schema.json"),
    ("GET", "/readyz"),
    ("GET", "/nothing"),
]
OF_ONE_SESSION = [route for route in ROUTES if "{id}" in route[1]]


@pytest.fixture
def server(ostler, models):
    with serving(ostler, models) as server:
        yield server


@pytest.fixture
def issue(ostler):
    return lambda user, *options: ostler("serve", "token", "issue", user, *options).stdout.strip()


def test_client_is_paired_within_ten_seconds(ostler, models):
    start = time.monotonic()
    with serving(ostler, models) as server:
        done = ostler("login", server.line)
        assert done.code == 0, done.stderr
        assert time.monotonic() - start < 10
        token = json.loads(
            json.loads((ostler.home / ".ostler/credentials.json").read_text())["credentials"][0]["secret"]
        )
        assert server.request("GET", "/api/agent/capabilities", token["token"])[0] == 200
        assert ostler("login", server.line).code == 2


def test_every_route_needs_a_token_and_a_known_host_and_origin(server, issue):
    token = issue("ada")
    session = server.request("POST", "/api/agent/sessions", token, {})[1]["sessionId"]
    described = server.request("GET", "/api/openapi.json", token)[1]["paths"]
    known = {path for _, path in ROUTES} | {"/healthz", "/api/agent/pair"}
    assert not [path for path in described if re.sub(r"{\w+}", "{id}", path) not in known]
    for method, path in ROUTES:
        target = path.replace("{id}", session)
        assert server.request(method, target, body={})[0] in (401, 429), path  # 429 after many refusals
        assert server.request(method, f"{target}?token={token}", body={})[0] in (401, 429), path
        assert server.request(method, target, token, {}, host=f"evil.example:{server.port}")[0] == 403, path
        for origin in ("https://evil.example", "null", f"http://127.0.0.1:{server.port}"):
            assert server.request(method, target, token, {}, [("Origin", origin)])[0] == 403, path
    assert server.request("GET", "/healthz")[0] == 200
    assert server.request("GET", f"/api/agent/sessions/{session}", token)[0] == 200


def test_websocket_is_checked_before_it_is_accepted(server, issue):
    token = issue("ada")
    session = server.request("POST", "/api/agent/sessions", token, {})[1]["sessionId"]
    assert server.refused_websocket(session) == 401
    assert server.refused_websocket(session, token[:-1]) == 401
    assert server.refused_websocket(session, query=f"?token={token}") == 401
    assert server.refused_websocket(session, token, query=f"?token={token}") == 401
    assert server.refused_websocket(session, token, origin="https://evil.example") == 403
    assert server.refused_websocket(session, token, origin="null") == 403
    assert server.refused_websocket(session, issue("ada", "--scope", "read")) == 403
    assert server.refused_websocket(session, subprotocols=["bearer", token]) == 401
    with server.websocket(session, token) as accepted:
        assert hello(accepted)["type"] == "session.created"


def test_session_of_another_user_is_not_found_and_not_changed(server, issue):
    ada, bob = issue("ada"), issue("bob")
    session = server.request("POST", "/api/agent/sessions", ada, {"title": "private"})[1]["sessionId"]
    for method, path in OF_ONE_SESSION:
        body = {"type": "hello", "toolManifest": {"tools": []}} if path.endswith("messages") else {}
        status, answer = server.request(method, path.replace("{id}", session), bob, body)
        missing = server.request(method, path.replace("{id}", "0" * len(session)), bob, body)
        assert (status, answer["code"]) == (404, "not_found"), path
        assert missing == (status, answer), path
    assert server.refused_websocket(session, bob) == 404
    assert server.request("GET", "/api/agent/sessions", bob)[1]["sessions"] == []
    assert server.request("GET", f"/api/agent/sessions/{session}", ada)[1]["title"] == "private"


def test_session_in_use_is_hidden_from_another_user(server, issue):
    ada, bob = issue("ada"), issue("bob")
    session = server.request("POST", "/api/agent/sessions", ada, {})[1]["sessionId"]
    with server.websocket(session, ada) as accepted:
        hello(accepted)
        assert server.refused_websocket(session, bob) == 404
        assert server.request("GET", f"/api/agent/sessions/{session}/messages", bob)[0] == 404
        assert server.request("GET", f"/api/agent/sessions/{session}/stream", bob)[0] == 404


def test_revoking_a_token_closes_its_connections(server, issue, ostler):
    token = issue("ada")
    session = server.request("POST", "/api/agent/sessions", token, {})[1]["sessionId"]
    with server.websocket(session, token) as accepted:
        hello(accepted)
        assert ostler("serve", "token", "revoke", token.split("_")[1]).code == 0
        with pytest.raises(ConnectionClosed) as caught:
            while True:
                accepted.recv(20)
        assert caught.value.rcvd.code == 4401
    assert server.request("GET", "/readyz", token)[0] == 401


def test_secrets_and_keys_are_nowhere_in_answers_logs_and_output(ostler, models, issue):
    with serving(ostler, models) as server:
        token = issue("ada")
        server.request("GET", f"/api/x?access_token={token}", token)
        server.request("GET", "/api/agent/capabilities", token)
        files = [path for path in (ostler.home / ".ostler").rglob("*") if path.is_file()]
        assert (ostler.home / ".ostler/server/audit.jsonl") in files
        assert not [path for path in files if token.rpartition("_")[2].encode() in path.read_bytes()]
        audit = (ostler.home / ".ostler/server/audit.jsonl").read_text()
        assert '"user":"ada"' in audit


@pytest.mark.parametrize("bind", ["0.0.0.0:0", "[::]:0", ":0", "192.0.2.1:0", "example.org:0"])
def test_server_does_not_listen_beyond_loopback_without_tls(ostler, bind):
    done = ostler("serve", "--bind", bind, "--base-url", "http://127.0.0.1:1", "--model", "x")
    assert done.code == 2
    assert "--tls-cert" in done.stderr
    assert done.stdout == ""


def test_server_without_tokens_and_pairing_does_not_start(ostler, models):
    with models.playing() as model:
        done = ostler("serve", "--bind", "127.0.0.1:0", "--no-pairing", *at(model))
    assert done.code == 2
    assert "ostler serve token issue" in done.stderr


def test_tls_server_is_paired_by_its_fingerprint(ostler, models, certificates):
    files = ("--tls-cert", certificates.path("server.pem"), "--tls-key", certificates.path("server.key"))
    with serving(ostler, models, *files, bind="0.0.0.0:0") as server:
        assert server.url.startswith("https://")
        line = server.line.replace(f"//{server.url.split('//')[1]}", f"//127.0.0.1:{server.port}")
        done = ostler("login", line)
        assert done.code == 0, done.stderr
        assert ostler("logout", f"https://127.0.0.1:{server.port}").stdout == "logged out: its token was revoked\n"
        own = server.line.rpartition(".sha256-")[2].rstrip("'")
        for url in ((), ("--url", f"https://127.0.0.1:{server.port}")):
            assert f".sha256-{own}" in ostler("serve", "token", "pair", "bob", *url).stdout
        assert "sha256" not in ostler("serve", "token", "pair", "bob", "--url", "https://team.example").stdout
        context = ssl.create_default_context(cafile=certificates.path("ca.pem"))
        connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=20, context=context)
        connection.request("GET", "/readyz")
        assert connection.getresponse().status == 401
        connection.close()
        with pytest.raises((OSError, http.client.HTTPException)):
            server.request("GET", "/healthz")


def test_unix_socket_serves_its_user_without_port_and_token(ostler, models, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("s") / "o")
    with serving(ostler, models, bind="", unix=path) as server:
        assert server.lines[-1] == f"listening at {path}"
        connection = http.client.HTTPConnection("localhost", timeout=20)
        connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.sock.connect(path)
        connection.request("POST", "/api/agent/sessions", "{}", {"Content-Type": "application/json"})
        session = json.loads(connection.getresponse().read())["sessionId"]
        connection.close()
        with unix_connect(path, uri=f"ws://localhost/api/agent/sessions/{session}/stream") as accepted:
            assert hello(accepted)["type"] == "session.created"
