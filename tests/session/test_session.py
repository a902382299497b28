"""A session's own promises: order, once-only calls, asks that are settled once, and repair."""

import asyncio

import pytest

from ostler.backends.scripted import ScriptedBackend
from ostler.journal.memory import MemoryJournal
from ostler.testing.fake_tool import FakeTool
from ostler.testing.stagehand import ALLOW_ALL, ASK_ALL, open_session, play, prompt
from ostler.vocabulary.errors import ToolFailure, UsageError
from ostler.vocabulary.events import (
    MessageDone,
    Notice,
    PermissionAsked,
    RuleAdded,
    TextDelta,
    ToolCalled,
    ToolFinished,
    ToolStarted,
)
from ostler.vocabulary.message import Message
from ostler.vocabulary.permission import Decision, Question, Reply, Rule
from ostler.vocabulary.prompt import Text
from ostler.vocabulary.sessions import Rename, Revoke
from ostler.vocabulary.tools import ChildTask, ToolCall
from ostler.workspace.ground import Workspace


@pytest.fixture
def ground(tmp_path):
    return Workspace(str(tmp_path))


def calling(*calls):
    async def act(stage, said):
        for call in calls:
            stage.emit(ToolCalled(call))
        await asyncio.gather(*(stage.run_tool(call) for call in calls))

    return act


async def wait_for(reading, kind):
    async with asyncio.timeout(5):
        async for envelope in reading:
            if isinstance(envelope.event, kind):
                return envelope.event
    raise AssertionError("the stream ended first")


async def test_the_intent_is_on_disk_before_an_effect(ground):
    """`ToolStarted` of a call with effects is synced before the tool runs; a read-only one costs no sync."""
    synced = []

    class WatchedJournal(MemoryJournal):
        def sync(self):
            synced.append([type(envelope.event).__name__ for envelope in self.records][-1])

    seen = []

    async def look(arguments, context):
        seen.append(list(synced))
        return "ok"

    tools = [FakeTool("effect", look), FakeTool("glance", look, effects=False)]
    backend = ScriptedBackend([calling(ToolCall("1", "glance", {})), calling(ToolCall("2", "effect", {}))])
    session = await open_session(backend, tools, ground, journal=WatchedJournal("s"))
    await play(session, "look")
    await play(session, "act")
    assert "ToolStarted" not in seen[0]
    assert seen[1][-1] == "ToolStarted"
    await session.aclose()


async def test_one_turn_at_a_time(ground):
    hold = asyncio.Event()

    async def act(stage, said):
        await hold.wait()

    session = await open_session(ScriptedBackend([act]), [], ground)
    turn = session.start(prompt("go"))
    with pytest.raises(UsageError, match="still running"):
        session.start(prompt("again"))
    hold.set()
    assert (await turn.wait()).reason == "done"
    await session.aclose()


async def test_cancel_at_once_and_twice_still_ends_the_turn(ground):
    async def act(stage, said):
        await asyncio.Event().wait()

    session = await open_session(ScriptedBackend([act]), [], ground)
    turn = session.start(prompt("go"))
    turn.cancel()
    turn.cancel()
    assert (await turn.wait()).reason == "cancelled"
    assert session.state.turn is None
    await session.aclose()


async def test_late_readers_see_the_past_first_and_nothing_twice(ground):
    async def act(stage, said):
        stage.emit(TextDelta("m", "x"))
        stage.emit(MessageDone(Message("m", (Text("x"),))))

    session = await open_session(ScriptedBackend([act, act]), [], ground)
    await play(session, "one")
    late = session.subscribe()
    await play(session, "two")
    await session.aclose()
    seqs = [envelope.seq async for envelope in late if envelope.event.kept]
    assert seqs == sorted(set(seqs))
    again = [envelope.seq for envelope in session._journal.past()]
    assert set(again) <= set(seqs)


@pytest.mark.req("PM-6")
async def test_an_answer_for_the_session_is_a_rule_that_can_be_revoked(ground):
    tool = FakeTool("probe")
    calls = [calling(ToolCall(str(n), "probe", {})) for n in range(3)]
    session = await open_session(ScriptedBackend(calls), [tool], ground, policy=ASK_ALL)
    reading = session.subscribe(since=2**62)
    turn = session.start(prompt("one"))
    ask = await wait_for(reading, PermissionAsked)
    assert [option.kind for option in ask.permission.options] == ["allow_once", "allow_session", "allow_always", "deny"]
    session.settle(ask.ask_id, Decision("allow", by="person", lasts="session"))
    await turn.wait()
    events, _ = await play(session, "two")
    assert not any(isinstance(event, PermissionAsked) for event in events)
    (rule,) = [event.rule for event in session.past() if isinstance(event, RuleAdded)]
    await session.apply(Revoke(rule))
    turn = session.start(prompt("three"))
    ask = await wait_for(reading, PermissionAsked)
    session.settle(ask.ask_id, Decision("deny", by="person"))
    await turn.wait()
    assert len(tool.runs) == 2
    await session.aclose()


