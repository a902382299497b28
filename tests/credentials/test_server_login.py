"""Finding the login of a server, and what a hostile server may answer."""

import asyncio
from contextlib import closing

import pytest
from tests.frontends.server.guarded_server import GuardedServer

from ostler.core.errors import BackendError, OstlerError, UsageError
from ostler.credentials.server_login import KnownServer, find_server, log_in, open_server
from ostler.credentials.server_logins import ServerLogin, ServerLogins
from ostler.credentials.store import LocalCredentials
from ostler.http.websocket import open_websocket

pytestmark = pytest.mark.req("SV-5")
CODE = "ABCD-EFGH-IJKL-MN23"


@pytest.fixture
def logins(tmp_path):
    return ServerLogins(LocalCredentials(tmp_path))


def test_server_is_found_under_each_way_to_write_its_url(logins):
    logins.set("https://host.example:443", ServerLogin("t"))
    for text in ("https://host.example", "https://HOST.example:443/", "host.example"):
        server = find_server(text, logins, {})
        assert server.headers() == [("authorization", "Bearer t")]


def test_missing_login_names_the_command(logins):
    with pytest.raises(UsageError, match=r"ostler login https://host\.example:443"):
        find_server("host.example", logins, {})


def test_stored_token_is_sent_unencrypted_only_if_the_user_agreed(logins):
    logins.set("http://host.example:80", ServerLogin("t"))
    with pytest.raises(UsageError, match="unencrypted"):
        find_server("http://host.example", logins, {})
    logins.set("http://host.example:80", ServerLogin("t", allow_plain=True))
    assert find_server("http://host.example", logins, {}).login.token == "t"


def test_fingerprint_without_tls_is_refused(logins):
    line = f"http://127.0.0.1:1#{CODE}.sha256-{'0' * 64}"
    with pytest.raises(UsageError, match="https"):
        asyncio.run(open_server(line, logins, {}))


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 29\r\n\r\n" + b'{"token":"x\\ny","user":"ada"}',
        b"HTTP/1.1 200 OK\r\nContent-Length: 26\r\n\r\n" + b'{"token":"","user":"root"}',
        b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:2/\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n" + b"[" * 200_000,
        b"HTTP/1.1 500 Oops\r\nContent-Length: 15\r\n\r\n" + b'{"error": "\x1b[m"}',
        b"SSH-2.0-OpenSSH\r\n",
    ],
)
def test_answers_of_other_servers_store_nothing(logins, reply):
    async def answer(reader, writer):
        with closing(writer):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(reply)

    async def run():
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            await log_in(f"http://127.0.0.1:{port}#{CODE}", logins, {}, lambda url: "")

    with pytest.raises(OstlerError) as caught:
        asyncio.run(run())
    assert str(caught.value).isprintable()
    assert logins.urls() == []


def test_paired_client_opens_a_websocket_to_the_pinned_server_only(tmp_path, logins, certificates):
    server = GuardedServer(tmp_path / "s", tls=(certificates.path("server.pem"), certificates.path("server.key")))
    code = server.accounts.open_pairing("ada", 60)
    line = f"https://127.0.0.1:{server.port}#{code}.sha256-{certificates.fingerprint()}"

    async def greet(known):
        websocket = await open_websocket(known.dialer({}), "/ws", known.headers(), max_message=1000)
        try:
            return await websocket.receive(10)
        finally:
            await websocket.aclose()

    async def run():
        assert await greet(await open_server(line, logins, {})) == "ada"
        known = find_server(line.partition("#")[0], logins, {})
        assert await greet(known) == "ada"
        other = ServerLogin(known.login.token, certificates.fingerprint("client.pem"))
        with pytest.raises(BackendError, match="not the one of the pairing"):
            await greet(KnownServer(known.origin, other))

    try:
        asyncio.run(run())
        assert [entry["event"] for entry in server.entries()].count("opened") == 2
    finally:
        server.close()
