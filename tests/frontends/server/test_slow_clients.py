"""Clients that do not read: they are closed with 1013, and never slow down the turn or the other clients."""

import json
import socket

import pytest
from tests.frontends.server.server_client import text_of
from websockets.exceptions import ConnectionClosed

from ostler.testing.model_server import text

req = pytest.mark.req
BIG = "".join(f"{number:04} " for number in range(4_000))  # four of them fit into the context


def narrow_socket(port):
    """Return a connection whose receive buffer is as small as the system allows."""
    narrow = socket.socket()
    narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
    narrow.connect(("127.0.0.1", port))
    return narrow


def read_to_the_end(connection):
    """Return the messages that arrive, and the code with which the connection is closed."""
    frames = []
    try:
        while True:
            frames.append(json.loads(connection.recv(10)))
    except ConnectionClosed as error:
        return frames, error.rcvd.code if error.rcvd else 1006


@req("SV-2", "SV-7")
def test_client_that_does_not_read_is_closed_and_resumes(models, serve):
    with models.playing(*[text(BIG, chunks=20) for _ in range(4)]) as model:
        server = serve(model, send_timeout=0.3, outbox_frames=4, outbox_bytes=50_000)
        client = server.client
        with client.host() as host:
            slow = client.raw(host.id, sock=narrow_socket(server.port), max_queue=1)
            slow.send('{"type": "hello", "clientVersion": "slow"}')
            created = json.loads(slow.recv(10))
            for _ in range(4):
                assert text_of(host.run_turn("go")) == BIG
            server.wait_for(lambda: server.hubs.connection_count("ada") == 1)
            frames, code = read_to_the_end(slow)
            assert code == 1013
            point = {"epoch": created["epoch"], "lastSeq": created["seq"]}
            deltas = [frame for frame in frames if frame["type"] == "assistant.delta"]
            if deltas:
                end = deltas[-1].get("offset", 0) + len(deltas[-1]["content"])
                point |= {"lastSeq": deltas[-1]["seq"], "messageId": deltas[-1]["messageId"], "offset": end}
            with client.viewer(host.id, resume=point) as again:
                while [f["type"] for f in (*frames, *again.frames)].count("assistant.done") < 4:
                    again.receive()
            assert text_of([*frames, *again.frames]) == BIG * 4


@req("SV-2")
def test_connection_of_a_client_that_never_reads_ends(models, serve, monkeypatch):
    monkeypatch.setattr("ostler.frontends.server.peer_protocols.CLOSING_SECONDS", 0.2)
    with models.playing(*[text(BIG, chunks=20) for _ in range(4)]) as model:
        server = serve(model, send_timeout=0.2, outbox_frames=4, outbox_bytes=50_000)
        with server.client.host() as host:
            narrow = narrow_socket(server.port)
            slow = server.client.raw(host.id, sock=narrow, max_queue=1, close_timeout=0.1)
            slow.send('{"type": "hello", "clientVersion": "slow"}')
            for _ in range(4):
                host.run_turn("go")
            server.wait_for(lambda: server.connections == 1)
            slow.close()


@req("SV-3")
def test_reader_of_events_that_does_not_read_is_closed(models, serve, monkeypatch):
    monkeypatch.setattr("ostler.frontends.server.peer_protocols.UNREAD_SECONDS", 0.3)
    with models.playing(*[text(BIG, chunks=20) for _ in range(4)]) as model:
        server = serve(model, outbox_frames=4, outbox_bytes=50_000, stream_gap=0.1)
        client = server.client
        with client.host() as host:
            path = f"/api/agent/sessions/{host.id}"
            assert client.request("POST", f"{path}/messages", {"type": "hello", "clientVersion": "slow"})[0] == 202
            slow = narrow_socket(server.port)
            slow.sendall(
                f"GET {path}/stream HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
                f"Authorization: Bearer {client.token}\r\n\r\n".encode()
            )
            for _ in range(4):
                assert text_of(host.run_turn("go")) == BIG
            server.wait_for(lambda: server.hubs.connection_count("ada") == 1)
            server.wait_for(lambda: server.connections == 1)
            slow.close()
