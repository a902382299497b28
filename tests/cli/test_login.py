"""`ostler login` and `logout` against a real guarded server, with and without TLS."""

import stat

import pytest
from tests.frontends.server.guarded_server import GuardedServer

from ostler.core.credentials import CredentialName
from ostler.credentials.store import LocalCredentials

pytestmark = pytest.mark.req("SV-5")


@pytest.fixture
def server(tmp_path):
    server = GuardedServer(tmp_path / "server")
    server.url = f"http://127.0.0.1:{server.port}"
    yield server
    server.close()


@pytest.fixture
def tls_server(tmp_path, certificates):
    server = GuardedServer(tmp_path / "server", tls=(certificates.path("server.pem"), certificates.path("server.key")))
    server.url = f"https://127.0.0.1:{server.port}"
    yield server
    server.close()


def stored(ostler):
    return {
        name.account: LocalCredentials(ostler.home / ".ostler").get(name)
        for name in LocalCredentials(ostler.home / ".ostler").names()
    }


def test_token_is_stored_after_the_server_accepted_it_and_revoked_by_logout(ostler, server):
    token = server.accounts.issue("ada").text
    done = ostler("login", server.url, stdin=token + "\n")
    assert (done.code, done.stdout) == (0, f"logged in to {server.url}\n"), done.stderr
    assert token in stored(ostler)[server.url]
    assert stat.S_IMODE((ostler.home / ".ostler" / "credentials.json").stat().st_mode) == 0o600
    assert ostler("login").stdout == f"{server.url}\n"
    done = ostler("logout", server.url)
    assert (done.code, done.stdout) == (0, "logged out: its token was revoked\n"), done.stderr
    assert stored(ostler) == {}
    assert server.request("GET", "/api/x", token)[0] == 401
    assert token not in done.stdout + done.stderr


@pytest.mark.parametrize("secret", ["", "x", "ostler_" + "0" * 16 + "_" + "0" * 64, "AAAA-AAAA-AAAA-AAAA"])
def test_refused_secret_is_not_stored(ostler, server, secret):
    done = ostler("login", server.url, stdin=secret + "\n")
    assert done.code == 2
    assert stored(ostler) == {}


def test_pairing_line_needs_no_input(ostler, server):
    code = server.accounts.open_pairing("ada", 60)
    done = ostler("login", f"{server.url}#{code}")
    assert (done.code, done.stdout) == (0, f"logged in to {server.url} as ada\n"), done.stderr
    again = ostler("login", f"{server.url}#{code}")
    assert again.code == 2
    assert "works once" in again.stderr


def test_typed_code_works_like_a_line(ostler, server):
    code = server.accounts.open_pairing("ada", 60)
    assert ostler("login", server.url, stdin=code.lower() + "\n").code == 0


def test_private_certificate_is_accepted_by_its_fingerprint_only(ostler, tls_server, certificates):
    code = tls_server.accounts.open_pairing("ada", 60)
    done = ostler("login", f"{tls_server.url}#{code}")
    assert done.code != 0
    assert "is not trusted" in done.stderr and "whole pairing line" in done.stderr
    done = ostler("login", f"{tls_server.url.replace('https', 'http')}#{code}")
    assert "use https:// in its URL" in done.stderr
    done = ostler("login", f"{tls_server.url}#{code}.sha256-{certificates.fingerprint('client.pem')}")
    assert done.code != 0
    assert "not the one of the pairing" in done.stderr
    assert tls_server.audit_file.exists() is False
    done = ostler("login", f"{tls_server.url}#{code}.sha256-{certificates.fingerprint()}")
    assert done.code == 0, done.stderr
    assert ostler("logout", tls_server.url).stdout == "logged out: its token was revoked\n"


def test_certificate_of_a_known_authority_needs_no_fingerprint(ostler, tls_server, certificates):
    token = tls_server.accounts.issue("ada").text
    env = {"SSL_CERT_FILE": certificates.path("ca.pem")}
    assert ostler("login", tls_server.url, stdin=token, env=env).code == 0


@pytest.mark.parametrize(
    "url",
    [
        "http://192.0.2.1:8034",
        "http://example.org",
        "http://127.0.0.1.example.org:80",
        "ftp://127.0.0.1",
        "http://127.0.0.1/path",
        "http://127.0.0.1?token=x",
        "http://ada:secret@127.0.0.1",
        "http://127.0.0.1#x",
    ],
)
def test_unsafe_urls_are_refused_before_anything_is_sent(ostler, url):
    done = ostler("login", url, stdin="ostler_" + "0" * 16 + "_" + "0" * 64)
    assert done.code == 2
    assert "secret" not in done.stderr


def test_unreachable_server_stores_nothing_and_logout_still_deletes(ostler, server):
    token = server.accounts.issue("ada").text
    assert ostler("login", server.url, stdin=token).code == 0
    server.accounts.revoke(token.split("_")[1])
    assert ostler("logout", server.url).code == 0
    assert ostler("logout", server.url).code == 2
    done = ostler("login", "http://127.0.0.1:1", stdin=token)
    assert done.code == 1
    assert "refused" in done.stderr
    assert stored(ostler) == {}


def test_key_of_agent_zero_is_stored_by_the_same_command(ostler):
    done = ostler("login", "--agent-zero", "http://localhost:50001/api_message", stdin="key\n")
    assert (done.code, done.stdout) == (0, "stored the key of localhost:50001\n")
    store = LocalCredentials(ostler.home / ".ostler")
    assert store.get(CredentialName("agent_zero", "localhost:50001")) == "key"
    assert ostler("logout", "--agent-zero", "localhost:50001").stdout == "deleted the key or login of localhost:50001\n"
    assert ostler("logout", "--agent-zero", "localhost:50001").stdout == "there is no key or login of localhost:50001\n"
