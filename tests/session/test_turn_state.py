"""What a turn waits for is told whenever it changes, whoever thinks."""

import asyncio

import pytest

from ostler.backends.scripted import ScriptedBackend
from ostler.core.errors import BackendError
from ostler.core.events import PermissionAsked, StateChanged, TextDelta, ToolCalled, ToolFinished
from ostler.core.permission import Decision
from ostler.core.sessions import SessionInfo
from ostler.core.tools import ToolCall, ToolResult
from ostler.testing.fake_tool import FakeTool
from ostler.testing.session_fixture import ALLOW_ALL, ASK_ALL, make_prompt, open_test_session, run_turn
from ostler.workspace.local_workspace import LocalWorkspace

pytestmark = pytest.mark.req("EN-1")

PATIENCE = 60
FAR = SessionInfo("far", runs_own_tools=True)


@pytest.fixture
def workspace(tmp_path):
    return LocalWorkspace(str(tmp_path))


def states(events):
    return [event.state for event in events if isinstance(event, StateChanged)]


async def calling(context, said):
    call = ToolCall("1", "probe", {})
    context.emit(ToolCalled(call))
    await context.run_tool(call)
    context.emit(TextDelta("m", "well"))


async def test_after_an_answered_ask_the_tool_runs(workspace):
    seen = []

    async def probe(arguments, context):
        seen.append(session._turn_state.reported)
        return "ok"

    session = await open_test_session(ScriptedBackend([calling]), [FakeTool("probe", probe)], workspace, policy=ASK_ALL)
    reading = session.subscribe(since=2**62)
    async with asyncio.timeout(PATIENCE):
        turn = session.start(make_prompt("go"))
        events = []
        while not isinstance(event := (await anext(reading)).event, PermissionAsked):
            events.append(event)
        session.answer(event.ask_id, Decision("allow"))
        await turn.wait()
    reading.close()
    events += [envelope.event async for envelope in reading]
    generated = ["planning", "model_generating", "done", "idle"]
    assert states(events) == ["planning", "awaiting_permission", "planning", "tool_running", *generated]
    assert seen == ["tool_running"]
    await session.aclose()


async def test_nobody_generates_between_an_answer_and_the_call(workspace):
    async def said_so(context, said):
        context.emit(StateChanged("model_generating"))
        await calling(context, said)

    session = await open_test_session(ScriptedBackend([said_so]), [FakeTool("probe")], workspace, policy=ASK_ALL)
    reading = session.subscribe(since=2**62)
    events = []
    async with asyncio.timeout(PATIENCE):
        turn = session.start(make_prompt("go"))
        while not isinstance(event := (await anext(reading)).event, PermissionAsked):
            events.append(event)
        session.answer(event.ask_id, Decision("allow"))
        await turn.wait()
    reading.close()
    events += [envelope.event async for envelope in reading]
    assert states(events)[:5] == ["planning", "model_generating", "awaiting_permission", "planning", "tool_running"]
    await session.aclose()


async def test_a_far_side_that_acts_by_itself_has_states_too(workspace):
    async def act(context, said):
        context.emit(TextDelta("m", "let me look"))
        context.emit(TextDelta("m", " at it"))
        context.emit(ToolCalled(ToolCall("far-1", "look", {})))
        context.emit(ToolFinished(ToolResult("far-1", "ok", "seen")))
        context.emit(TextDelta("n", "so"))

    session = await open_test_session(ScriptedBackend([act], FAR), [], workspace)
    events, _ = await run_turn(session, "go")
    looking = ["planning", "model_generating", "tool_running"]
    assert states(events) == [*looking, "planning", "model_generating", "done", "idle"]
    await session.aclose()


async def test_how_a_turn_ends(workspace):
    async def fails(context, said):
        raise BackendError("no")

    async def waits(context, said):
        await asyncio.Event().wait()

    session = await open_test_session(ScriptedBackend([fails, waits]), [], workspace)
    assert states((await run_turn(session, "one"))[0]) == ["planning", "error", "idle"]
    reading = session.subscribe(since=2**62)
    turn = session.start(make_prompt("two"))
    turn.cancel()
    async with asyncio.timeout(PATIENCE):
        await turn.wait()
    reading.close()
    assert states([envelope.event async for envelope in reading]) == ["planning", "idle"]
    await session.aclose()


async def test_a_call_by_hand_is_no_state_of_a_turn(workspace):
    session = await open_test_session(ScriptedBackend([]), [FakeTool("probe")], workspace, policy=ALLOW_ALL)
    reading = session.subscribe(since=2**62)
    await session.call(ToolCall("h", "probe", {}, "person"))
    reading.close()
    assert states([envelope.event async for envelope in reading]) == []
    await session.aclose()


async def test_what_a_backend_tells_of_more_than_its_thinking_is_not_heard(workspace):
    async def act(context, said):
        context.emit(StateChanged("tool_running"))
        context.emit(StateChanged("done"))
        context.emit(StateChanged("model_generating"))
        context.emit(StateChanged("model_generating"))

    session = await open_test_session(ScriptedBackend([act]), [], workspace)
    events, _ = await run_turn(session, "go")
    assert states(events) == ["planning", "model_generating", "done", "idle"]
    await session.aclose()
