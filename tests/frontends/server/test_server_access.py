"""The sockets, the pairing line and the names of a server, from its options."""

import json
import os
import re
import stat

import pytest
from tests.certificates import Certificates

from ostler.app.server_storage import open_audit_log
from ostler.core.errors import UsageError
from ostler.frontends.server.listening import ListenOptions
from ostler.frontends.server.server_access import AccessOptions, ServerAccess, local_user
from ostler.storage.sqlite_accounts import SqliteAccounts
from ostler.storage.sqlite_database import SqliteDatabase
from ostler.wire.pairing import parse_pairing_line

pytestmark = pytest.mark.req("SV-5")


@pytest.fixture
def accounts(tmp_path):
    database = SqliteDatabase(tmp_path / "db")
    yield SqliteAccounts(database)
    database.close()


@pytest.fixture
def open_access(accounts, tmp_path):
    opened = []

    def make(**options):
        access = ServerAccess(AccessOptions(**options), accounts, open_audit_log(str(tmp_path / "db")))
        opened.append(access)
        return access

    yield make
    for access in opened:
        access.close()


def pairing_line(access):
    (text,) = re.findall(r"ostler connect '(.*)'", "\n".join(access.announcement()))
    return parse_pairing_line(text)


def test_line_names_the_real_port_and_its_code_works_once(open_access, accounts, tmp_path):
    access = open_access()
    port = access.sockets[0].getsockname()[1]
    line = pairing_line(access)
    assert (line.url, line.fingerprint) == (f"http://127.0.0.1:{port}", "")
    assert accounts.exchange(line.code).token.user == local_user()
    assert accounts.exchange(line.code) is None
    assert json.loads((tmp_path / "db.audit.jsonl").read_text())["event"] == "pairing.opened"
    assert stat.S_IMODE((tmp_path / "db.audit.jsonl").stat().st_mode) == 0o600


def test_line_has_the_fingerprint_of_the_certificate(open_access, tmp_path):
    files = Certificates(tmp_path)
    tcp = ListenOptions(certificate=files.path("server.pem"), key=files.path("server.key"))
    access = open_access(tcp=tcp)
    line = pairing_line(access)
    assert line.url.startswith("https://127.0.0.1:")
    assert len(line.fingerprint) == 64
    assert access.tls_files == (files.path("server.pem"), files.path("server.key"))


def test_line_names_the_url_of_a_proxy(open_access):
    access = open_access(urls=("https://team.example", "http://10.0.0.5:81"))
    assert pairing_line(access).url == "https://team.example:443"


@pytest.mark.parametrize(
    "options",
    [
        {"tcp": ListenOptions(host="0.0.0.0")},
        {"tcp": ListenOptions(host="")},
        {"has_pairing": False},
        {"urls": ("https://host/path",)},
        {"urls": ("https://user:secret@host",)},
        {"origins": ("*",)},
        {"origins": ("null",)},
        {"origins": ("https://*.example",)},
        {"origins": ("https://host/",)},
        {"origins": ("https://host", "")},
    ],
)
def test_unsafe_options_open_nothing(open_access, options):
    with pytest.raises(UsageError):
        open_access(**options)


def test_server_for_other_machines_needs_only_one_of_tls_and_the_flag(open_access):
    access = open_access(tcp=ListenOptions(host="0.0.0.0", allow_plain=True))
    assert len(access.sockets) == 1


def test_unix_socket_needs_no_port_and_no_accounts(open_access, tmp_path_factory):
    path = tmp_path_factory.mktemp("s") / "o"
    access = open_access(tcp=None, unix=str(path), has_pairing=False)
    assert access.announcement() == [f"listening at {path}"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    access.close()
    assert not path.exists()


def test_unix_socket_with_tls_is_refused(open_access, tmp_path):
    files = Certificates(tmp_path)
    tcp = ListenOptions(certificate=files.path("server.pem"), key=files.path("server.key"))
    with pytest.raises(UsageError, match="TLS and a Unix socket"):
        open_access(tcp=tcp, unix=str(tmp_path / "s"))


def test_failed_unix_socket_closes_the_port(open_access, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError):
        open_access(unix=str(tmp_path / "file"))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Ada", "ada"),
        ("DOM\\ada", "dom-ada"),
        ("_svc", "svc"),
        ("", f"uid-{os.geteuid()}"),
        ("ü", f"uid-{os.geteuid()}"),
    ],
)
def test_name_of_the_local_user_is_a_valid_account(monkeypatch, accounts, name, expected):
    monkeypatch.setattr("getpass.getuser", lambda: name)
    assert local_user() == expected
    accounts.issue(local_user())
