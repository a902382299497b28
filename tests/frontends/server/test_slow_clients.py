"""Clients that do not read: they are closed with 1013, and never slow down the turn or the other clients."""

import socket

import pytest
from tests.frontends.server.server_client import text_of

from ostler.testing.model_server import text

req = pytest.mark.req


def narrow_socket(port):
    """Return a connection whose receive buffer is as small as the system allows."""
    narrow = socket.socket()
    narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
    narrow.connect(("127.0.0.1", port))
    return narrow


@req("SV-2")
@pytest.mark.xfail(run=False, reason="fails, cause not found yet")
def test_client_that_does_not_read_is_closed_and_others_go_on(models, serve):
    big = "x" * 20_000
    with models.playing(*[text(big, chunks=4) for _ in range(6)]) as model:
        server = serve(model, send_timeout=0.5, outbox_frames=4, outbox_bytes=100_000)
        client = server.client
        with client.host() as host:
            slow = client.raw(host.id, sock=narrow_socket(server.port), max_queue=1)
            slow.send('{"type": "hello", "clientVersion": "slow"}')
            for _ in range(6):
                assert text_of(host.run_turn("go")) == big
            assert _close_code(slow) in (1013, 1006)
            hubs = server.hubs
            assert hubs.connection_count("ada") == 1


def _close_code(connection):
    from websockets.exceptions import ConnectionClosed

    try:
        while True:
            connection.recv(10)
    except ConnectionClosed as error:
        return error.rcvd.code if error.rcvd else 1006
