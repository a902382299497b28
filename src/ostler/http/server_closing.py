"""Closes servers of asyncio without losing connections that they have just accepted."""

import asyncio
from collections.abc import Collection, Iterable
from typing import Protocol

STEPS = 3  # of the event loop, from an accepted connection to its running task


class _ListeningSocket(Protocol):
    def fileno(self) -> int: ...


async def stop_accepting(listeners: Iterable[_ListeningSocket]) -> None:
    """Accept no more connections, and wait until those that were accepted are known to their server.

    If a server of asyncio is closed before, such a connection is neither served nor closed.
    """
    loop = asyncio.get_running_loop()
    for listener in listeners:
        loop.remove_reader(listener.fileno())
    for _ in range(STEPS):
        await asyncio.sleep(0)


async def close_server(server: asyncio.Server, tasks: Collection[asyncio.Task[None]]) -> None:
    """Stop listening and cancel the tasks of the connections, also of those that were accepted just now."""
    await stop_accepting(server.sockets)
    server.close()
    for task in tuple(tasks):
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await server.wait_closed()
