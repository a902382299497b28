"""Standalone calls: a call of the user has its own checkpoint and ends independently of turns."""

import asyncio

import pytest
from tests.session.no_undo import NoUndo

from ostler.backends.scripted import ScriptedBackend
from ostler.core.events import (
    PermissionAsked,
    PermissionDecided,
    ToolCalled,
    ToolFinished,
    ToolStarted,
    TurnEnded,
)
from ostler.core.permission import Decision, Rule
from ostler.core.tools import ToolCall
from ostler.journal.memory_journal import MemoryJournal
from ostler.session import call_runner
from ostler.session.session import LocalSession
from ostler.testing.fake_tool import FakeTool
from ostler.testing.session_fixture import ALLOW_ALL, ASK_ALL, make_prompt, run_turn
from ostler.tools.host import LocalToolHost
from ostler.workspace.local_workspace import LocalWorkspace

pytestmark = pytest.mark.req("EN-13")

TIMEOUT = 60


class RecordingUndo(NoUndo):
    """An undo that records its calls; with `stuck`, the checkpoint of a turn never finishes."""

    def __init__(self):
        self.done = []
        self.stuck = False
        self.heartbeat_seen = asyncio.Event()

    async def begin(self, work_id, *, files_only=False):
        if self.stuck and "/turn-" in work_id:
            await asyncio.Event().wait()
        self.done.append(("begin", work_id.partition("/")[2]))
        return ()

    def heartbeat(self, work_id):
        self.heartbeat_seen.set()

    async def finish(self, work_id):
        self.done.append(("finish", work_id.partition("/")[2]))


class Gate:
    """A tool whose calls run until they are released, by the name they were called with."""

    def __init__(self):
        self.reached = {}
        self.released = {}

    def events(self, name):
        for events in (self.reached, self.released):
            events.setdefault(name, asyncio.Event())
        return self.reached[name], self.released[name]

    async def behave(self, arguments, context):
        reached, released = self.events(arguments["name"])
        reached.set()
        await released.wait()
        return "passed"

    async def wait_reached(self, name):
        async with asyncio.timeout(TIMEOUT):
            await self.events(name)[0].wait()

    def open(self, name):
        self.events(name)[1].set()


@pytest.fixture
def gate():
    return Gate()


@pytest.fixture
def undo():
    return RecordingUndo()


@pytest.fixture
async def open_session(tmp_path, gate, undo):
    """Return a function that opens a session with some acts; all are closed at the end."""
    sessions = []

    async def make(acts, journal=None, policy=ALLOW_ALL):
        workspace = LocalWorkspace(str(tmp_path))
        session = LocalSession(
            backend=ScriptedBackend(acts),
            tools=LocalToolHost([FakeTool("gate", gate.behave)], workspace),
            journal=journal or MemoryJournal("s"),
            policy=policy,
            cwd=workspace.root,
            undo=undo,
        )
        sessions.append(session)
        await session.open(version="t", backend="t", options={})
        return session

    yield make
    for session in sessions:
        await session.aclose()


def make_call(name, origin="person", rules=()):
    return ToolCall(name, "gate", {"name": name}, origin, rules=rules)


def calling(*names):
    async def act(context, prompt):
        for name in names:
            call = make_call(name, "model")
            context.emit(ToolCalled(call))
            await context.run_tool(call)

    return act


async def with_timeout(awaitable):
    async with asyncio.timeout(TIMEOUT):
        return await awaitable


async def test_each_call_has_its_own_checkpoint(open_session, gate, undo):
    session = await open_session([])
    first = asyncio.ensure_future(session.call(make_call("a")))
    await gate.wait_reached("a")
    second = asyncio.ensure_future(session.call(make_call("b")))
    await gate.wait_reached("b")
    gate.open("a")
    await with_timeout(first)
    assert undo.done == [("begin", "a"), ("begin", "b"), ("finish", "a")]
    gate.open("b")
    await with_timeout(second)
    assert undo.done[-1] == ("finish", "b")


async def test_running_call_sends_heartbeats(open_session, gate, undo, monkeypatch):
    monkeypatch.setattr(call_runner, "HEARTBEAT_SECONDS", 0.001)
    session = await open_session([])
    running = asyncio.ensure_future(session.call(make_call("a")))
    await gate.wait_reached("a")
    for _ in range(3):
        heartbeat = undo.heartbeat_seen = asyncio.Event()
        await with_timeout(heartbeat.wait())
    gate.open("a")
    await with_timeout(running)


