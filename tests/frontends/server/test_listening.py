"""Where a server may listen: beyond loopback only with TLS or an explicit flag, and never without accounts."""

import hashlib
import ipaddress
import socket
import ssl

import pytest
from tests.certificates import Certificates

from ostler.core.errors import UsageError
from ostler.frontends.server.listening import (
    ListenOptions,
    allowed_hosts,
    certificate_fingerprint,
    check_accounts,
    check_listening,
    listen_tcp,
    split_address,
)
from ostler.storage.sqlite_accounts import SqliteAccounts
from ostler.storage.sqlite_database import SqliteDatabase

pytestmark = pytest.mark.req("SV-5")
BEYOND_LOOPBACK = [
    "0.0.0.0",
    "::",
    "",
    "192.168.1.5",
    "example.org",
    "10.0.0.1",
    "localhost.example.org",
    "127.evil.org",
]


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.8.8.8"])
def test_loopback_needs_no_tls(host):
    assert check_listening(ListenOptions(host=host)) is None


@pytest.mark.parametrize("host", BEYOND_LOOPBACK)
def test_other_addresses_are_refused_without_tls(host):
    with pytest.raises(UsageError, match="--tls-cert"):
        check_listening(ListenOptions(host=host))


@pytest.mark.parametrize("host", BEYOND_LOOPBACK)
def test_other_addresses_are_possible_with_an_explicit_flag(host):
    assert check_listening(ListenOptions(host=host, allow_plain=True)) is None


def test_tls_files_allow_other_addresses_and_work(tmp_path):
    files = Certificates(tmp_path)
    context = check_listening(
        ListenOptions(host="0.0.0.0", certificate=files.path("server.pem"), key=files.path("server.key"))
    )
    client = ssl.create_default_context(cafile=files.path("ca.pem"))
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    a = client.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    b = context.wrap_bio(outgoing, incoming, server_side=True)
    for side in (a, b, a, b):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    assert a.version() in ("TLSv1.2", "TLSv1.3")


@pytest.mark.parametrize(
    "options", [{"certificate": "x.pem"}, {"key": "x.key"}, {"certificate": "x.pem", "key": "x.key"}]
)
def test_missing_tls_files_are_refused_also_with_the_flag(options):
    with pytest.raises(UsageError):
        check_listening(ListenOptions(host="0.0.0.0", allow_plain=True, **options))


def test_key_of_another_certificate_is_refused(tmp_path):
    files = Certificates(tmp_path)
    with pytest.raises(UsageError, match="cannot be used for TLS"):
        check_listening(ListenOptions(certificate=files.path("server.pem"), key=files.path("client.key")))


def test_server_without_valid_tokens_is_refused(tmp_path):
    database = SqliteDatabase(tmp_path / "ostler.db")
    accounts = SqliteAccounts(database)
    try:
        with pytest.raises(UsageError, match="ostler serve token issue"):
            check_accounts(accounts)
        issued = accounts.issue("ada")
        check_accounts(accounts)
        accounts.revoke(issued.token.id)
        with pytest.raises(UsageError):
            check_accounts(accounts)
        check_accounts(accounts, has_pairing=True)
    finally:
        database.close()


def test_names_of_a_server():
    loopback = {"localhost:8000", "127.0.0.1:8000", "[::1]:8000"}
    assert allowed_hosts("127.0.0.1", 8000) == loopback
    machine = socket.gethostname().lower()
    assert allowed_hosts("0.0.0.0", 8000, ["Team.example"]) == loopback | {"team.example", f"{machine}:8000"}
    assert allowed_hosts("10.0.0.5", 8000) == {"10.0.0.5:8000", f"{machine}:8000"}
    assert allowed_hosts("10.0.0.5", 443) == {"10.0.0.5:443", "10.0.0.5", f"{machine}:443", machine}
    assert allowed_hosts("fe80::1", 8000) == {"[fe80::1]:8000", f"{machine}:8000"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:0", ("127.0.0.1", 0)),
        ("[::1]:8034", ("::1", 8034)),
        (":80", ("", 80)),
        ("a.b:65535", ("a.b", 65535)),
    ],
)
def test_address_is_host_and_port(text, expected):
    assert split_address(text) == expected


@pytest.mark.parametrize(
    "text", ["", "127.0.0.1", "::1:80", "host:", "host:x", "host:65536", "a b:1", "host:-1", "[x]:1"]
)
def test_other_addresses_are_refused(text):
    with pytest.raises(UsageError, match="HOST:PORT"):
        split_address(text)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_loopback_socket_is_reachable_on_loopback_only(host):
    with listen_tcp(ListenOptions(host=host)) as listener:
        assert ipaddress.ip_address(listener.getsockname()[0]).is_loopback
        with socket.create_connection(listener.getsockname()[:2], 10):
            pass


def test_localhost_that_means_another_machine_is_refused(monkeypatch):
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.1", 0))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *arguments, **options: found)
    with pytest.raises(UsageError, match="not on this machine"):
        listen_tcp(ListenOptions(host="localhost"))


def test_used_port_is_reported():
    with listen_tcp(ListenOptions()) as listener, pytest.raises(UsageError, match="cannot listen"):
        listen_tcp(ListenOptions(port=listener.getsockname()[1]))


def test_fingerprint_is_that_of_the_first_certificate(tmp_path):
    files = Certificates(tmp_path)
    server, authority = (tmp_path / "server.pem").read_text(), (tmp_path / "ca.pem").read_text()
    (tmp_path / "chain.pem").write_text(f"a comment\n{server}{authority}")
    expected = hashlib.sha256(ssl.PEM_cert_to_DER_cert(server)).hexdigest()
    assert certificate_fingerprint(files.path("chain.pem")) == expected
    for name in ("server.key", "missing.pem"):
        with pytest.raises(UsageError, match="PEM"):
            certificate_fingerprint(files.path(name))
