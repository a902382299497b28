"""The guard over real sockets: tokens, scopes, Host, Origin, query strings, revocation, owners and the audit log."""

import http.client
import socket
import stat

import pytest
from tests.frontends.server.guarded_server import ORIGIN
from tests.frontends.server.server_processes import ServerThread
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from ostler.core.errors import JournalError
from ostler.core.events import Envelope, SessionOpened
from ostler.frontends.server import http_server
from ostler.frontends.server.authentication import AccessRules, _check_headers

pytestmark = pytest.mark.req("SV-5")


@pytest.fixture
def token(server):
    return server.accounts.issue("ada").text


def open_socket(server, token="", *, path="/ws", host="", origin=None, headers=None):
    given = {"Authorization": f"Bearer {token}"} if token else {}
    address = f"ws://{host or '127.0.0.1'}:{server.port}{path}"
    return connect(
        address,
        address=("127.0.0.1", server.port),
        additional_headers={**given, **(headers or {})},
        origin=origin,
        proxy=None,
        open_timeout=10,
    )


def refused_status(server, *arguments, **options):
    with pytest.raises(InvalidStatus) as caught, open_socket(server, *arguments, **options):
        pass
    return caught.value.response.status_code


# -- tokens --------------------------------------------------------------------------------------------------------


def test_valid_token_names_the_user(server, token):
    assert server.request("GET", "/api/agent/capabilities", token)[:2] == (200, {"user": "ada"})
    with open_socket(server, token) as socket:
        assert socket.recv(10) == "ada"


@pytest.mark.sampled
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
@pytest.mark.parametrize(
    "path", ["/", "/readyz", "/api/agent/sessions", "/healthz/", "//healthz", "/healthz%2f..", "/HEALTHZ"]
)
def test_every_route_needs_a_token_also_on_loopback(server, method, path):
    status, _, headers = server.request(method, path)
    assert status == 401
    assert headers["WWW-Authenticate"] == "Bearer"
    assert server.calls == []


def test_only_healthz_is_open_and_has_no_user(server):
    assert server.request("GET", "/healthz")[:2] == (200, {"status": "ok", "user": None})
    assert refused_status(server, path="/healthz") == 401
    assert server.calls == []


def test_health_check_ignores_tokens(server, token):
    assert server.request("GET", "/healthz", token)[1]["user"] is None


def test_wrong_missing_expired_and_revoked_tokens_get_the_same_answer(server, token):
    expired = server.accounts.issue("ada", lifetime=1e-6).text
    revoked = server.accounts.issue("ada")
    server.accounts.revoke(revoked.token.id)
    wrong = token[:-1] + ("0" if token[-1] != "0" else "1")
    answers = [server.request("GET", "/api/x", text)[:2] for text in ("", wrong, expired, revoked.text, "x", "ostler_")]
    assert [status for status, _ in answers] == [401] * 6
    assert len({str(body) for _, body in answers}) == 1
    assert [refused_status(server, text) for text in ("", wrong, expired, revoked.text)] == [401] * 4
    assert server.calls == []


@pytest.mark.parametrize(
    "template", ["{}", "Basic {}", "Bearer", "Bearer  ", "Bearer {} x", "Bearer {},Bearer {}", "Token {}"]
)
def test_other_forms_of_the_header_are_refused(server, token, template):
    headers = [("Authorization", template.format(token, token))]
    assert server.request("GET", "/api/x", headers=headers)[0] == 401


def test_two_authorization_headers_are_refused(server, token):
    assert server.request("GET", "/api/x", token, [("Authorization", f"Bearer {token}")])[0] == 401


@pytest.mark.parametrize("header", ["Cookie", "X-Api-Key", "Sec-WebSocket-Protocol", "Proxy-Authorization"])
def test_token_in_another_header_is_refused(server, token, header):
    value = f"Bearer {token}" if header == "Proxy-Authorization" else token
    assert server.request("GET", "/api/x", headers=[(header, value)])[0] == 401


@pytest.mark.parametrize(
    "query", ["token={}", "access_token={}", "TOKEN=1", "a=1&token=", "x={}", "{}", "%74oken={}", "api_key=z"]
)
def test_token_in_the_query_string_is_refused_also_with_a_valid_header(server, token, query):
    path = "/api/x?" + query.format(token)
    for given in ("", token):
        status, body, _ = server.request("GET", path, given)
        assert status == 401
        assert "not in the URL" in body["error"]
        assert refused_status(server, given, path=path) == 401
    assert token.rpartition("_")[2] not in server.audit_file.read_text()
    assert server.calls == []


