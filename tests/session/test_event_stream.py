"""Readers of a session: they join late, fall behind and leave, and are told what is so all the same."""

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

PATIENCE = 60


@pytest.fixture
def workspace(tmp_path):
    return LocalWorkspace(str(tmp_path))


def told(reading):
    """What waits for a reader now."""
    reading.close()

    async def all_of_it():
        return [envelope async for envelope in reading]

    return all_of_it()


@pytest.mark.req("CL-6")
async def test_who_joins_in_the_middle_of_a_message_is_told_all_of_it(workspace):
    said, go_on = asyncio.Event(), asyncio.Event()

    async def act(context, words):
        context.emit(StateChanged("model_generating"))
        context.emit(ThoughtDelta("m", "hm"))
        context.emit(TextDelta("m", "Hel"))
        context.emit(Notice("info", "beside it"))
        context.emit(TextDelta("m", "lo"))
        said.set()
        await go_on.wait()
        context.emit(TextDelta("m", "!"))
        context.emit(MessageDone(Message("m", (TextContent("Hello!"),))))

    session = await open_test_session(ScriptedBackend([act]), [], workspace)
    async with asyncio.timeout(PATIENCE):
        turn = session.start(make_prompt("go"))
        await said.wait()
        late = session.subscribe()
        go_on.set()
        await turn.wait()
        after = session.subscribe(since=2**62)
        seen = await told(late)
        assert await told(after) == []
    tail = [envelope.event for envelope in seen][-8:]
    assert tail[:4] == [
        Notice("info", "beside it"),
        StateChanged("model_generating"),
        MessageSnapshot("m", "Hello", "hm"),
        TextDelta("m", "!"),
    ]
    assert [type(event) for event in tail[4:]] == [MessageDone, StateChanged, TurnEnded, StateChanged]
    seqs = [envelope.seq for envelope in seen]
    assert seqs == sorted(seqs)
    await session.aclose()


async def test_what_calls_and_children_do_is_told_until_they_are_over(workspace):
    session = await open_test_session(ScriptedBackend([]), [], workspace)
    session.emit(ChildStarted("k1", "c1", "explore", "look"))
    for child, call in (("k1", "c1"), ("k2", "c2")):
        session.emit(ChildProgress(child, "executing", "early"))
        session.emit(ChildProgress(child, "executing", "late"))
        session.emit(ToolProgress(call, Display("first")))
        session.emit(ToolProgress(call, Display("then")))
    session.emit(ChildEnded("k1", "done"))
    session.emit(ToolFinished(ToolResult("c1", "ok", "")))
    seen = [envelope.event for envelope in await told(session.subscribe(since=2**62))]
    assert seen == [ChildProgress("k2", "executing", "late"), ToolProgress("c2", Display("then"))]
    await session.aclose()


@pytest.mark.req("CL-6")
async def test_who_reads_too_slowly_holds_a_bounded_queue_and_misses_nothing_that_is_kept(workspace):
    session = await open_test_session(ScriptedBackend([]), [], workspace)
    with closing(session.subscribe(since=2**62)) as slow:
        session.emit(ToolProgress("c", Display("seen")))
        assert (await anext(slow)).event == ToolProgress("c", Display("seen"))
        for number in range(3 * MAX_QUEUED_EVENTS):
            session.emit(TextDelta("m", "x"))
            if number % 1000 == 0:
                session.emit(Notice("info", str(number)))
            assert len(slow._queue) <= MAX_QUEUED_EVENTS
    seen = [envelope async for envelope in slow]
    notices = [envelope.event.text for envelope in seen if isinstance(envelope.event, Notice)]
    assert notices == [str(number) for number in range(0, 3 * MAX_QUEUED_EVENTS, 1000)]
    assert not any(isinstance(envelope.event, ToolProgress) for envelope in seen), "it was heard before"
    text = ""
    for event in (envelope.event for envelope in seen):
        if isinstance(event, MessageSnapshot):
            text = event.text
        elif isinstance(event, TextDelta):
            text += event.text
    assert text == "x" * 3 * MAX_QUEUED_EVENTS
    seqs = [envelope.seq for envelope in seen]
    assert seqs == sorted(seqs)
    await session.aclose()


async def test_who_falls_behind_before_reading_anything_is_told_from_where_he_joined(workspace):
    session = await open_test_session(ScriptedBackend([]), [], workspace)
    session.emit(ToolProgress("c", Display("before")))
    session.emit(Notice("info", "before"))
    slow = session.subscribe(since=2**62)
    for number in range(MAX_QUEUED_EVENTS + 10):
        session.emit(Notice("info", str(number)))
    seen = [envelope.event for envelope in await told(slow)]
    assert ToolProgress("c", Display("before")) in seen
    assert [e.text for e in seen if isinstance(e, Notice)] == [str(number) for number in range(MAX_QUEUED_EVENTS + 10)]
    await session.aclose()


async def test_who_leaves_is_forgotten(workspace):
    session = await open_test_session(ScriptedBackend([]), [], workspace)
    reading = session.subscribe()
    reading.close()
    assert session._stream._subscriptions == []
    await session.aclose()


async def test_a_turn_that_is_over_leaves_nothing_that_is_so_now(workspace):
    async def act(context, words):
        context.emit(StateChanged("model_generating"))
        context.emit(TextDelta("m", "never whole"))

    session = await open_test_session(ScriptedBackend([act]), [], workspace)
    events, _ = await run_turn(session, "go")
    assert isinstance(events[0], TurnStarted)
    assert await told(session.subscribe(since=2**62)) == []
    await session.aclose()
