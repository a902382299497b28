"""A server that is closed while a connection arrives also closes that connection."""

import asyncio
import contextlib
import gc
import socket

from ostler.http.server_closing import close_server


async def test_connection_that_is_accepted_while_the_server_closes_is_closed(monkeypatch):
    tasks = set()

    async def serve(reader, writer):
        tasks.add(asyncio.current_task())
        try:
            await reader.read(1)
        except asyncio.CancelledError:
            writer.transport.abort()

    loop = asyncio.get_running_loop()
    accept, closing = loop._accept_connection, loop.create_future()

    def close_and_accept(*arguments):
        closing.set_result(loop.create_task(close_server(server, tasks)))  # runs before the connection has a transport
        accept(*arguments)

    monkeypatch.setattr(loop, "_accept_connection", close_and_accept)
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    with socket.create_connection(server.sockets[0].getsockname()) as client:
        await (await closing)
        client.settimeout(5)
        with contextlib.suppress(ConnectionResetError):
            assert await asyncio.to_thread(client.recv, 1) == b""
    gc.collect()  # an unclosed socket is a warning here, and a warning is an error