@pytest.mark.parametrize("search", ["tokens", "ostler_run", "how+does+ostler_token_pair+work"])
def test_other_query_strings_are_passed_on(server, token, search):
    assert server.request("GET", f"/api/x?limit=50&search={search}&connection=c", token)[0] == 200


def test_too_many_query_fields_are_refused(server, token):
    assert server.request("GET", "/api/x?" + "&".join(["a=1"] * 500), token)[0] == 401


def test_scopes_limit_a_token(server):
    read, write = (server.accounts.issue("ada", {scope}).text for scope in ("read", "write"))
    assert server.request("GET", "/api/x", read)[0] == 200
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        assert server.request(method, "/api/x", read)[0] == 403
    assert refused_status(server, read) == 403
    assert server.request("POST", "/api/x", write)[0] == 200
    assert server.request("GET", "/api/x", write)[0] == 403


# -- Host, Origin, CORS --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{}", "localhost.:{}", "0.0.0.0:{}"]
)
def test_foreign_host_is_refused_before_the_token_is_checked(server, token, host):
    name = host.format(server.port)
    for given in ("", token):
        assert server.request("GET", "/api/x", given, host=name)[0] == 403
        assert server.request("GET", "/healthz", given, host=name)[0] == 403
    assert server.calls == []


def test_known_names_of_the_server_are_accepted(server, token):
    for host in ("localhost", "LOCALHOST", "127.0.0.1", "[::1]"):
        assert server.request("GET", "/api/x", token, host=f"{host}:{server.port}")[0] == 200


def test_second_host_header_is_refused(server, token):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    headers = {"Authorization": f"Bearer {token}", "host": "evil.example"}
    connection.putrequest("GET", "/api/x")
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    assert connection.getresponse().status in (400, 403)
    connection.close()
    assert server.calls == []


@pytest.mark.parametrize(
    "origin", ["null", "https://evil.example", "http://127.0.0.1", ORIGIN + ".evil.example", ORIGIN.upper(), ""]
)
def test_foreign_origin_is_refused_with_a_valid_token(server, token, origin):
    assert server.request("POST", "/api/x", token, [("Origin", origin)])[0] == 403
    assert refused_status(server, token, headers={"Origin": origin}) == 403
    assert server.calls == []


def test_listed_origin_still_needs_a_token(server, token):
    assert server.request("GET", "/api/x", "", [("Origin", ORIGIN)])[0] == 401
    assert refused_status(server, origin=ORIGIN) == 401
    assert server.request("GET", "/api/x", token, [("Origin", ORIGIN)])[0] == 200
    with open_socket(server, token, origin=ORIGIN) as socket:
        assert socket.recv(10) == "ada"


def test_websocket_with_a_foreign_host_is_refused(server, token):
    assert refused_status(server, token, host="evil.example") == 403


def test_no_answer_has_cors_headers(server, token):
    preflight = [("Origin", ORIGIN), ("Access-Control-Request-Method", "POST")]
    for answer in (
        server.request("GET", "/api/x", token, [("Origin", ORIGIN)]),
        server.request("OPTIONS", "/api/x", "", preflight),
        server.request("OPTIONS", "/api/x", token, preflight),
    ):
        assert not [name for name in answer[2] if name.lower().startswith("access-control-")]


# -- revocation of open connections --------------------------------------------------------------------------------


def test_revoking_a_token_closes_its_websocket_only(server):
    mine, other = server.accounts.issue("ada"), server.accounts.issue("bob").text
    with open_socket(server, mine.text) as socket, open_socket(server, other) as remaining:
        socket.recv(10), remaining.recv(10)
        server.accounts.revoke(mine.token.id)
        with pytest.raises(ConnectionClosed) as caught:
            socket.recv(10)
        assert caught.value.rcvd.code == 4401
        assert server.stopped.wait(10)
        remaining.send("still here")
        assert remaining.recv(10) == "still here"


def test_expired_token_closes_its_websocket(server):
    with open_socket(server, server.accounts.issue("ada", lifetime=1).text) as socket:
        socket.recv(10)
        with pytest.raises(ConnectionClosed) as caught:
            socket.recv(10)
        assert caught.value.rcvd.code == 4401


def test_revoking_a_token_ends_its_event_stream(server):
    issued = server.accounts.issue("ada")
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.request("GET", "/api/stream", headers={"Authorization": f"Bearer {issued.text}"})
    answer = connection.getresponse()
    assert answer.read(9) == b'"started"'
    server.accounts.revoke(issued.token.id)
    assert answer.read() == b""
    assert server.stopped.wait(10)
    connection.close()


