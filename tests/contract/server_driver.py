"""Driver for the whole way: remote backend, a real server on loopback, and the engine there with a scripted model."""

import asyncio

from tests.loop_server import LoopServer, make_plan

from ostler.backends.remote.backend import RemoteBackend
from ostler.wire.client_frames import UserMessageFrame


class ServedEngine:
    """A remote backend whose server starts when the session is opened."""

    def __init__(self, driver, tools):
        self._driver = driver
        self._tools = tools
        self.context = self  # the scenarios start a turn of the remote side here

    async def open(self, start, context):
        self.server = LoopServer(self._driver.folder / ".server", self._driver.make_model)
        await self.server.start()
        self._backend = RemoteBackend(make_plan(self._tools), self.server.connect())
        return await self._backend.open(start, context)

    def remote_turn_started(self, prompt):
        """Let another client of the server send a message, after that of the local turn if the script has two turns."""
        hub = next(iter(self.server.hubs._hubs.values()))

        async def send():
            if self._driver.turns > 1:
                await self._driver.asked.wait()
            await hub.queue.receive(UserMessageFrame(prompt.text, client_message_id=prompt.id), "ada")

        self._sending = asyncio.create_task(send())

    async def run_turn(self, prompt):
        return await self._backend.run_turn(prompt)

    async def apply(self, change):
        return await self._backend.apply(change)

    async def aclose(self):
        await self._backend.aclose()
        await self.server.stop()