@pytest.mark.req("SH-3", "PM-5")
async def test_the_dangerous_class_cannot_be_allowed_for_longer(ground):
    tool = FakeTool("probe", danger="confirm")
    session = await open_session(ScriptedBackend([calling(ToolCall("1", "probe", {}))]), [tool], ground)
    reading = session.subscribe(since=2**62)
    turn = session.start(prompt("go"))
    ask = await wait_for(reading, PermissionAsked)
    assert [option.kind for option in ask.permission.options] == ["allow_once", "deny"]
    session.settle(ask.ask_id, Decision("allow", by="person", lasts="project"))
    await turn.wait()
    assert len(tool.runs) == 1
    assert not any(isinstance(event, RuleAdded) for event in session.past())
    await session.aclose()


async def test_a_rule_that_a_call_carries_can_only_narrow(ground):
    tool = FakeTool("probe")
    denied = ToolCall("1", "probe", {}, rules=(Rule("probe", "*", "deny", "plan"),))
    widened = ToolCall("2", "probe", {}, rules=(Rule("probe", "*", "allow", "hostile"),))
    attended = type(ASK_ALL)(rules=ASK_ALL.rules, attended=False)
    first = await open_session(ScriptedBackend([calling(denied)]), [tool], ground, policy=ALLOW_ALL)
    await play(first, "go")
    second = await open_session(ScriptedBackend([calling(widened)]), [tool], ground, policy=attended)
    await play(second, "go")
    assert tool.runs == []
    await first.aclose()
    await second.aclose()


async def test_a_tools_failure_is_a_value_and_a_bug_keeps_its_traceback(ground):
    async def fail(arguments, context):
        raise ToolFailure("try the other file", code="no_match")

    async def bug(arguments, context):
        raise ZeroDivisionError("oops")

    tools = [FakeTool("fail", fail), FakeTool("bug", bug)]
    backend = ScriptedBackend([calling(ToolCall("1", "fail", {})), calling(ToolCall("2", "bug", {}))])
    session = await open_session(backend, tools, ground)
    await play(session, "one")
    await play(session, "two")
    failed, broken = (event.result for event in session.past() if isinstance(event, ToolFinished))
    assert (failed.status, failed.fault.code) == ("failed", "no_match")
    assert "Traceback" in broken.fault.hint
    assert any(isinstance(event, Notice) and "oops" in event.text for event in session.past())
    await session.aclose()


async def test_a_backends_bug_ends_the_turn_and_not_the_session(ground):
    async def bug(stage, said):
        raise ZeroDivisionError("oops")

    async def fine(stage, said):
        return None

    session = await open_session(ScriptedBackend([bug, fine]), [], ground)
    _, ended = await play(session, "one")
    assert (ended.reason, ended.fault.code) == ("failed", "bug")
    _, ended = await play(session, "two")
    assert ended.reason == "done"
    await session.aclose()


async def test_questions_are_declined_when_nobody_is_home_and_answered_when_somebody_is(ground):
    replies = []

    async def act(stage, said):
        replies.append(await stage.ask(Question("q", "Which?")))

    alone = await open_session(ScriptedBackend([act]), [], ground, policy=type(ASK_ALL)(attended=False))
    await play(alone, "go")
    together = await open_session(ScriptedBackend([act]), [], ground)
    turn = together.start(prompt("go"))
    while not together.state.questions:
        await asyncio.sleep(0)
    (question_id,) = together.state.questions
    assert together.settle(question_id, Reply("accept", {"x": 1}))
    await turn.wait()
    assert replies == [Reply("decline"), Reply("accept", {"x": 1})]
    await alone.aclose()
    await together.aclose()


async def test_two_who_ask_with_one_id_have_an_answer_each(ground):
    replies = []

    async def act(stage, said):
        replies.extend(await asyncio.gather(*(stage.ask(Question("q", text)) for text in ("Which?", "Whose?"))))

    session = await open_session(ScriptedBackend([act]), [], ground)
    turn = session.start(prompt("go"))
    while len(session.state.questions) < 2:
        await asyncio.sleep(0)
    for question_id, asked in tuple(session.state.questions.items()):
        session.settle(question_id, Reply("accept", {"said": asked.question.text}))
    await turn.wait()
    assert [reply.content for reply in replies] == [{"said": "Which?"}, {"said": "Whose?"}]
    await session.aclose()