def test_broken_database_lets_nobody_in(server, token, monkeypatch):
    def fail(*_):
        raise JournalError("disk")

    with open_socket(server, token) as socket:
        socket.recv(10)
        monkeypatch.setattr(server.accounts, "authenticate", fail)
        monkeypatch.setattr(server.accounts, "valid", fail)
        assert server.request("GET", "/api/x", token)[0] == 503
        with pytest.raises(ConnectionClosed) as caught:
            socket.recv(10)
        assert caught.value.rcvd.code == 1012  # the client may try again
    assert server.calls == ["ws"]


# -- owners, errors, audit -----------------------------------------------------------------------------------------


def test_session_of_another_user_is_not_found(server, token):
    journal = server.sessions.of("ada").open("server")
    journal.append(Envelope(1, 0.0, SessionOpened(journal.session_id, "/w", "engine", "1")))
    journal.close()
    path, other = f"/api/agent/sessions/{journal.session_id}", server.accounts.issue("bob").text
    assert server.request("GET", path, token)[0] == 200
    for method in ("GET", "DELETE", "PATCH"):
        foreign, missing = server.request(method, path, other), server.request(method, path + "x", other)
        assert foreign[:2] == missing[:2] == (404, {"error": "session not found", "code": "not_found"})


def test_bug_is_answered_without_details(server, token):
    status, body, _ = raw_request(server, "/api/fail", token)
    assert status == 500
    assert b"secret detail" not in body
    assert b"Traceback" not in body
    with open_socket(server, token) as socket:
        socket.recv(10)
        socket.send("fail")
        with pytest.raises(ConnectionClosed) as caught:
            socket.recv(10)
    assert caught.value.rcvd.code == 1011
    assert "secret" not in caught.value.rcvd.reason


def raw_request(server, path, token):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
    answer = connection.getresponse()
    try:
        return answer.status, answer.read(), answer.headers
    finally:
        connection.close()


def test_audit_log_names_user_token_and_result_but_no_secret(server, token):
    server.request("GET", "/api/x?limit=1", token)
    server.request("POST", "/api/y")
    with open_socket(server, token) as socket:
        socket.recv(10)
    assert server.stopped.wait(10)
    server.close()
    entries = server.entries()
    assert [(entry["event"], entry.get("user"), entry["method"], entry["path"]) for entry in entries] == [
        ("request", "ada", "GET", "/api/x"),
        ("refused", None, "POST", "/api/y"),
        ("opened", "ada", "WS", "/ws"),
        ("closed", "ada", "WS", "/ws"),
    ]
    assert entries[0]["status"] == 200
    assert entries[1]["status"] == 401
    assert entries[0]["token"] == token.split("_")[1]
    assert entries[0]["client"] == "127.0.0.1"
    assert token.rpartition("_")[2] not in server.audit_file.read_text()
    assert stat.S_IMODE(server.audit_file.stat().st_mode) == 0o600


def test_audit_log_keeps_hostile_paths_on_one_line(server):
    server.request("GET", "/a%0a%7b%22event%22:%22forged%22%7d" + "x" * 5000)
    (entry,) = server.entries()
    assert entry["event"] == "refused"
    assert len(entry["path"]) == 300


def test_address_that_the_client_connected_to_is_a_valid_host():
    scope = {"type": "http", "headers": [(b"host", b"10.1.2.3:8034")], "server": ("10.1.2.3", 8034)}
    assert _check_headers(scope, AccessRules(frozenset())) is None
    for own in (("10.1.2.4", 8034), ("10.1.2.3", 8035), None, ("/socket", None), ("name", 8034)):
        assert _check_headers({**scope, "server": own}, AccessRules(frozenset())).status == 403
    mapped = {**scope, "server": ("::ffff:10.1.2.3", 8034)}
    assert _check_headers(mapped, AccessRules(frozenset())) is None
    v6 = {**scope, "headers": [(b"host", b"[2001:db8::1]:8034")], "server": ("2001:db8::1", 8034)}
    assert _check_headers(v6, AccessRules(frozenset())) is None


@pytest.mark.parametrize("data", [b"", b"\x16\x03\x01"])
def test_tls_connection_that_does_not_greet_is_closed(models, certificates, tmp_path, monkeypatch, data):
    monkeypatch.setattr(http_server, "HEAD_SECONDS", 0.3)
    with models.playing() as model:
        server = ServerThread(tmp_path, model, tls=(certificates.path("server.pem"), certificates.path("server.key")))
        try:
            with socket.create_connection(("127.0.0.1", server.port), timeout=10) as silent:
                silent.sendall(data)
                assert silent.recv(1) == b""
        finally:
            server.close()
