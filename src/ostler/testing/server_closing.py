"""Closes a server of asyncio with all its connections."""

import asyncio
from collections.abc import Collection

STEPS = 3  # of the event loop, from an accepted connection to its running task


async def close_server(server: asyncio.Server, tasks: Collection[asyncio.Task[None]]) -> None:
    """Stop listening and cancel the tasks of the connections, also of those that were accepted just now."""
    server.close()
    for _ in range(STEPS):
        await asyncio.sleep(0)
    for task in tuple(tasks):
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await server.wait_closed()
