"""Connections without a request do not stay open."""

import socket

import pytest
from tests.frontends.server.guarded_server import GuardedServer

from ostler.frontends.server import peer_protocols

pytestmark = pytest.mark.req("SV-5")


@pytest.fixture
def impatient_server(tmp_path, monkeypatch):
    monkeypatch.setattr(peer_protocols, "HEAD_SECONDS", 0.2)
    server = GuardedServer(tmp_path)
    yield server
    server.close()


def read_to_the_end(connection):
    data = b""
    try:
        while part := connection.recv(65536):
            data += part
    except ConnectionResetError:
        pass
    return data


@pytest.mark.parametrize("sent", [b"", b"GET", b"GET /healthz HTTP/1.1\r\nHost: x\r\n"])
def test_client_that_sends_no_complete_head_is_disconnected(impatient_server, sent):
    with socket.create_connection(("127.0.0.1", impatient_server.port), 10) as connection:
        connection.sendall(sent)
        assert read_to_the_end(connection) == b""


def test_incomplete_head_after_a_request_is_also_ended(impatient_server):
    head = f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{impatient_server.port}\r\n".encode()
    with socket.create_connection(("127.0.0.1", impatient_server.port), 10) as connection:
        connection.sendall(head + b"\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        connection.sendall(head)
        connection.settimeout(4)  # less than the time after which an idle connection is closed
        assert b"HTTP/1.1" not in read_to_the_end(connection)


def test_open_websocket_outlives_the_limit(impatient_server):
    from tests.frontends.server.test_authentication import open_socket

    token = impatient_server.accounts.issue("ada").text
    with open_socket(impatient_server, token) as websocket:
        assert websocket.recv(10) == "ada"
        with pytest.raises(TimeoutError):
            websocket.recv(0.5)  # longer than the limit for a head
        websocket.send("still open")
        assert websocket.recv(10) == "still open"
