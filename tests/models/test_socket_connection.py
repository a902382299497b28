"""The receiving end of a connection: what has arrived, and what a silence means to whoever waits."""

import asyncio
from types import SimpleNamespace

from ostler.models.socket_connection import SocketConnection


async def test_a_timer_of_an_earlier_read_does_not_end_one_that_waits_for_good():
    wire = SocketConnection()
    wire.transport = SimpleNamespace(abort=lambda: None)
    loop = asyncio.get_running_loop()
    loop.call_soon(wire.data_received, b"first")
    assert await wire.read(0.01) == b"first"
    loop.call_later(0.05, wire.data_received, b"second")
    assert await wire.read() == b"second"
    wire.abort()


async def test_a_silence_is_told_to_whoever_asked_for_it():
    wire = SocketConnection()
    wire.transport = SimpleNamespace(abort=lambda: None)
    assert await wire.read(0.01) is None
    wire.connection_lost(None)
    assert await wire.read(0.01) == b""
