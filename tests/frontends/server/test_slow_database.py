"""A database that does not answer for a while delays only what waits for it."""

import asyncio
import threading
from contextlib import contextmanager

import pytest

pytestmark = pytest.mark.req("SV-9", "SV-12")


@contextmanager
def blocked_database(server):
    """Block the writing thread until the end of the context, which must not need it."""
    begun, gate = threading.Event(), threading.Event()

    def block(db):
        begun.set()
        return gate.wait(5)

    blocked = server.database.submit(block)
    assert begun.wait(10)
    try:
        yield
    finally:
        gate.set()
    assert blocked.result(10), "something waited for the database"


def wait_for_write(server):
    server.wait_for(lambda: server.database._tasks.qsize())


def in_loop(server, coroutine):
    return asyncio.run_coroutine_threadsafe(coroutine, server._loop)


@pytest.fixture
def server(models, serve):
    with models.playing() as model:
        yield serve(model)


def test_session_that_is_opened_delays_no_other_client(server):
    session_id = server.client.create()
    with blocked_database(server), server.client.raw(session_id) as viewer:
        viewer.send('{"type": "hello", "clientVersion": "0"}')
        wait_for_write(server)
        assert server.client.request("GET", "/healthz")[0] == 200


def test_session_that_is_closed_delays_no_other_client(server):
    host = server.client.host()
    host.cut()
    with blocked_database(server):
        hub = in_loop(server, server.hubs.get("ada", host.id)).result(10)
        closing = in_loop(server, hub.close_session())
        wait_for_write(server)
        assert server.client.request("GET", "/healthz")[0] == 200
    closing.result(10)


def test_session_whose_opening_was_given_up_can_be_opened_again(server):
    session_id = server.client.create()
    hub = in_loop(server, server.hubs.get("ada", session_id)).result(10)
    with blocked_database(server):
        opening = in_loop(server, hub.open_session())
        wait_for_write(server)
        opening.cancel()
    holder = "SELECT holder, epoch FROM sessions"
    server.wait_for(lambda: server.database.read(lambda db: db.execute(holder).fetchone()) == ("", 2))
    with server.client.viewer(session_id) as viewer:
        assert viewer.created["type"] == "session.created"
