"""Work beside a turn: a person's call has its own checkpoint and its own end, whatever turns do meanwhile."""

import asyncio

import pytest

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

PATIENCE = 60


class Noting:
    """An undo that writes down what is asked of it; where it is `stuck`, a turn's checkpoint never begins."""

    def __init__(self):
        self.done = []
        self.stuck = False
        self.lived = asyncio.Event()

    async def begin(self, unit):
        if self.stuck and "/turn-" in unit:
            await asyncio.Event().wait()
        self.done.append(("begin", unit.partition("/")[2]))
        return ()

    def heartbeat(self, unit):
        self.lived.set()

    def mark_idle(self, unit):
        pass

    async def finish(self, unit):
        self.done.append(("finish", unit.partition("/")[2]))


class Gate:
    """A tool whose calls run until they are let go, by the name they were called with."""

    def __init__(self):
        self.reached = {}
        self.let_go = {}

    def events(self, name):
        for events in (self.reached, self.let_go):
            events.setdefault(name, asyncio.Event())
        return self.reached[name], self.let_go[name]

    async def behave(self, arguments, context):
        reached, let_go = self.events(arguments["name"])
        reached.set()
        await let_go.wait()
        return "passed"

    async def until(self, name):
        async with asyncio.timeout(PATIENCE):
            await self.events(name)[0].wait()

    def open(self, name):
        self.events(name)[1].set()


@pytest.fixture
def gate():
    return Gate()


@pytest.fixture
def undo():
    return Noting()


@pytest.fixture
async def opened(tmp_path, gate, undo):
    """`session = await opened([act, …])`; closed at the end."""
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


def by_hand(name, origin="person", rules=()):
    return ToolCall(name, "gate", {"name": name}, origin, rules=rules)


def calling(*names):
    async def act(context, said):
        for name in names:
            call = by_hand(name, "model")
            context.emit(ToolCalled(call))
            await context.run_tool(call)

    return act


async def patiently(awaitable):
    async with asyncio.timeout(PATIENCE):
        return await awaitable


async def test_two_calls_have_a_checkpoint_each(opened, gate, undo):
    session = await opened([])
    first = asyncio.ensure_future(session.call(by_hand("a")))
    await gate.until("a")
    second = asyncio.ensure_future(session.call(by_hand("b")))
    await gate.until("b")
    gate.open("a")
    await patiently(first)
    assert undo.done == [("begin", "a"), ("begin", "b"), ("finish", "a")]
    gate.open("b")
    await patiently(second)
    assert undo.done[-1] == ("finish", "b")


async def test_a_call_gives_signs_of_life_as_long_as_it_runs(opened, gate, undo, monkeypatch):
    monkeypatch.setattr(call_runner, "HEARTBEAT_SECONDS", 0.001)
    session = await opened([])
    running = asyncio.ensure_future(session.call(by_hand("a")))
    await gate.until("a")
    for _ in range(3):
        lived = undo.lived = asyncio.Event()
        await patiently(lived.wait())
    gate.open("a")
    await patiently(running)


async def test_a_call_that_ends_in_a_turn_leaves_the_turns_checkpoint_open(opened, gate, undo):
    session = await opened([calling("turn's")])
    before = asyncio.ensure_future(session.call(by_hand("before")))
    await gate.until("before")
    turn = session.start(make_prompt("go"))
    await gate.until("turn's")
    gate.open("before")
    await patiently(before)
    assert [unit for done, unit in undo.done if done == "finish"] == ["before"]
    gate.open("turn's")
    await patiently(turn.wait())
    assert [unit for done, unit in undo.done if done == "finish"] == ["before", turn.id]


