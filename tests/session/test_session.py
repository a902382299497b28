"""A session's own promises: order, once-only calls, asks that are settled once, and repair."""

import asyncio

import pytest

from ostler.backends.scripted import ScriptedBackend
from ostler.core.errors import ToolError, UsageError
from ostler.core.events import (
    MessageDone,
    Notice,
    PermissionAsked,
    RuleAdded,
    TextDelta,
    ToolCalled,
    ToolFinished,
    ToolStarted,
)
from ostler.core.message import Message
from ostler.core.permission import Decision, Question, QuestionReply, Rule
from ostler.core.prompt import TextContent
from ostler.core.sessions import Rename, RevokeRule
from ostler.core.tools import ChildTask, ToolCall
from ostler.journal.memory_journal import MemoryJournal
from ostler.testing.fake_tool import FakeTool
from ostler.testing.session_fixture import ALLOW_ALL, ASK_ALL, make_prompt, open_test_session, run_turn
from ostler.workspace.local_workspace import LocalWorkspace


@pytest.fixture
def workspace(tmp_path):
    return LocalWorkspace(str(tmp_path))


def calling(*calls):
    async def act(context, said):
        for call in calls:
            context.emit(ToolCalled(call))
        await asyncio.gather(*(context.run_tool(call) for call in calls))

    return act


async def wait_for(reading, kind):
    async with asyncio.timeout(5):
        async for envelope in reading:
            if isinstance(envelope.event, kind):
                return envelope.event
    raise AssertionError("the stream ended first")


async def test_the_intent_is_on_disk_before_an_effect(workspace):
    """`ToolStarted` of a call with effects is synced before the tool runs; a read-only one costs no sync."""
    synced = []

    class WatchedJournal(MemoryJournal):
        def sync(self):
            synced.append([type(envelope.event).__name__ for envelope in self.envelopes][-1])

    seen = []

    async def look(arguments, context):
        seen.append(list(synced))
        return "ok"

    tools = [FakeTool("effect", look), FakeTool("glance", look, effects=False)]
    backend = ScriptedBackend([calling(ToolCall("1", "glance", {})), calling(ToolCall("2", "effect", {}))])
    session = await open_test_session(backend, tools, workspace, journal=WatchedJournal("s"))
    await run_turn(session, "look")
    await run_turn(session, "act")
    assert "ToolStarted" not in seen[0]
    assert seen[1][-1] == "ToolStarted"
    await session.aclose()


async def test_one_turn_at_a_time(workspace):
    hold = asyncio.Event()

    async def act(context, said):
        await hold.wait()

    session = await open_test_session(ScriptedBackend([act]), [], workspace)
    turn = session.start(make_prompt("go"))
    with pytest.raises(UsageError, match="still running"):
        session.start(make_prompt("again"))
    hold.set()
    assert (await turn.wait()).reason == "done"
    await session.aclose()


async def test_cancel_at_once_and_twice_still_ends_the_turn(workspace):
    async def act(context, said):
        await asyncio.Event().wait()

    session = await open_test_session(ScriptedBackend([act]), [], workspace)
    turn = session.start(make_prompt("go"))
    turn.cancel()
    turn.cancel()
    assert (await turn.wait()).reason == "cancelled"
    assert session.state.turn is None
    await session.aclose()


async def test_late_readers_see_the_past_first_and_nothing_twice(workspace):
    async def act(context, said):
        context.emit(TextDelta("m", "x"))
        context.emit(MessageDone(Message("m", (TextContent("x"),))))

    session = await open_test_session(ScriptedBackend([act, act]), [], workspace)
    await run_turn(session, "one")
    late = session.subscribe()
    await run_turn(session, "two")
    await session.aclose()
    seqs = [envelope.seq async for envelope in late if envelope.event.persisted]
    assert seqs == sorted(set(seqs))
    again = [envelope.seq for envelope in session._journal.records()]
    assert set(again) <= set(seqs)


@pytest.mark.req("PM-6")
async def test_an_answer_for_the_session_is_a_rule_that_can_be_revoked(workspace):
    tool = FakeTool("probe")
    calls = [calling(ToolCall(str(n), "probe", {})) for n in range(3)]
    session = await open_test_session(ScriptedBackend(calls), [tool], workspace, policy=ASK_ALL)
    reading = session.subscribe(since=2**62)
    turn = session.start(make_prompt("one"))
    ask = await wait_for(reading, PermissionAsked)
    assert [option.kind for option in ask.permission.options] == ["allow_once", "allow_session", "allow_always", "deny"]
    session.answer(ask.ask_id, Decision("allow", by="person", scope="session"))
    await turn.wait()
    events, _ = await run_turn(session, "two")
    assert not any(isinstance(event, PermissionAsked) for event in events)
    (rule,) = [event.rule for event in session.events() if isinstance(event, RuleAdded)]
    await session.apply(RevokeRule(rule))
    turn = session.start(make_prompt("three"))
    ask = await wait_for(reading, PermissionAsked)
    session.answer(ask.ask_id, Decision("deny", by="person"))
    await turn.wait()
    assert len(tool.runs) == 2
    await session.aclose()


