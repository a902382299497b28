"""Guarantees of a session: event order, calls that run once, requests answered once, and repair."""

import asyncio

import pytest
from tests.session.no_undo import NoUndo

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


def make_act(*calls):
    async def act(context, prompt):
        for call in calls:
            context.emit(ToolCalled(call))
        await asyncio.gather(*(context.run_tool(call) for call in calls))

    return act


async def wait_for(subscription, kind):
    async with asyncio.timeout(5):
        async for envelope in subscription:
            if isinstance(envelope.event, kind):
                return envelope.event
    raise AssertionError("the stream ended first")


@pytest.mark.invariant("J3")
async def test_start_record_is_on_disk_before_side_effect(workspace):
    """`ToolStarted` of a call with side effects is synced before the tool runs; a read-only call needs no sync."""
    synced = []

    class WatchedJournal(MemoryJournal):
        def sync(self):
            synced.append([type(envelope.event).__name__ for envelope in self.envelopes][-1])

    seen = []

    async def record_syncs(arguments, context):
        seen.append(list(synced))
        return "ok"

    tools = [FakeTool("effect", record_syncs), FakeTool("glance", record_syncs, effects=False)]
    backend = ScriptedBackend([make_act(ToolCall("1", "glance", {})), make_act(ToolCall("2", "effect", {}))])
    session = await open_test_session(backend, tools, workspace, journal=WatchedJournal("s"))
    await run_turn(session, "look")
    await run_turn(session, "act")
    assert "ToolStarted" not in seen[0]
    assert seen[1][-1] == "ToolStarted"
    await session.aclose()


@pytest.mark.invariant("S6")
async def test_only_one_turn_can_run(workspace):
    release = asyncio.Event()

    async def act(context, prompt):
        await release.wait()

    session = await open_test_session(ScriptedBackend([act]), [], workspace)
    turn = session.start(make_prompt("go"))
    with pytest.raises(UsageError, match="still running"):
        session.start(make_prompt("again"))
    release.set()
    assert (await turn.wait()).reason == "done"
    await session.aclose()


async def test_turn_cancelled_immediately_and_twice_ends(workspace):
    async def act(context, prompt):
        await asyncio.Event().wait()

    session = await open_test_session(ScriptedBackend([act]), [], workspace)
    turn = session.start(make_prompt("go"))
    turn.cancel()
    turn.cancel()
    assert (await turn.wait()).reason == "cancelled"
    assert session.state.turn is None
    await session.aclose()


async def test_late_subscriber_gets_earlier_events_once_and_in_order(workspace):
    async def act(context, prompt):
        context.emit(TextDelta("m", "x"))
        context.emit(MessageDone(Message("m", (TextContent("x"),))))

    session = await open_test_session(ScriptedBackend([act, act]), [], workspace)
    await run_turn(session, "one")
    late_subscription = session.subscribe()
    await run_turn(session, "two")
    await session.aclose()
    seqs = [envelope.seq async for envelope in late_subscription if envelope.event.persisted]
    assert seqs == sorted(set(seqs))
    reopened = [envelope.seq for envelope in session._journal.records()]
    assert set(reopened) <= set(seqs)


@pytest.mark.req("PM-6")
async def test_session_wide_answer_creates_revocable_rule(workspace):
    tool = FakeTool("probe")
    calls = [make_act(ToolCall(str(n), "probe", {})) for n in range(3)]
    session = await open_test_session(ScriptedBackend(calls), [tool], workspace, policy=ASK_ALL)
    subscription = session.subscribe(since=2**62)
    turn = session.start(make_prompt("one"))
    request = await wait_for(subscription, PermissionAsked)
    assert [option.kind for option in request.permission.options] == [
        "allow_once",
        "allow_session",
        "allow_always",
        "deny",
    ]
    session.answer(request.ask_id, Decision("allow", by="person", scope="session"))
    await turn.wait()
    events, _ = await run_turn(session, "two")
    assert not any(isinstance(event, PermissionAsked) for event in events)
    (rule,) = [event.rule for event in session.events() if isinstance(event, RuleAdded)]
    await session.apply(RevokeRule(rule))
    turn = session.start(make_prompt("three"))
    request = await wait_for(subscription, PermissionAsked)
    session.answer(request.ask_id, Decision("deny", by="person"))
    await turn.wait()
    assert len(tool.runs) == 2
    await session.aclose()


