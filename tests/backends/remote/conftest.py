"""A session with a server whose turns and messages a test supplies, over a real WebSocket."""

from contextlib import asynccontextmanager

import pytest
from tests.loop_server import make_plan

from ostler.backends.remote.backend import RemoteBackend
from ostler.backends.remote.server import RemoteServer, parse_server_url
from ostler.http.dialer import Dialer
from ostler.testing.fake_tool import FakeTool
from ostler.testing.frame_server import FrameServer
from ostler.testing.session_fixture import ALLOW_ALL, open_test_session
from ostler.workspace.local_workspace import LocalWorkspace


class Connected:
    """A client session, its server and its tool."""

    def __init__(self, server, session, backend, tool):
        self.server, self.session, self.backend, self.tool = server, session, backend, tool

    def results(self):
        return {result.tool_call_id: result for result in self.server.results}


def make_backend(server, tools, **plan):
    address = parse_server_url(server.url)
    return RemoteBackend(
        make_plan(tools, session_id=address.session_id, **plan), RemoteServer(address, Dialer(address.origin))
    )


@pytest.fixture
def connect(tmp_path):
    """`async with connect(act, …) as connected` opens a session in which the server's turns are the given functions."""

    @asynccontextmanager
    async def open_session(*turns, tool=None, policy=ALLOW_ALL, journal=None, **options):
        tool = tool or FakeTool("probe")
        async with FrameServer(turns, **options) as server:
            backend = make_backend(server, [tool.spec])
            workspace = LocalWorkspace(str(tmp_path))
            session = await open_test_session(backend, [tool], workspace, policy=policy, journal=journal)
            try:
                yield Connected(server, session, backend, tool)
            finally:
                await session.aclose()

    return open_session