@pytest.mark.req("SH-3", "PM-5")
async def test_the_dangerous_class_cannot_be_allowed_for_longer(workspace):
    tool = FakeTool("probe", danger="confirm")
    session = await open_test_session(ScriptedBackend([calling(ToolCall("1", "probe", {}))]), [tool], workspace)
    reading = session.subscribe(since=2**62)
    turn = session.start(make_prompt("go"))
    ask = await wait_for(reading, PermissionAsked)
    assert [option.kind for option in ask.permission.options] == ["allow_once", "deny"]
    session.answer(ask.ask_id, Decision("allow", by="person", scope="project"))
    await turn.wait()
    assert len(tool.runs) == 1
    assert not any(isinstance(event, RuleAdded) for event in session.events())
    await session.aclose()


async def test_a_rule_that_a_call_carries_can_only_narrow(workspace):
    tool = FakeTool("probe")
    denied = ToolCall("1", "probe", {}, rules=(Rule("probe", "*", "deny", "plan"),))
    widened = ToolCall("2", "probe", {}, rules=(Rule("probe", "*", "allow", "hostile"),))
    attended = type(ASK_ALL)(rules=ASK_ALL.rules, interactive=False)
    first = await open_test_session(ScriptedBackend([calling(denied)]), [tool], workspace, policy=ALLOW_ALL)
    await run_turn(first, "go")
    second = await open_test_session(ScriptedBackend([calling(widened)]), [tool], workspace, policy=attended)
    await run_turn(second, "go")
    assert tool.runs == []
    await first.aclose()
    await second.aclose()


async def test_a_tools_failure_is_a_value_and_a_bug_keeps_its_traceback(workspace):
    async def fail(arguments, context):
        raise ToolError("try the other file", code="no_match")

    async def bug(arguments, context):
        raise ZeroDivisionError("oops")

    tools = [FakeTool("fail", fail), FakeTool("bug", bug)]
    backend = ScriptedBackend([calling(ToolCall("1", "fail", {})), calling(ToolCall("2", "bug", {}))])
    session = await open_test_session(backend, tools, workspace)
    await run_turn(session, "one")
    await run_turn(session, "two")
    failed, broken = (event.result for event in session.events() if isinstance(event, ToolFinished))
    assert (failed.status, failed.fault.code) == ("failed", "no_match")
    assert "Traceback" in broken.fault.hint
    assert any(isinstance(event, Notice) and "oops" in event.text for event in session.events())
    await session.aclose()


async def test_a_backends_bug_ends_the_turn_and_not_the_session(workspace):
    async def bug(context, said):
        raise ZeroDivisionError("oops")

    async def fine(context, said):
        return None

    session = await open_test_session(ScriptedBackend([bug, fine]), [], workspace)
    _, ended = await run_turn(session, "one")
    assert (ended.reason, ended.fault.code) == ("failed", "bug")
    _, ended = await run_turn(session, "two")
    assert ended.reason == "done"
    await session.aclose()


async def test_questions_are_declined_when_nobody_is_home_and_answered_when_somebody_is(workspace):
    replies = []

    async def act(context, said):
        replies.append(await context.ask(Question("q", "Which?")))

    alone = await open_test_session(ScriptedBackend([act]), [], workspace, policy=type(ASK_ALL)(interactive=False))
    await run_turn(alone, "go")
    together = await open_test_session(ScriptedBackend([act]), [], workspace)
    turn = together.start(make_prompt("go"))
    while not together.state.questions:
        await asyncio.sleep(0)
    (question_id,) = together.state.questions
    assert together.answer(question_id, QuestionReply("accept", {"x": 1}))
    await turn.wait()
    assert replies == [QuestionReply("decline"), QuestionReply("accept", {"x": 1})]
    await alone.aclose()
    await together.aclose()


async def test_two_who_ask_with_one_id_have_an_answer_each(workspace):
    replies = []

    async def act(context, said):
        replies.extend(await asyncio.gather(*(context.ask(Question("q", text)) for text in ("Which?", "Whose?"))))

    session = await open_test_session(ScriptedBackend([act]), [], workspace)
    turn = session.start(make_prompt("go"))
    while len(session.state.questions) < 2:
        await asyncio.sleep(0)
    for question_id, asked in tuple(session.state.questions.items()):
        session.answer(question_id, QuestionReply("accept", {"said": asked.question.text}))
    await turn.wait()
    assert [reply.content for reply in replies] == [{"said": "Which?"}, {"said": "Whose?"}]
    await session.aclose()