async def test_call_ending_during_turn_leaves_turn_checkpoint_open(open_session, gate, undo):
    session = await open_session([calling("in-turn")])
    before = asyncio.ensure_future(session.call(make_call("before")))
    await gate.wait_reached("before")
    turn = session.start(make_prompt("go"))
    await gate.wait_reached("in-turn")
    gate.open("before")
    await with_timeout(before)
    assert [work_id for done, work_id in undo.done if done == "finish"] == ["before"]
    gate.open("in-turn")
    await with_timeout(turn.wait())
    assert [work_id for done, work_id in undo.done if done == "finish"] == ["before", turn.id]


@pytest.mark.invariant("P11")
async def test_call_outlives_turn_it_was_made_in(open_session, gate, undo):
    session = await open_session([calling("in-turn")])
    turn = session.start(make_prompt("go"))
    await gate.wait_reached("in-turn")
    standalone = asyncio.ensure_future(session.call(make_call("standalone")))
    await gate.wait_reached("standalone")
    turn.cancel()
    assert (await with_timeout(turn.wait())).reason == "cancelled"
    assert not standalone.done()
    gate.open("standalone")
    assert (await with_timeout(standalone)).status == "ok"
    assert [done for done in undo.done if done[1] == "standalone"] == [
        ("begin", "standalone"),
        ("finish", "standalone"),
    ]
    results = {e.result.call_id: e.result.status for e in session.events() if isinstance(e, ToolFinished)}
    assert results == {"in-turn": "cancelled", "standalone": "ok"}


async def test_call_within_turn_uses_turn_checkpoint(open_session, gate, undo):
    session = await open_session([calling("in-turn")])
    turn = session.start(make_prompt("go"))
    await gate.wait_reached("in-turn")
    gate.open("standalone")
    await with_timeout(session.call(make_call("standalone")))
    gate.open("in-turn")
    await with_timeout(turn.wait())
    assert undo.done == [("begin", turn.id), ("finish", turn.id)]


async def test_call_waiting_for_dropped_turn_checkpoint_gets_its_own(open_session, gate, undo):
    async def wait(context, prompt):
        await asyncio.Event().wait()

    undo.stuck = True
    session = await open_session([wait])
    turn = session.start(make_prompt("go"))
    subscription = session.subscribe(since=2**62)
    standalone = asyncio.ensure_future(session.call(make_call("standalone")))
    while not isinstance((await with_timeout(anext(subscription))).event, ToolCalled):
        pass
    turn.cancel()
    await with_timeout(turn.wait())
    gate.open("standalone")
    assert (await with_timeout(standalone)).status == "ok"
    assert undo.done == [("begin", "standalone"), ("finish", "standalone")]


@pytest.mark.req("PM-6")
@pytest.mark.invariant("P11")
async def test_approval_request_stays_open_after_turn_ends(open_session, gate):
    async def wait(context, prompt):
        await asyncio.Event().wait()

    session = await open_session([wait], policy=ASK_ALL)
    turn = session.start(make_prompt("go"))
    subscription = session.subscribe(since=2**62)
    restrictions = (Rule("gate", "*", "ask", "restriction of the call"),)
    standalone = asyncio.ensure_future(session.call(make_call("standalone", "protocol", restrictions)))
    while not isinstance(request := (await with_timeout(anext(subscription))).event, PermissionAsked):
        pass
    turn.cancel()
    await with_timeout(turn.wait())
    gate.open("standalone")
    assert session.answer(request.ask_id, Decision("allow", by="person"))
    assert (await with_timeout(standalone)).status == "ok"
    assert len([e for e in session.events() if isinstance(e, PermissionDecided)]) == 1
    assert session.state.calls["standalone"].rules == restrictions


@pytest.mark.req("SE-1")
async def test_call_that_outlived_its_turn_is_unknown_after_crash(open_session, gate):
    journal = MemoryJournal("s")
    session = await open_session([calling("in-turn")], journal)
    turn = session.start(make_prompt("go"))
    standalone = asyncio.ensure_future(session.call(make_call("standalone")))
    await gate.wait_reached("standalone")
    gate.open("in-turn")
    await with_timeout(turn.wait())
    crashed = MemoryJournal("s", list(journal.envelopes))
    ended = max(e.seq for e in crashed.envelopes if isinstance(e.event, TurnEnded))
    assert [type(e.event) for e in crashed.envelopes if e.seq > ended] == [ToolCalled, ToolStarted]
    again = await open_session([], crashed)
    assert again.records().result("standalone").status == "unknown"
    gate.open("standalone")
    await with_timeout(standalone)


async def test_next_turn_can_start_while_call_runs(open_session, gate):
    async def succeed(context, prompt):
        return None

    session = await open_session([succeed, succeed])
    standalone = asyncio.ensure_future(session.call(make_call("standalone")))
    await gate.wait_reached("standalone")
    assert (await run_turn(session, "one"))[1].reason == "done"
    assert (await run_turn(session, "two"))[1].reason == "done"
    gate.open("standalone")
    assert (await with_timeout(standalone)).status == "ok"
