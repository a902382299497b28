"""Sources of tools: opened and closed with the tool host, with events for changed tools and the state of servers."""

import pytest

from ostler.backends.scripted import ScriptedBackend
from ostler.core.events import (
    Envelope,
    ServerStateChanged,
    SessionOpened,
    ToolsChanged,
    TurnEnded,
    TurnStarted,
)
from ostler.core.tools import ToolCall
from ostler.frontends.headless.summary import SummaryBuilder
from ostler.journal.memory_journal import MemoryJournal
from ostler.session.session import LocalSession
from ostler.session.state import SessionState, state_from_records
from ostler.session.transcript import NoticeBlock, Transcript
from ostler.testing.fake_tool import FakeTool
from ostler.testing.fake_tool_source import FakeToolSource
from ostler.testing.session_fixture import ALLOW_ALL, make_prompt
from ostler.tools.host import LocalToolHost
from ostler.workspace.local_workspace import LocalWorkspace

READY = ServerStateChanged("files", "ready", tools=2)
FAILED = ServerStateChanged("files", "failed", "it exited with 1")


class ClosingWorkspace(LocalWorkspace):
    closed = False

    async def aclose(self):
        self.closed = True
        self.close()


def make_session(tmp_path, *sources, tools=(), journal=None, workspace=None):
    workspace = workspace or LocalWorkspace(str(tmp_path))
    return LocalSession(
        backend=ScriptedBackend([]),
        tools=LocalToolHost(tools, workspace, lambda: [FakeTool("hidden")], sources=sources),
        journal=journal or MemoryJournal("session-1"),
        policy=ALLOW_ALL,
        cwd=workspace.root,
    )


async def open_session(session):
    await session.open(version="test", backend="test", options={})
    return session


async def test_source_is_open_as_long_as_the_session(tmp_path):
    source = FakeToolSource()
    session = make_session(tmp_path, source)
    assert not source.is_open
    await open_session(session)
    assert source.is_open
    await session.aclose()
    assert not source.is_open


async def test_changed_tools_are_reported_and_callable(tmp_path):
    source, late = FakeToolSource(), FakeTool("late")
    session = await open_session(make_session(tmp_path, source, tools=[FakeTool("probe")]))
    subscription = session.subscribe(since=2**62)
    source.change(late)
    assert (await anext(subscription)).event == ToolsChanged(("probe", "late"))
    assert (await session.call(ToolCall("c1", "late", {}))).status == "ok"
    source.change()
    assert [spec.name for spec in session.tools()] == ["probe"]
    assert (await session.call(ToolCall("c2", "late", {}))).fault.code == "unknown_tool"
    assert not any(isinstance(event, ToolsChanged) for event in session.events())
    await session.aclose()


@pytest.mark.req("MC-3")
async def test_source_replaces_no_other_tool(tmp_path):
    own, first, second = FakeTool("probe"), FakeTool("late"), FakeTool("late")
    hidden = FakeTool("hidden")
    sources = [FakeToolSource({"probe": first, "late": first, "hidden": hidden}), FakeToolSource({"late": second})]
    session = await open_session(make_session(tmp_path, *sources, tools=[own]))
    for number, name in enumerate(("probe", "late", "hidden")):
        await session.call(ToolCall(f"c{number}", name, {}))
    assert [len(tool.runs) for tool in (own, first, second, hidden)] == [1, 1, 0, 0]
    await session.aclose()


async def test_everything_is_closed_even_if_closing_a_source_fails(tmp_path):
    sources = [FakeToolSource(), FakeToolSource(closing_error=OSError("stuck")), FakeToolSource()]
    workspace = ClosingWorkspace(str(tmp_path))
    session = await open_session(make_session(tmp_path, *sources, workspace=workspace))
    with pytest.raises(OSError, match="stuck"):
        await session.aclose()
    assert ([source.is_open for source in sources], workspace.closed) == ([False] * 3, True)


@pytest.mark.req("SE-4")
async def test_state_of_a_server_is_persisted_until_the_session_is_opened_again(tmp_path):
    source, journal = FakeToolSource(), MemoryJournal("session-1")
    session = await open_session(make_session(tmp_path, source, journal=journal))
    source.emit(ServerStateChanged("files", "starting"))
    source.emit(READY)
    assert session.state.servers == {"files": READY}
    await session.aclose()
    assert state_from_records(journal.records()).servers == {"files": READY}
    again = await open_session(make_session(tmp_path, journal=journal))
    assert again.state.servers == {}
    assert READY in again.events()
    await again.aclose()


def test_state_of_a_server_outlives_a_turn():
    events = [
        SessionOpened("s", "/w", "engine", "1"),
        TurnStarted("t", make_prompt("go")),
        READY,
        TurnEnded("t", "done"),
    ]
    journal = MemoryJournal("s", [Envelope(seq, 1.0, event) for seq, event in enumerate(events, 1)])
    assert state_from_records(journal.records()).servers == SessionState(events).servers == {"files": READY}


@pytest.mark.parametrize("state", ["starting", "ready", "failed", "stopped", "disabled"])
def test_only_a_failed_server_is_shown(state):
    transcript, summary, event = Transcript(), SummaryBuilder(), ServerStateChanged("files", state, "it exited with 1")
    transcript.apply(event)
    summary.on_event(Envelope(1, 1.0, event))
    text = "server files failed: it exited with 1"
    shown = [(block.level, block.text) for block in transcript.blocks if isinstance(block, NoticeBlock)]
    assert shown == ([("warning", text)] if state == "failed" else [])
    notices = summary.summarize_turn(TurnEnded("t", "done")).notices
    assert list(notices) == ([text] if state == "failed" else [])
