"""A Unix socket is for the user who runs the server, and for nobody else."""

import http.client
import os
import socket
import stat
from pathlib import Path

import pytest
from tests.frontends.server.guarded_server import GuardedServer
from websockets.exceptions import InvalidStatus
from websockets.sync.client import unix_connect

from ostler.core.errors import UsageError
from ostler.frontends.server import peer_protocols
from ostler.frontends.server.unix_socket import close_unix, listen_unix, peer_uid

pytestmark = pytest.mark.req("SV-5")


@pytest.fixture
def folder(tmp_path_factory):
    return Path(tmp_path_factory.mktemp("s"))  # short: the length of a socket's path is limited


@pytest.fixture
def unix_server(tmp_path, folder):
    server = GuardedServer(tmp_path, unix=folder / "ostler.sock")
    server.unix_path = str(folder / "ostler.sock")
    yield server
    server.close()


def request(path, target="/api/x", headers=()):
    connection = http.client.HTTPConnection("localhost", timeout=10)
    connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.sock.settimeout(10)
    connection.sock.connect(path)
    try:
        connection.request("GET", target, headers=dict(headers))
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_owner_needs_no_token(unix_server):
    assert request(unix_server.unix_path) == (200, '{"user":"owner"}')
    with unix_connect(unix_server.unix_path, uri="ws://localhost/ws") as websocket:
        assert websocket.recv(10) == "owner"
    assert unix_server.entries()[0]["client"] == "unix"


def test_port_of_the_same_server_still_needs_a_token(unix_server):
    assert unix_server.request("GET", "/api/x")[0] == 401
    for header in ("ostler.peer_uid", "X-Peer-Uid"):
        assert unix_server.request("GET", "/api/x", headers=[(header, str(os.geteuid()))])[0] == 401


def test_origin_is_refused(unix_server):
    assert request(unix_server.unix_path, headers=[("Origin", "https://evil.example")])[0] == 403
    with (
        pytest.raises(InvalidStatus),
        unix_connect(unix_server.unix_path, uri="ws://localhost/ws", origin="https://evil.example"),
    ):
        pass


def test_peer_with_another_uid_is_disconnected(unix_server, monkeypatch, caplog):
    monkeypatch.setattr(peer_protocols, "peer_uid", lambda connection: os.geteuid() + 1)
    with pytest.raises((ConnectionError, http.client.RemoteDisconnected)):
        request(unix_server.unix_path)
    assert unix_server.calls == []
    assert f"uid {os.geteuid() + 1} was refused" in caplog.text


def test_unknown_peer_is_disconnected(unix_server, monkeypatch):
    monkeypatch.setattr(peer_protocols, "peer_uid", lambda connection: None)
    with pytest.raises((ConnectionError, http.client.RemoteDisconnected)):
        request(unix_server.unix_path)
    assert unix_server.calls == []


def test_uid_of_the_peer_is_that_of_its_process():
    left, right = socket.socketpair(socket.AF_UNIX)
    with left, right:
        assert peer_uid(left) == os.geteuid()


def test_socket_is_private_whatever_the_umask(folder):
    previous = os.umask(0)
    try:
        listener = listen_unix(folder / "new" / "s")
    finally:
        assert os.umask(previous) == 0
    assert stat.S_IMODE((folder / "new" / "s").stat().st_mode) == 0o600
    assert stat.S_IMODE((folder / "new").stat().st_mode) == 0o700
    close_unix(listener, folder / "new" / "s")
    assert not (folder / "new" / "s").exists()


def test_socket_that_a_killed_server_left_is_replaced(folder):
    listen_unix(folder / "s").close()
    listener = listen_unix(folder / "s")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.connect(str(folder / "s"))
    listener.close()


def test_socket_of_a_running_server_is_not_replaced(folder):
    listener = listen_unix(folder / "s")
    with pytest.raises(UsageError, match="another server listens"):
        listen_unix(folder / "s")
    listener.close()


def test_files_and_links_are_not_replaced(folder):
    (folder / "file").write_text("kept")
    (folder / "link").symlink_to(folder / "file")
    for name in ("file", "link"):
        with pytest.raises(UsageError, match="not a socket of yours"):
            listen_unix(folder / name)
    assert (folder / "file").read_text() == "kept"


def test_folder_that_others_can_write_is_refused(folder):
    folder.chmod(0o777)
    with pytest.raises(UsageError, match="other users could replace"):
        listen_unix(folder / "s")


def test_path_that_is_too_long_is_refused(folder):
    with pytest.raises(UsageError, match="cannot listen on"):
        listen_unix(folder / ("x" * 200))