async def test_a_tool_may_ask_the_person_and_its_name_is_told(workspace):
    async def behaviour(arguments, context):
        reply = await context.ask(Question("", "Go there?", url="https://example.com/login"))
        return reply.action

    tool = FakeTool("probe", behaviour)
    session = await open_test_session(ScriptedBackend([calling(ToolCall("1", "probe", {}))]), [tool], workspace)
    turn = session.start(make_prompt("go"))
    while not session.state.questions:
        await asyncio.sleep(0)
    ((question_id, asked),) = session.state.questions.items()
    assert (asked.question.asked_by, asked.question.url) == ("probe", "https://example.com/login")
    session.answer(question_id, QuestionReply("accept"))
    await turn.wait()
    (finished,) = [event for event in session.events() if isinstance(event, ToolFinished)]
    assert finished.result.for_model == "accept"
    await session.aclose()


async def test_a_persons_call_outside_a_turn_goes_through_the_same_door(workspace):
    tool = FakeTool("probe")
    session = await open_test_session(ScriptedBackend([]), [tool], workspace, policy=ASK_ALL)
    result = await session.call(ToolCall("h1", "probe", {}, "person"))
    assert result.status == "ok"
    assert [type(e).__name__ for e in session.events()][-3:] == ["ToolCalled", "ToolStarted", "ToolFinished"]
    await session.aclose()


async def test_small_changes(workspace):
    session = await open_test_session(ScriptedBackend([]), [], workspace)
    assert await session.apply(Rename("A title"))
    assert session.state.title == "A title"
    assert (await session.spawn(ChildTask("c", "explore", "look", "go"))).status == "failed"
    assert not session.answer("nothing", Decision("allow"))
    await session.aclose()


async def test_started_calls_of_a_dead_process_are_unknown_and_others_cancelled(workspace):
    past = [ToolCalled(ToolCall("a", "probe", {})), ToolCalled(ToolCall("b", "probe", {})), ToolStarted("a", "probe")]
    journal = MemoryJournal("s")
    first = await open_test_session(ScriptedBackend([]), [], workspace, journal=journal)
    for event in past:
        first.emit(event)
    again = await open_test_session(ScriptedBackend([]), [], workspace, journal=journal)
    results = {e.result.call_id: e.result.status for e in again.events() if isinstance(e, ToolFinished)}
    assert results == {"a": "unknown", "b": "cancelled"}
    assert (await again.run_tool(ToolCall("a", "probe", {}))).status == "unknown"
    await again.aclose()


async def test_a_checkpoint_that_fails_at_the_end_does_not_keep_the_turn_from_ending(workspace):
    class BrokenUndo:
        async def begin(self, turn_id):
            return ()

        def heartbeat(self, turn_id):
            """It is not asked for."""

        def mark_idle(self, turn_id):
            pass

        async def finish(self, turn_id):
            raise OSError("gone")

    from ostler.session.session import LocalSession
    from ostler.tools.host import LocalToolHost

    tools = LocalToolHost([FakeTool("probe")], workspace)
    backend = ScriptedBackend([calling(ToolCall("1", "probe", {}))])
    session = LocalSession(
        backend=backend,
        tools=tools,
        journal=MemoryJournal("s"),
        policy=ALLOW_ALL,
        cwd=workspace.root,
        undo=BrokenUndo(),
    )
    await session.open(version="t", backend="t", options={})
    _, ended = await run_turn(session, "go")
    assert ended.reason == "done"
    assert any(isinstance(e, Notice) and "gone" in e.text for e in session.events())
    await session.aclose()


async def test_a_cancel_that_comes_while_a_turn_tidies_up_is_too_late(workspace):
    tidying, go_on = asyncio.Event(), asyncio.Event()

    class SlowUndo:
        async def begin(self, turn_id):
            return ()

        def heartbeat(self, turn_id):
            """It is not asked for."""

        def mark_idle(self, turn_id):
            pass

        async def finish(self, turn_id):
            tidying.set()
            await go_on.wait()

    from ostler.session.session import LocalSession
    from ostler.tools.host import LocalToolHost

    async def fine(context, said):
        return None

    tools = LocalToolHost([FakeTool("probe")], workspace)
    backend = ScriptedBackend([calling(ToolCall("1", "probe", {})), fine])
    session = LocalSession(
        backend=backend, tools=tools, journal=MemoryJournal("s"), policy=ALLOW_ALL, cwd=workspace.root, undo=SlowUndo()
    )
    await session.open(version="t", backend="t", options={})
    turn = session.start(make_prompt("go"))
    await tidying.wait()
    turn.cancel()
    go_on.set()
    assert (await turn.wait()).reason == "done"
    assert (await run_turn(session, "next"))[1].reason == "done"
    await session.aclose()
