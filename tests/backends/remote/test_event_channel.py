"""A proxy that blocks WebSockets: the client uses server-sent events and POST by itself, with the same messages."""

import asyncio

import pytest
from tests.backends.remote.test_cuts import Run, in_order
from tests.loop_server import make_plan

from ostler.backends.remote.backend import RemoteBackend
from ostler.backends.remote.event_channel import EventChannel
from ostler.backends.remote.tool_role import TAKE_SECONDS
from ostler.core.events import Notice
from ostler.core.sessions import TakeTools
from ostler.journal.memory_journal import MemoryJournal
from ostler.testing.session_fixture import open_test_session
from ostler.workspace.local_workspace import LocalWorkspace

pytestmark = pytest.mark.req("SV-3")


async def transcript(folder, *, blocked, cuts=0):
    folder.mkdir()
    run = Run(folder, cuts=cuts, largest=2000)
    run.proxy.blocks_websockets = blocked
    async with run:
        assert isinstance(run.backend._stream._websocket, EventChannel) is blocked
        await run.turns()
        run.check()
        return in_order(run.transcript()), run.proxy.cuts


async def test_transcript_is_that_of_a_websocket_also_after_cuts(tmp_path):
    expected, _ = await transcript(tmp_path / "websocket", blocked=False)
    assert await transcript(tmp_path / "events", blocked=True) == (expected, 0)
    found, cuts = await transcript(tmp_path / "cut", blocked=True, cuts=5)
    assert found == expected and cuts >= 3


async def test_second_tool_host_becomes_a_viewer(tmp_path):
    async with Run(tmp_path) as run:
        run.proxy.blocks_websockets = True
        plan = make_plan([], session_id=run.backend._position.session_id)
        backend = RemoteBackend(plan, run.server.connect(through_proxy=True))
        journal = MemoryJournal("session-2")
        viewer = await open_test_session(backend, [], LocalWorkspace(str(tmp_path)), journal=journal)
        assert isinstance(backend._stream._websocket, EventChannel)
        notices = [event.text for event in viewer.events() if isinstance(event, Notice)]
        assert any("runs the tools of this session" in text for text in notices)
        await viewer.aclose()


async def test_viewer_takes_the_tools_at_once(tmp_path):
    """The client connects again itself; it does not wait until the old event stream is silent for too long."""
    async with Run(tmp_path) as run:
        run.proxy.blocks_websockets = True
        plan = make_plan([], session_id=run.backend._position.session_id)
        backend = RemoteBackend(plan, run.server.connect(through_proxy=True))
        viewer = await open_test_session(backend, [], LocalWorkspace(str(tmp_path)), journal=MemoryJournal("session-2"))
        assert isinstance(backend._stream._websocket, EventChannel)
        async with asyncio.timeout(TAKE_SECONDS / 2):
            assert await viewer.apply(TakeTools())
        assert viewer.info.fact("tools") == "this machine"
        assert backend._stream._websocket._posts._idle_connection is None, "a connection that nothing uses again"
        await viewer.aclose()


async def test_deleted_session_ends_the_event_stream_for_good(tmp_path):
    run = Run(tmp_path)
    run.proxy.blocks_websockets = True
    async with run:
        hubs = run.server.hubs
        await hubs.delete(next(iter(hubs._hubs.values())))
        async with asyncio.timeout(20):
            while not run.backend._stream.error:
                await asyncio.sleep(0.01)
        assert "deleted" in str(run.backend._stream.error)
