"""Timed reads of a socket connection."""

import asyncio
from types import SimpleNamespace

from ostler.http.socket_connection import SocketConnection


async def test_timer_of_an_earlier_read_does_not_end_an_unlimited_read():
    connection = SocketConnection()
    connection.transport = SimpleNamespace(abort=lambda: None)
    loop = asyncio.get_running_loop()
    loop.call_soon(connection.data_received, b"first")
    assert await connection.read(0.01) == b"first"
    loop.call_later(0.05, connection.data_received, b"second")
    assert await connection.read() == b"second"
    connection.abort()


async def test_read_returns_none_on_timeout():
    connection = SocketConnection()
    connection.transport = SimpleNamespace(abort=lambda: None)
    assert await connection.read(0.01) is None
    connection.connection_lost(None)
    assert await connection.read(0.01) == b""