async def test_a_call_outlives_the_turn_it_was_made_in(opened, gate, undo):
    session = await opened([calling("turn's")])
    turn = session.start(make_prompt("go"))
    await gate.until("turn's")
    beside = asyncio.ensure_future(session.call(by_hand("beside")))
    await gate.until("beside")
    turn.cancel()
    assert (await patiently(turn.wait())).reason == "cancelled"
    assert not beside.done()
    gate.open("beside")
    assert (await patiently(beside)).status == "ok"
    assert [done for done in undo.done if done[1] == "beside"] == [("begin", "beside"), ("finish", "beside")]
    results = {e.result.call_id: e.result.status for e in session.events() if isinstance(e, ToolFinished)}
    assert results == {"turn's": "cancelled", "beside": "ok"}


async def test_a_call_in_a_turn_that_ends_in_it_is_kept_by_the_turn(opened, gate, undo):
    session = await opened([calling("turn's")])
    turn = session.start(make_prompt("go"))
    await gate.until("turn's")
    gate.open("beside")
    await patiently(session.call(by_hand("beside")))
    gate.open("turn's")
    await patiently(turn.wait())
    assert undo.done == [("begin", turn.id), ("finish", turn.id)]


async def test_a_call_that_waits_for_the_turns_checkpoint_gets_its_own_when_that_is_dropped(opened, gate, undo):
    async def wait(context, said):
        await asyncio.Event().wait()

    undo.stuck = True
    session = await opened([wait])
    turn = session.start(make_prompt("go"))
    reading = session.subscribe(since=2**62)
    beside = asyncio.ensure_future(session.call(by_hand("beside")))
    while not isinstance((await patiently(anext(reading))).event, ToolCalled):
        pass
    turn.cancel()
    await patiently(turn.wait())
    gate.open("beside")
    assert (await patiently(beside)).status == "ok"
    assert undo.done == [("begin", "beside"), ("finish", "beside")]


@pytest.mark.req("PM-6")
async def test_its_ask_is_still_a_persons_to_answer_when_the_turn_is_over(opened, gate):
    async def wait(context, said):
        await asyncio.Event().wait()

    session = await opened([wait], policy=ASK_ALL)
    turn = session.start(make_prompt("go"))
    reading = session.subscribe(since=2**62)
    narrow = (Rule("gate", "*", "ask", "it says so"),)
    beside = asyncio.ensure_future(session.call(by_hand("beside", "protocol", narrow)))
    while not isinstance(asked := (await patiently(anext(reading))).event, PermissionAsked):
        pass
    turn.cancel()
    await patiently(turn.wait())
    gate.open("beside")
    assert session.answer(asked.ask_id, Decision("allow", by="person"))
    assert (await patiently(beside)).status == "ok"
    assert len([e for e in session.events() if isinstance(e, PermissionDecided)]) == 1
    assert session.state.calls["beside"].rules == narrow


@pytest.mark.req("SE-1")
async def test_after_a_crash_a_call_that_outlived_its_turn_is_unknown(opened, gate):
    journal = MemoryJournal("s")
    session = await opened([calling("turn's")], journal)
    turn = session.start(make_prompt("go"))
    beside = asyncio.ensure_future(session.call(by_hand("beside")))
    await gate.until("beside")
    gate.open("turn's")
    await patiently(turn.wait())
    crashed = MemoryJournal("s", list(journal.envelopes))
    ended = max(e.seq for e in crashed.envelopes if isinstance(e.event, TurnEnded))
    assert [type(e.event) for e in crashed.envelopes if e.seq > ended] == [ToolCalled, ToolStarted]
    again = await opened([], crashed)
    assert again.records().result("beside").status == "unknown"
    gate.open("beside")
    await patiently(beside)


async def test_the_next_turn_is_not_kept_from_beginning(opened, gate):
    async def fine(context, said):
        return None

    session = await opened([fine, fine])
    beside = asyncio.ensure_future(session.call(by_hand("beside")))
    await gate.until("beside")
    assert (await run_turn(session, "one"))[1].reason == "done"
    assert (await run_turn(session, "two"))[1].reason == "done"
    gate.open("beside")
    assert (await patiently(beside)).status == "ok"
