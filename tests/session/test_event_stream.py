"""Subscribers of a session: late, slow and leaving ones get the correct events."""

import asyncio
from contextlib import closing

import pytest

from ostler.backends.scripted import ScriptedBackend
from ostler.core.display import Display
from ostler.core.events import (
    ChildEnded,
    ChildProgress,
    ChildStarted,
    MessageDone,
    MessageSnapshot,
    Notice,
    StateChanged,
    TextDelta,
    ThoughtDelta,
    ToolFinished,
    ToolProgress,
    TurnEnded,
    TurnStarted,
)
from ostler.core.message import Message
from ostler.core.prompt import TextContent
from ostler.core.tools import ToolResult
from ostler.session.event_stream import MAX_QUEUED_EVENTS
from ostler.testing.session_fixture import make_prompt, open_test_session, run_turn
from ostler.workspace.local_workspace import LocalWorkspace

TIMEOUT = 60


@pytest.fixture
def workspace(tmp_path):
    return LocalWorkspace(str(tmp_path))


def drain(subscription):
    """Return the events that are queued for a subscriber now."""
    subscription.close()

    async def collect():
        return [envelope async for envelope in subscription]

    return collect()


@pytest.mark.req("CL-6")
@pytest.mark.invariant("E7")
async def test_late_subscriber_gets_snapshot_of_partial_message(workspace):
    emitted, resume = asyncio.Event(), asyncio.Event()

    async def act(context, prompt):
        context.emit(StateChanged("model_generating"))
        context.emit(ThoughtDelta("m", "hm"))
        context.emit(TextDelta("m", "Hel"))
        context.emit(Notice("info", "meanwhile"))
        context.emit(TextDelta("m", "lo"))
        emitted.set()
        await resume.wait()
        context.emit(TextDelta("m", "!"))
        context.emit(MessageDone(Message("m", (TextContent("Hello!"),))))

    session = await open_test_session(ScriptedBackend([act]), [], workspace)
    async with asyncio.timeout(TIMEOUT):
        turn = session.start(make_prompt("go"))
        await emitted.wait()
        late = session.subscribe()
        resume.set()
        await turn.wait()
        after = session.subscribe(since=2**62)
        received = await drain(late)
        assert await drain(after) == []
    tail = [envelope.event for envelope in received][-8:]
    assert tail[:4] == [
        Notice("info", "meanwhile"),
        StateChanged("model_generating"),
        MessageSnapshot("m", "Hello", "hm"),
        TextDelta("m", "!"),
    ]
    assert [type(event) for event in tail[4:]] == [MessageDone, StateChanged, TurnEnded, StateChanged]
    seqs = [envelope.seq for envelope in received]
    assert seqs == sorted(seqs)
    await session.aclose()


async def test_snapshot_has_progress_of_unfinished_calls_and_children(workspace):
    session = await open_test_session(ScriptedBackend([]), [], workspace)
    session.emit(ChildStarted("k1", "c1", "explore", "look"))
    for child, call in (("k1", "c1"), ("k2", "c2")):
        session.emit(ChildProgress(child, "executing", "early"))
        session.emit(ChildProgress(child, "executing", "late"))
        session.emit(ToolProgress(call, Display("first")))
        session.emit(ToolProgress(call, Display("then")))
    session.emit(ChildEnded("k1", "done"))
    session.emit(ToolFinished(ToolResult("c1", "ok", "")))
    received = [envelope.event for envelope in await drain(session.subscribe(since=2**62))]
    assert received == [ChildProgress("k2", "executing", "late"), ToolProgress("c2", Display("then"))]
    await session.aclose()


@pytest.mark.req("CL-6")
@pytest.mark.invariant("E7")
async def test_slow_subscriber_has_bounded_queue_and_gets_all_persisted_events(workspace):
    session = await open_test_session(ScriptedBackend([]), [], workspace)
    with closing(session.subscribe(since=2**62)) as slow:
        session.emit(ToolProgress("c", Display("seen")))
        assert (await anext(slow)).event == ToolProgress("c", Display("seen"))
        for number in range(3 * MAX_QUEUED_EVENTS):
            session.emit(TextDelta("m", "x"))
            if number % 1000 == 0:
                session.emit(Notice("info", str(number)))
            assert len(slow._queue) <= MAX_QUEUED_EVENTS
    received = [envelope async for envelope in slow]
    notices = [envelope.event.text for envelope in received if isinstance(envelope.event, Notice)]
    assert notices == [str(number) for number in range(0, 3 * MAX_QUEUED_EVENTS, 1000)]
    assert not any(isinstance(envelope.event, ToolProgress) for envelope in received), "it was received before"
    text = ""
    for event in (envelope.event for envelope in received):
        if isinstance(event, MessageSnapshot):
            text = event.text
        elif isinstance(event, TextDelta):
            text += event.text
    assert text == "x" * 3 * MAX_QUEUED_EVENTS
    seqs = [envelope.seq for envelope in received]
    assert seqs == sorted(seqs)
    await session.aclose()


async def test_subscriber_that_falls_behind_before_reading_gets_events_since_subscribing(workspace):
    session = await open_test_session(ScriptedBackend([]), [], workspace)
    session.emit(ToolProgress("c", Display("before")))
    session.emit(Notice("info", "before"))
    slow = session.subscribe(since=2**62)
    for number in range(MAX_QUEUED_EVENTS + 10):
        session.emit(Notice("info", str(number)))
    received = [envelope.event for envelope in await drain(slow)]
    assert ToolProgress("c", Display("before")) in received
    assert [e.text for e in received if isinstance(e, Notice)] == [
        str(number) for number in range(MAX_QUEUED_EVENTS + 10)
    ]
    await session.aclose()


async def test_closed_subscription_is_removed(workspace):
    session = await open_test_session(ScriptedBackend([]), [], workspace)
    subscription = session.subscribe()
    subscription.close()
    assert session._stream._subscriptions == []
    await session.aclose()


async def test_finished_turn_leaves_no_transient_state(workspace):
    async def act(context, prompt):
        context.emit(StateChanged("model_generating"))
        context.emit(TextDelta("m", "never finished"))

    session = await open_test_session(ScriptedBackend([act]), [], workspace)
    events, _ = await run_turn(session, "go")
    assert isinstance(events[0], TurnStarted)
    assert await drain(session.subscribe(since=2**62)) == []
    await session.aclose()
