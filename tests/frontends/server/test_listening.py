"""Where a server may listen: beyond loopback only with TLS or an explicit flag, and never without accounts."""

import ssl

import pytest
from tests.certificates import Certificates

from ostler.core.errors import UsageError
from ostler.frontends.server.listening import ListenOptions, allowed_hosts, check_accounts, check_listening
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
    assert allowed_hosts("0.0.0.0", 8000, ["Team.example"]) == loopback | {"team.example"}
    assert allowed_hosts("10.0.0.5", 8000) == {"10.0.0.5:8000"}
    assert allowed_hosts("10.0.0.5", 443) == {"10.0.0.5:443", "10.0.0.5"}
    assert allowed_hosts("fe80::1", 8000) == {"[fe80::1]:8000"}
