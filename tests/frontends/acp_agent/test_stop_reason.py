"""The face to its end: whenever the editor leaves, and when nothing can be made of what it sends."""

import asyncio
import contextlib
import json

import pytest
from tests.fake_services import FakeServices

from ostler.app.acp_agent import EditorWorkspaces, MultiFolderSessionManager
from ostler.app.run_options import RunOptions
from ostler.backends.scripted import ScriptedBackend
from ostler.core.events import TextDelta
from ostler.frontends.acp_agent.frontend import AcpAgentFrontend
from ostler.testing.model_server import ScriptedModelServer, calls, text
from ostler.testing.session_fixture import SingleSessionManager, open_test_session
from ostler.wire.jsonrpc_lines import MAX_LINE_BYTES
from ostler.workspace.local_workspace import LocalWorkspace

PATIENCE = 60
ASKING = calls([("write", {"path": "x", "content": "y"})])
STALLED = text("I am thinking", chunks=4).stall_after(3)


class FakeStreams:
    """Standard streams that a test holds in its hands."""

    def __init__(self):
        self.frames = []
        self._changed = asyncio.Event()
        self.ready = asyncio.Event()

    def start(self, feed, ended):
        self.feed, self.ended = feed, ended
        self.ready.set()

    def send(self, line):
        self.frames.append(json.loads(line))
        self._changed.set()

    def finish(self, seconds):
        """There is no pipe to wait for."""

    def ask(self, number, method, **params):
        frame = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self.feed(json.dumps(frame).encode() + b"\n")

    async def heard(self, so):
        """The first frame of which something is so."""
        async with asyncio.timeout(PATIENCE):
            while not (found := [frame for frame in self.frames if so(frame)]):
                self._changed.clear()
                await self._changed.wait()
        return found[0]


@pytest.fixture
async def served(tmp_path, monkeypatch):
    """`streams, running = await served(reply)`: our agent, with a model that plays a script."""
    for name in ("home", "workspace"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("OSTLER_HOME", raising=False)
    servers = []

    async def serve(*replies):
        servers.append(server := ScriptedModelServer(*replies))
        await server.__aenter__()
        options = RunOptions(str(tmp_path / "workspace"), model={"base_url": server.base_url, "model": "scripted"})
        streams = FakeStreams()
        face = AcpAgentFrontend(streams, EditorWorkspaces(options), "0")
        running = asyncio.create_task(face.run(MultiFolderSessionManager(options)))
        await streams.ready.wait()
        return streams, running

    yield serve
    for server in servers:
        await server.__aexit__(None, None, None)


async def begin(streams, workspace, until):
    """Go as far as that point."""
    if until == "at once":
        return
    streams.ask(1, "initialize", protocolVersion=1, clientCapabilities={})
    if until == "after the handshake":
        return
    streams.ask(2, "session/new", cwd=str(workspace), mcpServers=[])
    if until == "while a session opens":
        return
    opened = await streams.heard(lambda frame: frame.get("id") == 2)
    prompt = [{"type": "text", "text": "go"}]
    streams.ask(3, "session/prompt", sessionId=opened["result"]["sessionId"], prompt=prompt)
    if until == "while it asks":
        await streams.heard(lambda frame: frame.get("method") == "session/request_permission")
    else:
        await streams.heard(lambda frame: "agent_message_chunk" in str(frame))
    if until == "in the midst of a frame":
        streams.feed(b'{"jsonrpc":"2.0","id":4,"meth')


@pytest.mark.req("AC-6")
@pytest.mark.parametrize(
    ("until", "replies"),
    [
        ("at once", ()),
        ("after the handshake", ()),
        ("while a session opens", ()),
        ("while it speaks", (STALLED,)),
        ("while it asks", (ASKING,)),
        ("in the midst of a frame", (STALLED,)),
    ],
)
async def test_the_editor_may_leave_at_any_point(served, tmp_path, until, replies):
    streams, running = await served(*replies)
    await begin(streams, tmp_path / "workspace", until)
    streams.ended()
    assert await asyncio.wait_for(running, PATIENCE) == 0
    answered = [frame["result"] for frame in streams.frames if frame.get("id") == 3 and "result" in frame]
    assert [answer["stopReason"] for answer in answered] == ["cancelled"] * bool(replies)
    assert not (tmp_path / "workspace" / "x").exists()


async def test_a_line_beyond_all_measure_ends_it_with_a_sentence(served, capsys):
    streams, running = await served()
    streams.feed(b"x" * (MAX_LINE_BYTES + 1))
    assert await asyncio.wait_for(running, PATIENCE) == 1
    assert "protocol error by the editor: the other side sent a line of more than" in capsys.readouterr().err


class EmptyWorkspaceProvider:
    """A folder that nobody knows more of."""

    def services(self, cwd):
        return FakeServices()

    def log(self, line):
        """Nobody reads the logs."""

    def workspace(self, cwd, editor):
        return None


async def test_a_backend_that_does_not_let_go_keeps_nobody_and_leaves_no_traceback(tmp_path, monkeypatch):
    monkeypatch.setattr("ostler.frontends.acp_agent.frontend.CLOSE_TIMEOUT_SECONDS", 0.2)

    async def deaf(context, prompt):
        context.emit(TextDelta("m", "working"))
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await asyncio.Event().wait()

    session = await open_test_session(ScriptedBackend([deaf]), [], LocalWorkspace(str(tmp_path)))
    streams = FakeStreams()
    running = asyncio.create_task(
        AcpAgentFrontend(streams, EmptyWorkspaceProvider(), "0").run(SingleSessionManager(session))
    )
    await streams.ready.wait()
    await begin(streams, tmp_path, "while it speaks")
    streams.ended()
    assert await asyncio.wait_for(running, PATIENCE) == 0
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:  # as the end of the process does
        task.cancel()
    ended = await asyncio.gather(*left, return_exceptions=True)
    assert [type(one).__name__ for one in ended if isinstance(one, Exception)] == []