async def test_a_tool_may_ask_the_person_and_its_name_is_told(ground):
    async def behaviour(arguments, context):
        reply = await context.ask(Question("", "Go there?", url="https://example.com/login"))
        return reply.action

    tool = FakeTool("probe", behaviour)
    session = await open_session(ScriptedBackend([calling(ToolCall("1", "probe", {}))]), [tool], ground)
    turn = session.start(prompt("go"))
    while not session.state.questions:
        await asyncio.sleep(0)
    ((question_id, asked),) = session.state.questions.items()
    assert (asked.question.by, asked.question.url) == ("probe", "https://example.com/login")
    session.settle(question_id, Reply("accept"))
    await turn.wait()
    (finished,) = [event for event in session.past() if isinstance(event, ToolFinished)]
    assert finished.result.for_model == "accept"
    await session.aclose()


async def test_a_persons_call_outside_a_turn_goes_through_the_same_door(ground):
    tool = FakeTool("probe")
    session = await open_session(ScriptedBackend([]), [tool], ground, policy=ASK_ALL)
    result = await session.call(ToolCall("h1", "probe", {}, "person"))
    assert result.status == "ok"
    assert [type(e).__name__ for e in session.past()][-3:] == ["ToolCalled", "ToolStarted", "ToolFinished"]
    await session.aclose()


async def test_small_changes(ground):
    session = await open_session(ScriptedBackend([]), [], ground)
    assert await session.apply(Rename("A title"))
    assert session.state.title == "A title"
    assert (await session.spawn(ChildTask("c", "explore", "look", "go"))).status == "failed"
    assert not session.settle("nothing", Decision("allow"))
    await session.aclose()


async def test_started_calls_of_a_dead_process_are_unknown_and_others_cancelled(ground):
    past = [ToolCalled(ToolCall("a", "probe", {})), ToolCalled(ToolCall("b", "probe", {})), ToolStarted("a", "probe")]
    journal = MemoryJournal("s")
    first = await open_session(ScriptedBackend([]), [], ground, journal=journal)
    for event in past:
        first.emit(event)
    again = await open_session(ScriptedBackend([]), [], ground, journal=journal)
    results = {e.result.call_id: e.result.status for e in again.past() if isinstance(e, ToolFinished)}
    assert results == {"a": "unknown", "b": "cancelled"}
    assert (await again.run_tool(ToolCall("a", "probe", {}))).status == "unknown"
    await again.aclose()


async def test_a_checkpoint_that_fails_at_the_end_does_not_keep_the_turn_from_ending(ground):
    class BrokenUndo:
        async def begin(self, turn_id):
            return ()

        def living(self, turn_id):
            """It is not asked for."""

        def resting(self, turn_id):
            pass

        async def finish(self, turn_id):
            raise OSError("gone")

    from ostler.session.session import Session
    from ostler.tools.host import LocalToolHost

    tools = LocalToolHost([FakeTool("probe")], ground)
    backend = ScriptedBackend([calling(ToolCall("1", "probe", {}))])
    session = Session(
        backend=backend, tools=tools, journal=MemoryJournal("s"), policy=ALLOW_ALL, cwd=ground.root, undo=BrokenUndo()
    )
    await session.open(version="t", backend="t", options={})
    _, ended = await play(session, "go")
    assert ended.reason == "done"
    assert any(isinstance(e, Notice) and "gone" in e.text for e in session.past())
    await session.aclose()


async def test_a_cancel_that_comes_while_a_turn_tidies_up_is_too_late(ground):
    tidying, go_on = asyncio.Event(), asyncio.Event()

    class SlowUndo:
        async def begin(self, turn_id):
            return ()

        def living(self, turn_id):
            """It is not asked for."""

        def resting(self, turn_id):
            pass

        async def finish(self, turn_id):
            tidying.set()
            await go_on.wait()

    from ostler.session.session import Session
    from ostler.tools.host import LocalToolHost

    async def fine(stage, said):
        return None

    tools = LocalToolHost([FakeTool("probe")], ground)
    backend = ScriptedBackend([calling(ToolCall("1", "probe", {})), fine])
    session = Session(
        backend=backend, tools=tools, journal=MemoryJournal("s"), policy=ALLOW_ALL, cwd=ground.root, undo=SlowUndo()
    )
    await session.open(version="t", backend="t", options={})
    turn = session.start(prompt("go"))
    await tidying.wait()
    turn.cancel()
    go_on.set()
    assert (await turn.wait()).reason == "done"
    assert (await play(session, "next"))[1].reason == "done"
    await session.aclose()