@pytest.mark.req("SH-3", "PM-5")
async def test_dangerous_call_can_only_be_allowed_once(workspace):
    tool = FakeTool("probe", danger="confirm")
    session = await open_test_session(ScriptedBackend([make_act(ToolCall("1", "probe", {}))]), [tool], workspace)
    subscription = session.subscribe(since=2**62)
    turn = session.start(make_prompt("go"))
    request = await wait_for(subscription, PermissionAsked)
    assert [option.kind for option in request.permission.options] == ["allow_once", "deny"]
    session.answer(request.ask_id, Decision("allow", by="person", scope="project"))
    await turn.wait()
    assert len(tool.runs) == 1
    assert not any(isinstance(event, RuleAdded) for event in session.events())
    await session.aclose()


@pytest.mark.invariant("P3")
async def test_rules_of_a_call_can_only_restrict(workspace):
    tool = FakeTool("probe")
    denied = ToolCall("1", "probe", {}, rules=(Rule("probe", "*", "deny", "plan"),))
    extended = ToolCall("2", "probe", {}, rules=(Rule("probe", "*", "allow", "hostile"),))
    non_interactive_policy = type(ASK_ALL)(rules=ASK_ALL.rules, interactive=False)
    first = await open_test_session(ScriptedBackend([make_act(denied)]), [tool], workspace, policy=ALLOW_ALL)
    await run_turn(first, "go")
    second = await open_test_session(
        ScriptedBackend([make_act(extended)]), [tool], workspace, policy=non_interactive_policy
    )
    await run_turn(second, "go")
    assert tool.runs == []
    await first.aclose()
    await second.aclose()


@pytest.mark.invariant("R1")
async def test_tool_error_is_result_and_bug_has_traceback(workspace):
    async def fail(arguments, context):
        raise ToolError("try the other file", code="no_match")

    async def bug(arguments, context):
        raise ZeroDivisionError("oops")

    tools = [FakeTool("fail", fail), FakeTool("bug", bug)]
    backend = ScriptedBackend([make_act(ToolCall("1", "fail", {})), make_act(ToolCall("2", "bug", {}))])
    session = await open_test_session(backend, tools, workspace)
    await run_turn(session, "one")
    await run_turn(session, "two")
    failed, broken = (event.result for event in session.events() if isinstance(event, ToolFinished))
    assert (failed.status, failed.fault.code) == ("failed", "no_match")
    assert "Traceback" in broken.fault.hint
    assert any(isinstance(event, Notice) and "oops" in event.text for event in session.events())
    await session.aclose()


@pytest.mark.invariant("R1")
async def test_bug_in_backend_ends_only_the_turn(workspace):
    async def bug(context, prompt):
        raise ZeroDivisionError("oops")

    async def succeed(context, prompt):
        return None

    session = await open_test_session(ScriptedBackend([bug, succeed]), [], workspace)
    _, ended = await run_turn(session, "one")
    assert (ended.reason, ended.fault.code) == ("failed", "bug")
    _, ended = await run_turn(session, "two")
    assert ended.reason == "done"
    await session.aclose()


@pytest.mark.invariant("P7")
async def test_questions_are_declined_in_non_interactive_sessions_only(workspace):
    replies = []

    async def act(context, prompt):
        replies.append(await context.ask(Question("q", "Which?")))

    non_interactive = await open_test_session(
        ScriptedBackend([act]), [], workspace, policy=type(ASK_ALL)(interactive=False)
    )
    await run_turn(non_interactive, "go")
    interactive = await open_test_session(ScriptedBackend([act]), [], workspace)
    turn = interactive.start(make_prompt("go"))
    while not interactive.state.questions:
        await asyncio.sleep(0)
    (question_id,) = interactive.state.questions
    assert interactive.answer(question_id, QuestionReply("accept", {"x": 1}))
    await turn.wait()
    assert replies == [QuestionReply("decline"), QuestionReply("accept", {"x": 1})]
    await non_interactive.aclose()
    await interactive.aclose()


async def test_questions_with_same_id_get_separate_answers(workspace):
    replies = []

    async def act(context, prompt):
        replies.extend(await asyncio.gather(*(context.ask(Question("q", text)) for text in ("Which?", "Whose?"))))

    session = await open_test_session(ScriptedBackend([act]), [], workspace)
    turn = session.start(make_prompt("go"))
    while len(session.state.questions) < 2:
        await asyncio.sleep(0)
    for question_id, request in tuple(session.state.questions.items()):
        session.answer(question_id, QuestionReply("accept", {"text": request.question.text}))
    await turn.wait()
    assert [reply.content for reply in replies] == [{"text": "Which?"}, {"text": "Whose?"}]
    await session.aclose()


