"""A session with one driver's backend, for the scenarios that every backend must pass."""

import asyncio

from drivers import Calls

from ostler.core.events import ToolFinished
from ostler.testing.scripted_model import ScriptedCall
from ostler.testing.session_fixture import ALLOW_ALL, open_test_session
from ostler.workspace.local_workspace import LocalWorkspace

TIMEOUT = 60.0


class Scenario:
    """A session with one driver's backend, and its events so far."""

    def __init__(self, driver, tmp_path, tools=()):
        self.driver = driver
        driver.folder = tmp_path
        self.workspace = LocalWorkspace(str(tmp_path))
        self.tools = list(tools)
        self.events = []

    async def open(self, turns, *, policy=ALLOW_ALL, journal=None, options=None, takeover=False):
        backend = self.driver.backend(turns, [tool.spec for tool in self.tools])
        self.session = await open_test_session(
            backend,
            self.tools,
            self.workspace,
            policy=policy,
            journal=journal,
            options=options or {},
            takeover=takeover,
        )
        self.backend = backend
        self.reading = self.session.subscribe(since=2**62)
        return self

    async def until(self, kind, times=1):
        """Wait for the event that is number `times` of its kind, and return it."""
        async with asyncio.timeout(TIMEOUT):
            while len(found := [e for e in self.events if isinstance(e, kind)]) < times:
                self.events.append((await anext(self.reading)).event)
        return found[-1]

    async def close(self):
        await self.session.aclose()
        self.driver.finish()

    def results(self):
        return [e.result for e in self.session.events() if isinstance(e, ToolFinished)]


def single_call(tool, **arguments):
    return Calls((ScriptedCall(tool, arguments),))
