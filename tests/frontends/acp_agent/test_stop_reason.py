"""The end of the ACP frontend: when the editor disconnects, and after protocol errors."""

import asyncio
import contextlib
import json

import pytest
from tests.fake_services import FakeServices

from ostler.app.acp_agent import EditorWorkspaces
from ostler.app.session_manager import LocalSessionManager
from ostler.backends.scripted import ScriptedBackend
from ostler.core.events import TextDelta
from ostler.frontends.acp_agent.frontend import AcpAgentFrontend
from ostler.settings.run_options import RunOptions
from ostler.testing.model_server import ScriptedModelServer, calls, text
from ostler.testing.session_fixture import SingleSessionManager, open_test_session
from ostler.wire.jsonrpc_lines import MAX_LINE_BYTES
from ostler.workspace.local_workspace import LocalWorkspace

TIMEOUT = 60
ASKING = calls([("write", {"path": "x", "content": "y"})])
STALLED = text("I am thinking", chunks=4).stall_after(3)


class FakeStreams:
    """Standard streams that a test controls."""

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
        """Do nothing: there is no pipe to flush."""

    def ask(self, number, method, **params):
        frame = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self.feed(json.dumps(frame).encode() + b"\n")

    async def wait_for_frame(self, condition):
        """Wait for the first frame that matches a condition."""
        async with asyncio.timeout(TIMEOUT):
            while not (found := [frame for frame in self.frames if condition(frame)]):
                self._changed.clear()
                await self._changed.wait()
        return found[0]


@pytest.fixture
async def served(tmp_path, monkeypatch):
    """`streams, running = await served(reply)` starts the agent with a scripted model."""
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
        manager = LocalSessionManager(options, print)
        frontend = AcpAgentFrontend(streams, EditorWorkspaces(options, manager), "0")
        running = asyncio.create_task(frontend.run(manager))
        await streams.ready.wait()
        return streams, running

    yield serve
    for server in servers:
        await server.__aexit__(None, None, None)


async def begin(streams, workspace, until):
    """Run the conversation up to a given point."""
    if until == "at once":
        return
    streams.ask(1, "initialize", protocolVersion=1, clientCapabilities={})
    if until == "after the handshake":
        return
    streams.ask(2, "session/new", cwd=str(workspace), mcpServers=[])
    if until == "while a session opens":
        return
    opened = await streams.wait_for_frame(lambda frame: frame.get("id") == 2)
    prompt = [{"type": "text", "text": "go"}]
    streams.ask(3, "session/prompt", sessionId=opened["result"]["sessionId"], prompt=prompt)
    if until == "while it asks":
        await streams.wait_for_frame(lambda frame: frame.get("method") == "session/request_permission")
    else:
        await streams.wait_for_frame(lambda frame: "agent_message_chunk" in str(frame))
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
async def test_editor_may_disconnect_at_any_point(served, tmp_path, until, replies):
    streams, running = await served(*replies)
    await begin(streams, tmp_path / "workspace", until)
    streams.ended()
    assert await asyncio.wait_for(running, TIMEOUT) == 0
    answered = [frame["result"] for frame in streams.frames if frame.get("id") == 3 and "result" in frame]
    assert [answer["stopReason"] for answer in answered] == ["cancelled"] * bool(replies)
    assert not (tmp_path / "workspace" / "x").exists()


async def test_too_long_line_is_a_protocol_error(served, capsys):
    streams, running = await served()
    streams.feed(b"x" * (MAX_LINE_BYTES + 1))
    assert await asyncio.wait_for(running, TIMEOUT) == 1
    assert "protocol error by the editor: the other side sent a line of more than" in capsys.readouterr().err


class EmptyWorkspaceProvider:
    """A provider without a workspace of the editor."""

    def services(self, cwd):
        return FakeServices()

    def log(self, line):
        """Ignore log lines."""

    def workspace(self, cwd, editor):
        return None


async def test_backend_that_ignores_cancellation_does_not_block_the_exit(tmp_path, monkeypatch):
    monkeypatch.setattr("ostler.frontends.acp_agent.frontend.CLOSE_TIMEOUT_SECONDS", 0.2)

    async def ignore_cancel(context, prompt):
        context.emit(TextDelta("m", "working"))
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await asyncio.Event().wait()

    session = await open_test_session(ScriptedBackend([ignore_cancel]), [], LocalWorkspace(str(tmp_path)))
    streams = FakeStreams()
    running = asyncio.create_task(
        AcpAgentFrontend(streams, EmptyWorkspaceProvider(), "0").run(SingleSessionManager(session))
    )
    await streams.ready.wait()
    await begin(streams, tmp_path, "while it speaks")
    streams.ended()
    assert await asyncio.wait_for(running, TIMEOUT) == 0
    remaining = asyncio.all_tasks() - {asyncio.current_task()}
    for task in remaining:  # as at the end of the process
        task.cancel()
    ended = await asyncio.gather(*remaining, return_exceptions=True)
    assert [type(error).__name__ for error in ended if isinstance(error, Exception)] == []
