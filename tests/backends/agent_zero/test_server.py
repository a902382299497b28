"""Requests to a server of the message API."""

import asyncio

import pytest

from ostler.backends.agent_zero.server import ZeroServer, parse_server_url
from ostler.core.errors import BackendError
from ostler.http.server_closing import close_server

pytestmark = pytest.mark.req("AZ-1")
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"


async def test_message_is_not_posted_twice_if_the_server_closes_the_connection():
    """The first answer leaves a connection that could be used again; the server gets the message and closes it."""
    received, closed, tasks = [], asyncio.Event(), set()

    async def serve(reader, writer):
        tasks.add(asyncio.current_task())
        try:
            while not received or not received[-1].endswith(b"api_message"):
                head = await reader.readuntil(b"\r\n\r\n")
                received.append(head.split()[1])
                await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split()[0]))
                if not received[-1].endswith(b"api_message"):
                    writer.write(ANSWER)
            closed.set()
        except (asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # a connection that was not used
        finally:
            writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    origin, path = parse_server_url(f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/api_message")
    server = ZeroServer(origin, path)
    await server.call("api_log_get", {"context_id": "x"})
    response = await server.send_message({"message": "once"}, "application/json")
    with pytest.raises(BackendError):
        await response.read_head(5)
    response.close()
    await server.aclose()
    await asyncio.wait_for(closed.wait(), 5)
    await close_server(listener, tasks)
    assert received == [b"/api_log_get", b"/api_message"]
