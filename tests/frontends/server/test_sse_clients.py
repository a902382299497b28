"""Clients with server-sent events: each of their connections is detached, whatever happens while it is attached."""

import asyncio

import pytest
from starlette.requests import Request
from tests.backends.remote.test_cuts import Run

from ostler.frontends.server.sse_route import SseClient, SseRoutes
from ostler.wire.client_frames import Hello

pytestmark = pytest.mark.req("SV-3")


async def test_two_requests_at_the_same_time_attach_one_connection(tmp_path):
    async with Run(tmp_path) as run:
        hub = next(iter(run.server.hubs._hubs.values()))
        await hub.close_session()  # so that attaching takes time
        (host,) = hub.connections
        client = SseClient(hub)
        await asyncio.gather(client.attach(Hello(), "ada"), client.attach(Hello(), "ada"))
        assert hub.connections == [host, client.connection]
        client.end()
        assert hub.connections == [host]


@pytest.mark.parametrize("scopes", [{"read"}, {"read", "write"}], ids=["viewer", "before its hello"])
async def test_client_that_is_gone_before_the_first_event_is_forgotten(tmp_path, scopes):
    async with Run(tmp_path, stream_gap=0.01) as run:
        hubs = run.server.hubs
        hub = next(iter(hubs._hubs.values()))
        routes, before = SseRoutes(hubs), list(hub.connections)
        scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "query_string": b"connection=a"}
        state = {"user": "ada", "scopes": frozenset(scopes)}
        response = await routes.stream(Request({**scope, "path_params": {"id": hub.id}, "state": state}))

        async def disconnected():
            return {"type": "http.disconnect"}

        async def send(message):
            await asyncio.sleep(0)

        await response(scope, disconnected, send)
        async with asyncio.timeout(10):
            while hub.connections != before:
                await asyncio.sleep(0.01)
        assert all(client.connection and client.connection.close_code for client in routes._clients.values())


async def test_connection_of_a_hello_that_ends_the_stream_is_detached(tmp_path):
    async with Run(tmp_path, stream_gap=0.01) as run:
        hubs = run.server.hubs
        hub = next(iter(hubs._hubs.values()))
        routes, before, opened = SseRoutes(hubs), list(hub.connections), asyncio.Event()
        scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "query_string": b"connection=a"}
        state = {"user": "ada", "scopes": frozenset({"read"})}
        response = await routes.stream(Request({**scope, "path_params": {"id": hub.id}, "state": state}))
        (client,) = routes._clients.values()

        async def send(message):
            opened.set()

        streaming = asyncio.create_task(response(scope, asyncio.Event().wait, send))
        await opened.wait()
        await hub.close_session()  # so that attaching takes time
        await routes._hello(client, Hello(), "ada")
        async with asyncio.timeout(10):
            await streaming
            while hub.connections != before:
                await asyncio.sleep(0.01)
