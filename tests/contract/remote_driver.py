"""Driver for an Ostler server: a scripted server behind a real WebSocket, which calls the tools of the scenario."""

import asyncio
import os
from types import SimpleNamespace

from ostler.backends.remote.backend import RemoteBackend
from ostler.backends.remote.plan import RemotePlan
from ostler.backends.remote.server import RemoteServer, parse_server_url
from ostler.backends.remote.stream import RetryDelays
from ostler.core.tools import ToolCall
from ostler.http.dialer import Dialer
from ostler.testing.fake_tool import FakeTool
from ostler.testing.frame_server import FrameServer


class ServedBackend:
    """A remote backend with its server, which starts when the session is opened."""

    def __init__(self, server, tools):
        self.server = server
        self.leaves_server = False
        self._tools = tools

    async def open(self, start, context):
        if not self.server.url:
            await self.server.start()
        address = parse_server_url(self.server.url)
        plan = RemotePlan(
            "test",
            "here",
            lambda: self._tools,
            session_id=address.session_id,
            delays=RetryDelays(0.01, 0.05),
        )
        self._backend = RemoteBackend(plan, RemoteServer(address, Dialer(address.origin)))
        self.context = SimpleNamespace(remote_turn_started=self._start_far_turn)
        return await self._backend.open(start, context)

    def _start_far_turn(self, prompt):
        """Let another client of the server start a turn, after the local one if the script has two."""

        async def start():
            if len(self.server.turns) > 1:
                await self.server.received.wait()
            self.server.receive(prompt)

        self._starting = asyncio.create_task(start())

    async def run_turn(self, prompt):
        return await self._backend.run_turn(prompt)

    async def apply(self, change):
        return await self._backend.apply(change)

    async def aclose(self):
        await self._backend.aclose()
        if not self.leaves_server:
            await self.server.stop()


class RemoteDriver:
    """A server that follows the script of a scenario."""

    name = "remote"
    cannot: dict[str, str] = {}

    tool = FakeTool

    def __init__(self, server=None):
        self._server = server or FrameServer()

    def backend(self, turns, tools):
        self._server.turns += [_act(moves) for moves in turns]
        self._backend = ServedBackend(self._server, tools)
        return self._backend

    def successor(self):
        """Return the driver of another process that uses the same server. This one can send nothing more."""
        self._backend.leaves_server = True
        self._backend._backend._stream._websocket.send = lambda text: None
        return type(self)(self._server)

    def heard(self):
        message = self._server.messages[-1]
        return "\n".join([*message.notes, message.content])

    def finish(self):
        assert self._server.turns == []


def _act(moves):
    async def act(turn):
        for move in moves:
            match type(move).__name__:
                case "Say":
                    turn.say(move.text)
                case "Hold":
                    await move.until.wait()
                case "Crash":
                    turn.fail("the connection was lost")
                case "Calls":
                    calls = (
                        ToolCall(call.id or f"call-{os.urandom(4).hex()}", call.tool, dict(call.arguments))
                        for call in move.calls
                    )
                    await turn.call(*calls)

    return act