async def test_question_of_a_tool_names_the_tool(workspace):
    async def behaviour(arguments, context):
        reply = await context.ask(Question("", "Go there?", url="https://example.com/login"))
        return reply.action

    tool = FakeTool("probe", behaviour)
    session = await open_test_session(ScriptedBackend([make_act(ToolCall("1", "probe", {}))]), [tool], workspace)
    turn = session.start(make_prompt("go"))
    while not session.state.questions:
        await asyncio.sleep(0)
    ((question_id, request),) = session.state.questions.items()
    assert (request.question.asked_by, request.question.url) == ("probe", "https://example.com/login")
    session.answer(question_id, QuestionReply("accept"))
    await turn.wait()
    (finished,) = [event for event in session.events() if isinstance(event, ToolFinished)]
    assert finished.result.for_model == "accept"
    await session.aclose()


@pytest.mark.invariant("P1")
async def test_user_call_outside_turn_uses_tool_host(workspace):
    tool = FakeTool("probe")
    session = await open_test_session(ScriptedBackend([]), [tool], workspace, policy=ASK_ALL)
    result = await session.call(ToolCall("h1", "probe", {}, "person"))
    assert result.status == "ok"
    assert [type(e).__name__ for e in session.events()][-3:] == ["ToolCalled", "ToolStarted", "ToolFinished"]
    await session.aclose()


async def test_rename_and_unsupported_requests(workspace):
    session = await open_test_session(ScriptedBackend([]), [], workspace)
    assert await session.apply(Rename("A title"))
    assert session.state.title == "A title"
    assert (await session.spawn(ChildTask("c", "explore", "look", "go"))).status == "failed"
    assert not session.answer("nothing", Decision("allow"))
    await session.aclose()


@pytest.mark.invariant("P2")
async def test_calls_of_dead_process_are_unknown_if_started_else_cancelled(workspace):
    earlier = [
        ToolCalled(ToolCall("a", "probe", {})),
        ToolCalled(ToolCall("b", "probe", {})),
        ToolStarted("a", "probe"),
    ]
    journal = MemoryJournal("s")
    first = await open_test_session(ScriptedBackend([]), [], workspace, journal=journal)
    for event in earlier:
        first.emit(event)
    reopened = await open_test_session(ScriptedBackend([]), [], workspace, journal=journal)
    results = {e.result.call_id: e.result.status for e in reopened.events() if isinstance(e, ToolFinished)}
    assert results == {"a": "unknown", "b": "cancelled"}
    assert (await reopened.run_tool(ToolCall("a", "probe", {}))).status == "unknown"
    await reopened.aclose()


async def test_turn_ends_even_if_checkpoint_fails(workspace):
    class BrokenUndo(NoUndo):
        async def finish(self, turn_id):
            raise OSError("gone")

    from ostler.session.session import LocalSession
    from ostler.tools.host import LocalToolHost

    tools = LocalToolHost([FakeTool("probe")], workspace)
    backend = ScriptedBackend([make_act(ToolCall("1", "probe", {}))])
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


async def test_cancel_during_cleanup_is_ignored(workspace):
    cleaning_up, resume = asyncio.Event(), asyncio.Event()

    class SlowUndo(NoUndo):
        async def finish(self, turn_id):
            cleaning_up.set()
            await resume.wait()

    from ostler.session.session import LocalSession
    from ostler.tools.host import LocalToolHost

    async def succeed(context, prompt):
        return None

    tools = LocalToolHost([FakeTool("probe")], workspace)
    backend = ScriptedBackend([make_act(ToolCall("1", "probe", {})), succeed])
    session = LocalSession(
        backend=backend, tools=tools, journal=MemoryJournal("s"), policy=ALLOW_ALL, cwd=workspace.root, undo=SlowUndo()
    )
    await session.open(version="t", backend="t", options={})
    turn = session.start(make_prompt("go"))
    await cleaning_up.wait()
    turn.cancel()
    resume.set()
    assert (await turn.wait()).reason == "done"
    assert (await run_turn(session, "next"))[1].reason == "done"
    await session.aclose()
